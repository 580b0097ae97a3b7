package natslink

import (
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

// answerTo is the answer to a request.
func answerTo(id string) interpret.Operation {
	op := operation(id)
	op.Verb = interpret.VerbApprove
	op.Approvals = []interpret.Approval{{Request: "r", Manifest: "m", Score: "s", Action: interpret.ActionRemove, Effect: interpret.Remove}}
	return op
}

// storeAll puts operations where those for pi1 are.
func (r *rig) storeAll(generation uint64, frames ...[]byte) {
	r.t.Helper()
	b, err := wire.JoinOperations(frames...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.store(b, generation)
}

// Operations that wait together are all taken, each once, in their order, by one fetch; of what is refused among them nothing
// but that is refused. The answer to a request that was signed before something else is taken after it, and a replaced
// operation is not.
func TestOperationsTogether(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers, o.tune.off = []string{p.url()}, onPush|onPoll
	install := operation("install")
	install.Verb = interpret.VerbInstall
	one, two := ask(t, install, 7, r.operator), ask(t, answerTo("first"), 8, r.operator)
	foreign := ask(t, answerTo("foreign"), 9, newSigner(t))
	r.storeAll(9, one, two, foreign)
	say := r.answerWith(wire.ControlEnvelope{Approvals: 3, Operation: 9})
	_, d := r.runDoer(o)
	d.took(t, "install", "first")
	d.has(t, "untrusted")
	r.beats(10)
	before := p.count("get.a.")
	r.beats(20)
	if n := p.count("get.a.") - before; n != 0 {
		t.Errorf("%d fetches of what is known", n)
	}

	late := ask(t, answerTo("late"), 5, r.operator) // signed early, and published late
	older := operation("older")
	older.Verb = interpret.VerbInstall
	r.storeAll(9, one, two, late, ask(t, older, 6, r.operator))
	say <- wire.ControlEnvelope{Approvals: 4, Operation: 8}
	d.took(t, "install", "first", "late")
	if n := p.count("get.a.") - before; n != 1 {
		t.Errorf("%d fetches of one", n)
	}
	r.beats(10)
	d.change(func() {
		if slices.Contains(d.taken, "older") {
			t.Error("what was replaced is done")
		}
	})
}

// Rubbish in the place of several operations is refused, and what follows it is taken.
func TestRubbishTogether(t *testing.T) {
	r := newRig(t)
	l, d := r.runDoer(r.obeying())
	r.online(l)
	r.store([]byte("CTB1\x02\xff\xff\xff\xff"), 1)
	d.has(t, "malformed")
	r.storeAll(2, ask(t, operation("one"), 2, r.operator), []byte("rubbish"))
	d.took(t, "one")
}
