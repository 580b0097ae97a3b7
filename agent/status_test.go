package agent_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas"
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

// Every status that an agent reports fits the schema of statuses: well, failed in every way, with
// what is left over and with problems of its own (H61).
func TestStatusesFitTheirSchema(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log := quiet()
		_, f, h, _ := r.running(func(c *agent.Config) { c.Log = log })
		seen := map[interpret.Outcome]bool{}
		check := func() {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			for n := 0; ; n++ {
				select {
				case st := <-f.reported:
					b, err := score.Encode(st)
					if err == nil {
						err = schemas.Check("status", b)
					}
					if err != nil {
						t.Errorf("%v\n%s", err, b)
					}
					for _, m := range st.Manifests {
						for _, sc := range m.Scores {
							seen[sc.Outcome] = true
						}
					}
					continue
				default:
				}
				if n == 0 {
					t.Error("nothing was reported")
				}
				return
			}
		}
		check() // no intent
		all := func(content string) []score.Score {
			return []score.Score{file("a", "/etc/a", content), service("s", "s.service", "a"), container("web", "web"), {ID: "host", Spec: score.Hostname{Name: "kiosk-7"}}}
		}
		offer(t, h, intent(1, manifest("m", all("1")...)))
		check()
		r.dev.Symlink("/etc/a", "/etc/link")
		r.dev.RunByHand("theirs", "localhost/other:1")
		r.dev.Unavailable(memory.Host, "no host name here")
		r.dev.Fail(memory.OpWriteFile, "file:/etc/full", topology.Faultf(topology.CodeNoSpace, "no space left"))
		offer(t, h, intent(2, manifest("m", append(all("2"), file("full", "/etc/full", "x"), file("after", "/etc/after", "x", "full"), container("theirs", "theirs"),
			file("link", "/etc/link", "x"), score.Score{ID: "later", Spec: score.Opaque{Of: "hologram/v9", Raw: []byte(`{}`)}},
			score.Score{ID: "odd", Spec: score.Opaque{Of: "file", Raw: []byte(`{"acl":1}`), Why: `unknown field "acl"`, Path: "/acl"}})...)))
		check()
		h.Refused(agent.CodeDuplicate, "there are two of me")
		h.Control(agent.Control{Blocked: true})
		r.dev.Put("/etc/a", "by hand")
		check()
		h.Control(agent.Control{})
		offer(t, h, intent(3, manifest("m", file("full", "/etc/full", "x")))) // what is left over stays, for one score fails
		check()
		for _, o := range []interpret.Outcome{interpret.Unchanged, interpret.Changed, interpret.Drifted, interpret.Waiting, interpret.Conflict, interpret.Unsupported, interpret.Failed} {
			if !seen[o] {
				t.Errorf("no status had the outcome %s", o)
			}
		}
	})
}
