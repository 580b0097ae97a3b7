package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// What is said of a link and of the books stays until it is over; what was said of other
// documents ends with a good one; nobody can fill a status with rubbish.
func TestProblems(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		for i := range 1000 {
			h.Refused("untrusted", fmt.Sprint("document ", i))
		}
		h.Refused(agent.CodeDuplicate, "there are two of me")
		codes := func() map[interpret.Code]int {
			time.Sleep(time.Second)
			synctest.Wait()
			n := map[interpret.Code]int{}
			for _, p := range f.last().Problems {
				n[p.Code]++
			}
			return n
		}
		if n := codes(); n["untrusted"] > 5 || n["untrusted"] == 0 || n[agent.CodeDuplicate] != 1 {
			t.Errorf("problems %v", n)
		}
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		if n := codes(); n["untrusted"] > 0 || n[agent.CodeDuplicate] != 1 {
			t.Errorf("after a good document: %v", n)
		}
		h.Resolved(agent.CodeDuplicate)
		if n := codes(); len(n) > 0 {
			t.Errorf("when it is over: %v", n)
		}
	})
}

// Books that cannot be written are said, and taken back when they can be; nothing is changed meanwhile.
func TestBooksCannotBeWritten(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var full atomic.Bool
		r.disk.Fault = func(store.Step) error {
			if full.Load() {
				return topology.Faultf(topology.CodeNoSpace, "no space left on the card")
			}
			return nil
		}
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Minute)
		full.Store(true)
		rec := r.dev.Record()
		r.dev.Put("/etc/a", "x")
		time.Sleep(time.Minute)
		synctest.Wait()
		st := f.last()
		if outcomes(st) != "m/a=failed/store " || len(st.Problems) == 0 || st.Problems[0].Code != agent.CodeStore || len(rec.Mutations()) > 0 {
			t.Errorf("got %s, problems %v, calls %v", outcomes(st), st.Problems, rec.Mutations())
		}
		full.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if st := f.last(); !st.ConvergedAt(1) || len(st.Problems) > 0 {
			t.Errorf("got %s, problems %v", outcomes(st), st.Problems)
		}
	})
}

// That something was lost is said for a day, and then no more, if all is well.
func TestRecoveredIsSaidForADay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Minute)
		stop()
		r.restart()
		r.lost.Findings = []store.Finding{{File: "journal.0", Code: store.CodeTorn, Lost: true, Detail: "the last record is incomplete"}}
		_, f, _, _ := r.running()
		var st interpret.DeviceStatus
		for _, tt := range []struct {
			after time.Duration
			want  int
		}{{time.Minute, 1}, {22 * time.Hour, 1}, {3 * time.Hour, 0}} {
			time.Sleep(tt.after)
			synctest.Wait()
			if now := f.last(); now.State != "" {
				st = now
			}
			if len(st.Problems) != tt.want || st.State != interpret.StateConverged {
				t.Errorf("after %s more: %s, problems %v", tt.after, st.State, st.Problems)
			}
		}
	})
}

// That everything was lost is said although a new intent comes at once, as it does where there is a network.
func TestLossIsSaidAfterANewIntent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.lost.Findings = []store.Finding{{File: "ledger.0", Code: store.CodeDamaged, Lost: true, Detail: "the ledger does not start like one"}}
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Minute)
		synctest.Wait()
		st := f.last()
		if st.Generation != 1 || len(st.Problems) != 1 || st.Problems[0].Code != agent.CodeRecovered {
			t.Errorf("generation %d, problems %+v", st.Generation, st.Problems)
		}
	})
}

// An intent on disk that is not trusted any more gives no authority: nothing is corrected
// and nothing collected, it is said, and a trusted one goes on from there (keys that were rotated).
func TestIntentOnDiskIsNotTrustedAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		offer(t, h, intent(3, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))))
		time.Sleep(time.Minute)
		stop()
		r.restart()
		rec := r.dev.Record()
		_, f, h, _ := r.running(func(c *agent.Config) {
			c.Open = func([]byte) (agent.Intent, error) { return agent.Intent{}, errors.New("no trusted key signed it") }
		})
		r.dev.Put("/etc/a", "x")
		time.Sleep(time.Hour)
		synctest.Wait()
		st := f.last()
		if m := rec.Mutations(); len(m) > 0 || st.State != interpret.StateNoIntent || len(st.Problems) != 1 || !strings.Contains(st.Problems[0].Message, "no trusted key signed it") {
			t.Errorf("calls %v, state %s, problems %+v", m, st.State, st.Problems)
		}
		offer(t, h, intent(4, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Second)
		synctest.Wait()
		if st := f.last(); !st.ConvergedAt(4) || len(st.Orphans) > 0 || len(st.Problems) > 0 {
			t.Errorf("got %s, left %v, problems %v", outcomes(st), st.Orphans, st.Problems)
		}
	})
}

// Books of a newer version: the device is observed and nothing is changed, whatever comes (cases 130).
func TestNewerState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), service("s", "s.service"))))
		r.lost = store.Recovered{Newer: true, Findings: []store.Finding{{File: "ledger.0", Code: store.CodeNewer, Lost: true, Detail: "written by a newer version"}}}
		rec := r.dev.Record()
		_, f, h, _ := r.running()
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "2"))))
		time.Sleep(time.Hour)
		synctest.Wait()
		st := f.last()
		if m := rec.Mutations(); len(m) > 0 || outcomes(st) != "m/a=drifted/blocked " {
			t.Errorf("got %s, calls %v", outcomes(st), m)
		}
		for _, o := range st.Orphans {
			if o.Code != interpret.CodeBlocked {
				t.Errorf("orphan %+v", o)
			}
		}
		if len(st.Orphans) != 2 || len(st.Problems) != 1 || st.Problems[0].Code != agent.CodeNewerState {
			t.Errorf("left %v, problems %v", st.Orphans, st.Problems)
		}
	})
}

// A directive that this version does not know is kept as it came, named once, and changes nothing (S27, S28, S29, S35).
func TestExtensionsAreCarried(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log, lines := recorded()
		_, f, h, stop := r.running(func(c *agent.Config) { c.Log = log })
		body := []byte(`{"apiVersion":"continuo/v1","kind":"Assignment","metadata":{"name":"pi-1","generation":2},
 "spec":{"complete":true,"scores":0,"manifests":[]}, "extensions":{"restoreDirective" : {"from":"\u0073nap-1", "keep":1e1 }}}`)
		in, err := open(body)
		if err != nil {
			t.Fatal(err)
		}
		rec := r.dev.Record()
		offer(t, h, in)
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := strings.Count(lines.String(), "restoreDirective"); n != 1 {
			t.Errorf("said %d times:\n%s", n, lines)
		}
		if st := f.last(); !st.ConvergedAt(2) || len(rec.Mutations()) > 0 {
			t.Errorf("state %s, calls %v", st.State, rec.Mutations())
		}
		stop()
		r.restart()
		if kept, ok, err := r.store.Intent("device"); !ok || err != nil || string(kept.Envelope) != string(body) {
			t.Errorf("kept %q, %v", kept.Envelope, err)
		}
	})
}

// One kind that crashes fails its own scores, with a short message, and is not tried all the time (H24).
func TestOneKindCrashes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var calls atomic.Int32
		r.dev.Before(func(_ context.Context, c memory.Call) error {
			if c.Op == memory.OpHostname || c.Op == memory.OpEnsureImage {
				calls.Add(1)
				panic("out of luck")
			}
			return nil
		})
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), container("web", "web"), service("s", "s.service"),
			score.Score{ID: "host", Spec: score.Hostname{Name: "x"}})))
		time.Sleep(time.Hour)
		synctest.Wait()
		st := f.last()
		if outcomes(st) != "m/a=unchanged m/host=failed/panic m/s=unchanged m/web=failed/panic " || st.State != interpret.StatePartial {
			t.Errorf("got %s", outcomes(st))
		}
		if msg := st.Manifests[0].Scores[1].Message; !strings.Contains(msg, "out of luck") || len(msg) > 600 {
			t.Errorf("message %q", msg)
		}
		if n := calls.Load(); n > 80 {
			t.Errorf("called %d times in an hour", n)
		}
	})
}

// Every change is logged, the same one twice as well, and every removal (cases 155, 162).
func TestChangesAreLogged(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log, lines := recorded()
		_, _, h, _ := r.running(func(c *agent.Config) { c.Log, c.Events = log, nil })
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))))
		for range 3 { // changed again before every full pass
			time.Sleep(time.Minute)
			r.dev.Put("/etc/a", "x")
			time.Sleep(time.Second)
			h.Control(agent.Control{Blocked: true})
			h.Control(agent.Control{})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := strings.Count(lines.String(), "cause=drift"); n != 3 {
			t.Errorf("%d corrections of 3 were logged:\n%s", n, lines)
		}
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := lines.String(); !strings.Contains(s, "msg=removed") || !strings.Contains(s, `resource="file:/etc/b"`) {
			t.Errorf("the removal is not in the log:\n%s", s)
		}
	})
}

// What is refused is a failure, and logged as one, with its code; what waits for a person is not (S18, S19).
func TestRefusalsAreErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log, lines := recorded()
		_, f, h, _ := r.running(withLog(log))
		a := file("a", "/etc/a", "1")
		offer(t, h, intent(1, preset(score.Guarded, manifest("m", a, file("b", "/etc/b", "1")))))
		later(time.Second)
		a.Decommission = true
		m := preset(score.Guarded, manifest("m", a, file("b", "/etc/b", "1")))
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		later(time.Second)
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		if s := lines.String(); strings.Contains(s, "level=error") || !strings.Contains(s, "pending_signature") {
			t.Fatalf("what waits:\n%s", s)
		}
		good := interpret.Approval{Manifest: "m", Score: "a", Action: interpret.ActionDecommission, Effect: plan.Actions[0].Effect, Resources: plan.Actions[0].Resources, SpecDigest: plan.Actions[0].SpecDigest}
		for code, ask := range map[interpret.Code]func(){
			"approval_resource": func() {
				bad := good
				bad.Resources = []score.Resource{"file:/etc/b"}
				f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: []interpret.Approval{bad}})
			},
			"expired": func() {
				if err := h.Operation(interpret.Operation{ID: "late", Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: []interpret.Approval{good}, Expires: time.Now().Add(-time.Hour)}, "late"); err != nil {
					t.Error(err)
				}
				later(time.Second)
				if rc := f.answer(t, "late"); rc.Result != interpret.ResultRefused || rc.Code != "expired" {
					t.Errorf("expired: %+v", rc)
				}
			},
			interpret.CodePlanChanged: func() {
				f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: strings.Repeat("0", 64), Approvals: []interpret.Approval{good}})
			},
			"untrusted": func() { h.Refused("untrusted", "it is signed by a stranger") }, // as the link tells it
		} {
			lines.Reset()
			ask()
			if s := lines.String(); !strings.Contains(s, "level=error") || !strings.Contains(s, "code="+string(code)) {
				t.Errorf("%s:\n%s", code, s)
			}
			r.content("/etc/a", "1")
		}
	})
}
