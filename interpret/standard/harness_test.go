package standard_test

import (
	"context"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const mark = topology.Mark("test/score")

// open is a gate that lets everything through, and remembers what it was asked.
type open struct {
	retry   bool
	prove   error // what the proof comes to that the fleet is reached
	actions []interpret.Action
	done    []interpret.Outcome
	holds   int
}

func (o *open) Admit(_ context.Context, a interpret.Action) (interpret.Verdict, error) {
	o.actions = append(o.actions, a)
	return interpret.Verdict{Allow: true, Mark: mark, Retry: o.retry, Authority: "test", Prove: func(context.Context) error { return o.prove }}, nil
}

func (o *open) Done(_ context.Context, _ interpret.Action, st interpret.ScoreStatus) error {
	o.done = append(o.done, st.Outcome)
	return nil
}

func (o *open) Holds(context.Context, score.Score, topology.Mark) error {
	o.holds++
	return nil
}

// rig is a device in memory with all built-in kinds on it.
type rig struct {
	*testing.T
	*memory.Device
	table *interpret.Table
}

func newRig(t *testing.T) rig {
	d := memory.New()
	return rig{t, d, standard.Bind(d)}
}

// play makes a spec true as a new wish.
func (r rig) play(s score.Spec) interpret.ScoreStatus { r.Helper(); return r.with(s, &open{}, nil) }

// retry makes a spec true that was tried before.
func (r rig) retry(s score.Spec) interpret.ScoreStatus {
	r.Helper()
	return r.with(s, &open{retry: true}, nil)
}

// restart makes a spec true after a score that restarts it has changed.
func (r rig) restart(s score.Spec) interpret.ScoreStatus {
	r.Helper()
	return r.with(s, &open{}, &interpret.Change{Field: interpret.FieldRestart, Have: "a", Want: "b", Effect: interpret.Disrupt})
}

func (r rig) with(s score.Spec, g interpret.Gate, restart *interpret.Change) interpret.ScoreStatus {
	r.Helper()
	st, err := r.table.Play(r.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: s}, Cause: interpret.CauseIntent, Restart: restart}, g)
	if err != nil {
		r.Fatalf("gate: %v", err)
	}
	return st
}

// want checks how a play ended.
func (r rig) want(st interpret.ScoreStatus, o interpret.Outcome, c topology.Code) {
	r.Helper()
	if st.Outcome != o || st.Code != interpret.Code(c) {
		r.Fatalf("got %s %s: %s %v; want %s %s", st.Outcome, st.Code, st.Message, st.Changes, o, c)
	}
}

// settled checks that spec is unchanged, in force and well, and that seeing so changes nothing.
func (r rig) settled(s score.Spec) interpret.ScoreStatus {
	r.Helper()
	rec := r.Record()
	st := r.play(s)
	r.want(st, interpret.Unchanged, "")
	if m := rec.Mutations(); len(m) > 0 {
		r.Fatalf("unchanged, and yet %v", m)
	}
	if !st.Converged() {
		r.Fatalf("unchanged, and yet not converged: %+v %s", st.Conditions, st.Observed)
	}
	return st
}

// read decodes the typed state of a status.
func read[O interpret.Observed](t *testing.T, st interpret.ScoreStatus) O {
	t.Helper()
	o, err := interpret.Read[O](st)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// fields lists the changes of a status, as "field effect".
func fields(st interpret.ScoreStatus) (out []string) {
	for _, c := range st.Changes {
		out = append(out, c.Field+" "+string(c.Effect))
	}
	return out
}

// ops lists the mutating calls of a recorder.
func ops(rec *memory.Recorder) (out []memory.Op) {
	for _, c := range rec.Mutations() {
		out = append(out, c.Op)
	}
	return out
}
