package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func leaves(s score.Score) score.Score {
	s.Decommission = true
	return s
}

// Of what is decommissioned, what needs another thing goes first, and that one waits for it; what is still needed by what
// stays is not removed (X98, S15).
func TestDecommissionOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1", "a"), file("c", "/etc/c", "1", "b"), file("k", "/etc/k", "1"))))
		later(time.Second)
		rec := r.dev.Record()
		r.dev.Fail(memory.OpRemoveFile, "file:/etc/b", topology.Faultf(topology.CodeReadOnly, "read-only"))
		m := manifest("m", leaves(file("a", "/etc/a", "1")), leaves(file("b", "/etc/b", "1", "a")), leaves(file("c", "/etc/c", "1", "b", "k")), file("k", "/etc/k", "1"))
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		later(time.Second)
		r.want(f.last(), "m/a=waiting/dependency m/b=failed/read_only m/c=unchanged m/k=unchanged")
		r.content("/etc/a", "1")
		r.dev.Heal()
		later(10 * time.Second)
		if got := fmt.Sprint(removals(rec)); !strings.HasSuffix(got, "/etc/b /etc/a]") || !strings.HasPrefix(got, "[/etc/c ") {
			t.Errorf("removed %v", got)
		}
		if st := f.last(); !st.ConvergedAt(2) {
			t.Errorf("%s", outcomes(st))
		}
	})
	r := newRig(t)
	scores := []score.Score{file("a", "/etc/a", "1")}
	for i := range 9 { // more than are played at once
		scores = append(scores, file(score.ID(fmt.Sprintf("b%d", i)), fmt.Sprintf("/etc/b%d", i), "1", "a"))
	}
	r.apply(intent(1, manifest("m", scores...)))
	scores[0].Decommission = true
	st := r.apply(intent(2, manifest("m", scores...)))
	for _, s := range st.Manifests[0].Scores {
		if s.Outcome != interpret.Refused {
			t.Errorf("%s is %s", s.ID, s.Outcome)
		}
	}
	r.content("/etc/a", "1")
}

// The brake holds for decommission, too: a template that goes wrong says it of everything (S14).
func TestBrakeOnDecommission(t *testing.T) {
	r := newRig(t)
	var there, gone []score.Score
	for i := range 9 {
		s := file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/etc/f%d", i), "x")
		there, gone = append(there, s), append(gone, leaves(s))
	}
	r.apply(intent(1, manifest("m", there...)))
	st := r.apply(intent(2, manifest("m", gone...)))
	for _, s := range st.Manifests[0].Scores {
		if s.Outcome != interpret.Pending || s.Code != "brake" {
			t.Errorf("%s: %s %s", s.ID, s.Outcome, s.Code)
		}
	}
	r.content("/etc/f0", "x")
	if st = r.apply(intent(3, manifest("m", append(slices.Clone(gone[:5]), there[5:]...)...))); !st.ConvergedAt(3) {
		t.Errorf("%s", outcomes(st))
	}
	r.gone("/etc/f0")
}

// A decommission beside an ordinary change: the plan has just one action for it, the change is made and the decommission
// waits, which is no failure, for a signature; with it the thing goes, once (S13, S15, S17, S18, S37, S38, S47, S49).
func TestDecommissionWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log, lines := recorded()
		a, f, h, _ := r.running(withLog(log))
		m := func(g uint64, content string, end bool) score.Manifest {
			b := file("b", "/etc/b", "1")
			b.Decommission = end
			v := preset(score.Guarded, manifest("m", file("a", "/etc/a", content), b))
			v.Metadata.Generation = g
			return v
		}
		offer(t, h, intent(1, m(1, "1", false)))
		later(time.Minute)
		lines.Reset()
		offer(t, h, intent(2, m(2, "2", true)))
		later(time.Minute)
		st := f.last()
		r.want(st, "m/a=unchanged m/b=pending/pending_signature") // it was changed a minute ago
		r.content("/etc/a", "2")
		r.content("/etc/b", "1")
		if p := a.Pulse(); st.State != interpret.StatePending || p.Pending != 1 {
			t.Errorf("state %s, pulse %+v", st.State, p)
		}
		if s := lines.String(); strings.Contains(s, "level=error") || strings.Contains(s, "level=warn") || !strings.Contains(s, "outcome=pending") {
			t.Errorf("logged:\n%s", s)
		}
		for len(f.receipts) > 0 {
			if rc := <-f.receipts; rc.Result != interpret.ResultDone {
				t.Errorf("what waits counts as failed: %+v", rc)
			}
		}

		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		if got := decisions(*plan); got != "decommission m/b explicit remove pending" {
			t.Fatalf("plan: %s", got)
		}
		// Who confirms the plan has not signed for it.
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
		r.content("/etc/b", "1")
		if s := lines.String(); !strings.Contains(s, "operation over") || strings.Contains(s, "code= ") || strings.Contains(s, "reason=") {
			t.Errorf("logged, with what is empty:\n%s", s)
		}
		x := plan.Actions[0]
		approve := interpret.Operation{ID: "one", Verb: interpret.VerbApprove, Plan: plan.ID,
			Approvals: []interpret.Approval{{Manifest: "m", Score: "b", Action: x.Action, Effect: x.Effect, Resources: x.Resources, SpecDigest: x.SpecDigest}}}
		done := f.ask(t, h, approve)
		if _, there := r.dev.Read("/etc/b"); there || done.Result != interpret.ResultDone {
			t.Fatalf("approved, and there is %v: %+v", there, done)
		}
		if st := f.last(); !st.ConvergedAt(2) || a.Pulse().Pending != 0 {
			t.Errorf("after it: %s, state %s, pulse %+v, %+v", outcomes(st), st.State, a.Pulse(), st.Manifests[0].Scores[1].Conditions)
		}
		r.dev.Put("/etc/b", "somebody else's")
		f.ask(t, h, approve)
		later(time.Hour)
		r.content("/etc/b", "somebody else's")
	})
}

// What nobody on the device can remove is said to be so, by name, and nothing is changed: a kind that is not known, and one
// that the device cannot have now (S20).
func TestDecommissionOfWhatNobodyCanRemove(t *testing.T) {
	r := newRig(t)
	r.apply(intent(1, manifest("m", container("web", "web"))))
	r.dev.Unavailable(memory.Containers, "no podman here")
	web := container("web", "web")
	web.Decommission = true
	rec := r.dev.Record()
	in := intent(2, manifest("m", web, score.Score{ID: "x", Decommission: true, Spec: score.Opaque{Of: "hologram/v9", Raw: []byte(`{}`)}}))
	st := r.apply(in)
	x, _ := scoreOf(st, "m", "x")
	w, _ := scoreOf(st, "m", "web")
	if x.Outcome != interpret.Unsupported || x.Code != interpret.CodeUnknownKind || w.Outcome != interpret.Unsupported || w.Code == "" || len(rec.Mutations()) > 0 {
		t.Errorf("%s, called %v", outcomes(st), rec.Mutations())
	}
	if e, owned := r.store.Owner("container:web"); !owned || e.Manifest != "m" {
		t.Errorf("owned %v by %q", owned, e.Manifest)
	}
	r.dev.Heal()
}

// A volume has data that nobody can make again. No longer named it stays, whoever consents; decommissioned in words it waits
// for a signature, under every preset (S13, S38, K2).
func TestDataWaitsForASignature(t *testing.T) {
	data, rest := score.Score{ID: "data", Spec: score.NamedVolume{Name: "data"}}, file("a", "/etc/a", "1")
	for _, tt := range []struct {
		name string
		m    score.Manifest
		code interpret.Code
		goes bool // when it is signed for
	}{
		{"no longer named", manifest("m", rest), interpret.CodeNotOwned, false},
		{"decommissioned", manifest("m", rest, leaves(data)), interpret.CodeSignature, true},
		{"decommissioned under reviewed", preset(score.Reviewed, manifest("m", rest, leaves(data))), interpret.CodeSignature, true},
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, _ := r.running()
			there := func() bool {
				st, err := r.dev.Volumes().Volume(t.Context(), "data")
				if err != nil {
					t.Fatal(err)
				}
				return st.Present
			}
			offer(t, h, intent(1, manifest("m", rest, data)))
			later(time.Minute)
			if !there() {
				t.Fatalf("%s: %s", tt.name, outcomes(f.last()))
			}
			tt.m.Metadata.Generation = 2
			offer(t, h, intent(2, tt.m))
			later(24 * time.Hour)
			plan := f.plan(t, h)
			if len(plan.Actions) != 1 || plan.Actions[0].Effect != interpret.Destroy || plan.Actions[0].Code != tt.code {
				t.Errorf("%s: %+v", tt.name, plan.Actions)
			}
			f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
			if !there() {
				t.Errorf("%s: the data is gone without a signature", tt.name)
			}
			got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: all(plan)})
			if there() == tt.goes || (got.Result == interpret.ResultDone) != tt.goes {
				t.Errorf("%s: signed for, it is there: %v, %+v", tt.name, there(), got)
			}
		})
	}
}
