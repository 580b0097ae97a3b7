package agent_test

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A status says which policy is in force, of each manifest and of a score that has its own, under the ceiling of the device,
// and which authority allowed the last change, also when nothing was changed since (G28).
func TestStatusNamesPolicyAndAuthority(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Ceiling.Policy = &score.Policy{OnAbsent: score.AbsentReport}
		_, f, h, stop := r.running()
		own := file("own", "/etc/own", "1")
		own.Policy = &score.Policy{OnDrift: score.DriftReport}
		in := intent(1, manifest("c", file("a", "/etc/a", "1"), own), preset(score.Reviewed, manifest("r", file("b", "/etc/b", "1"))))
		offer(t, h, in)
		later(time.Hour)
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		f.ask(t, h, interpret.Operation{ID: "one", Verb: interpret.VerbInstall, Plan: plan.ID})
		later(time.Hour)
		check := func() {
			t.Helper()
			st := f.last()
			if len(st.Manifests) != 2 || !st.ConvergedAt(1) {
				t.Fatalf("got %s", outcomes(st))
			}
			for i, want := range []score.Policy{
				{OnIntent: score.IntentApply, OnDrift: score.DriftCorrect, OnAbsent: score.AbsentReport},
				{OnIntent: score.IntentConfirm, OnDrift: score.DriftReport, OnAbsent: score.AbsentReport},
			} {
				if p := st.Manifests[i].Policy; p == nil || p.OnIntent != want.OnIntent || p.OnDrift != want.OnDrift || p.OnAbsent != want.OnAbsent {
					t.Errorf("%s: policy %+v", st.Manifests[i].Name, p)
				}
			}
			a, _ := scoreOf(st, "c", "a")
			o, _ := scoreOf(st, "c", "own")
			b, _ := scoreOf(st, "r", "b")
			if a.Policy != nil || o.Policy == nil || o.Policy.OnDrift != score.DriftReport || o.Policy.OnAbsent != score.AbsentReport {
				t.Errorf("policies of scores: %+v, %+v", a.Policy, o.Policy)
			}
			if a.Authority != "standing:converge" || b.Authority != "plan:one" {
				t.Errorf("authorities %q, %q", a.Authority, b.Authority)
			}
		}
		check()
		stop()
		ceiling := r.runner.Ceiling
		r.restart()
		r.runner.Ceiling = ceiling
		_, f, _, _ = r.running()
		later(time.Hour)
		check()
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

// A last line without an end is marked in the diff of a receipt (cases 15).
func TestDiffMarksTheLastLine(t *testing.T) {
	r := newRig(t)
	r.dev.Put("/etc/a", "old\n")
	r.confirm(intent(1, manifest("m", file("a", "/etc/a", "new"))))
	body, kept, err := r.store.Receipt("by-hand")
	var rc interpret.Receipt
	if err == nil && kept {
		err = score.Decode(body, &rc)
	}
	if err != nil || len(rc.Actions) != 1 || rc.Actions[0].Diff != "--- /etc/a (before)\n+++ /etc/a\n@@ -1 +1 @@\n-old\n+new\n\\ No newline at end of file\n" {
		t.Errorf("kept %v, %v: %+v", kept, err, rc.Actions)
	}
}

// A score that failed says when it is tried again, later and later, and so does one that somebody else sets again and again;
// one that is as it should be says nothing of the kind.
func TestStatusTellsTheNextTry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Fail(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeNoSpace, "no space left"))
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))))
		last := time.Duration(0)
		for _, d := range []time.Duration{time.Second / 2, 10 * time.Second, 5 * time.Minute} {
			later(d)
			a, _ := scoreOf(f.last(), "m", "a")
			wait := time.Until(a.NextTry)
			if a.NextTry.IsZero() || wait < -time.Second || wait < last || wait > 6*time.Minute {
				t.Errorf("after %s the next try is in %s: %+v", d, wait, a)
			}
			last = wait
		}
		r.dev.Heal()
		later(10 * time.Minute)
		for range 30 {
			r.dev.Put("/etc/b", "theirs")
			later(time.Second)
		}
		st := f.last()
		a, _ := scoreOf(st, "m", "a")
		b, _ := scoreOf(st, "m", "b")
		if !a.NextTry.IsZero() || a.Outcome != interpret.Unchanged || b.Code != interpret.CodeContested || time.Until(b.NextTry) <= 0 {
			t.Errorf("a: %s, %s; b: %s %s, %s", a.Outcome, a.NextTry, b.Outcome, b.Code, b.NextTry)
		}
	})
}
