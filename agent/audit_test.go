package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// auditSide is a fleet that keeps an audit, or fails to.
type auditSide struct {
	*fleetSide
	mu   sync.Mutex
	all  []interpret.AuditEntry
	fail bool
}

func (s *auditSide) Audit(_ context.Context, entries [][]byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail {
		return 0, errors.New("the fleet keeps no audit")
	}
	n := min(len(entries), 3)
	for _, b := range entries[:n] {
		var e interpret.AuditEntry
		if err := score.Decode(b, &e); err != nil {
			return 0, err
		}
		s.all = append(s.all, e)
	}
	return n, nil
}

func (s *auditSide) failing(fail bool) { s.mu.Lock(); defer s.mu.Unlock(); s.fail = fail }

// took gives what came since it was asked last.
func (s *auditSide) took() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.all {
		text := string(e.What)
		for _, part := range []string{e.Verb, e.Operation, string(e.Score), string(e.Cause), string(e.Decision), string(e.Result), string(e.Code)} {
			if part != "" {
				text += " " + part
			}
		}
		out = append(out, text)
	}
	s.all = nil
	return out
}

// audited starts an agent whose fleet keeps an audit.
func (r *rig) audited() (*auditSide, agent.Handler, func()) {
	side := &auditSide{}
	_, f, h, stop := r.running(func(c *agent.Config) {
		side.fleetSide = c.Link.(*fleetSide)
		c.Link = side
	})
	side.fleetSide = f
	return side, h, stop
}

// Every decision that is another one than before is written down, with the operation that allowed it, and so is what came of
// that. What stays as it is is not said again, by no pass and after no start, and costs not one write (G90).
func TestAuditOfDecisions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		s, h, stop := r.audited()
		later(time.Minute)
		if got := s.took(); !slices.Equal(got, []string{"begin first"}) {
			t.Errorf("an audit begins with %q", got)
		}
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1")), preset(score.Reviewed, manifest("v", file("b", "/etc/b", "1")))))
		later(time.Minute)
		got := s.took()
		slices.Sort(got)
		if want := []string{"decision a intent apply", "decision b intent pending pending_confirm"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		writes := r.disk.Stats().Writes
		later(3 * time.Hour)
		if n := r.disk.Stats().Writes - writes; n > 0 {
			t.Errorf("%d writes while nothing changed", n)
		}
		stop()
		r.restart()
		s, h, _ = r.audited()
		later(time.Hour)
		for _, text := range s.took() { // sent, and not written down as sent
			if !strings.HasPrefix(text, "decision") && text != "begin first" {
				t.Errorf("a start says %q", text)
			}
		}
		plan := s.plan(t, h)
		s.took()
		if r := s.ask(t, h, interpret.Operation{ID: "op-7", Verb: interpret.VerbInstall, Plan: plan.ID, Actor: "me"}); r.Result != interpret.ResultDone {
			t.Fatalf("%+v", r)
		}
		later(time.Minute)
		if got, want := s.took(), []string{"decision op-7 b intent apply", "operation install op-7 done"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		r.dev.Put("/etc/a", "x")
		later(time.Hour)
		r.dev.Put("/etc/a", "y")
		later(time.Hour)
		if got, want := s.took(), []string{"decision a drift apply"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		offer(t, h, intent(2))
		later(time.Hour)
		if got := fmt.Sprint(s.took()); !strings.Contains(got, "decision a absent") {
			t.Errorf("what is no longer wanted: %s", got)
		}
	})
}

// What was refused is written down once, however often it comes and whatever starts in between (H36, H65, G31).
func TestRefusedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Ceiling.Kinds = []score.Kind{score.KindService}
		s, h, stop := r.audited()
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "1"))))
		later(time.Minute)
		s.took()
		for range 3 {
			h.Refused("untrusted", "a document was refused: nobody whom this device trusts has signed it")
			h.Refused(agent.CodeLink, "the server cannot be trusted")
			if err := h.Offer(intent(1)); err == nil {
				t.Fatal("an older generation was taken")
			}
			later(time.Minute)
		}
		if got, want := s.took(), []string{"refusal untrusted", "refusal generation_regressed"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		stop()
		r.restart()
		r.runner.Ceiling.Kinds = []score.Kind{score.KindService}
		s, h, _ = r.audited()
		later(time.Minute)
		s.took()
		h.Refused("untrusted", "a document was refused: nobody whom this device trusts has signed it")
		later(time.Hour)
		if got := s.took(); len(got) > 0 {
			t.Errorf("after a start: %q", got)
		}
		op := interpret.Operation{ID: "one", Verb: interpret.VerbPlan, Expires: time.Now().Add(time.Hour)}
		for _, digest := range []string{"d", "other", "other"} {
			if err := h.Operation(op, digest); err != nil {
				t.Fatal(err)
			}
			later(time.Minute)
		}
		if got, want := s.took(), []string{"operation plan one done", "refusal plan one conflict operation_reused"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		offer(t, h, intent(3, manifest("m", file("a", "/etc/a", "1"))))
		h.Refused("untrusted", "a document was refused: nobody whom this device trusts has signed it")
		later(time.Minute)
		if got, want := s.took(), []string{"refusal untrusted"}; !slices.Equal(got, want) {
			t.Errorf("after something was accepted: %q, want %q", got, want)
		}
	})
}

// A score that may not be played at all is written down once.
func TestRefusedScore(t *testing.T) { // H67
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Ceiling.Kinds = []score.Kind{score.KindService}
		s, h, _ := r.audited()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		later(3 * time.Hour)
		if got, want := s.took(), []string{"begin first", "refusal a kind_not_allowed"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// An audit that nobody takes opens no gate and stops nothing that does no harm: what is missing is counted, told in the
// status, and told to the fleet when it is back (X79).
func TestAuditThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		s, h, _ := r.audited()
		s.failing(true)
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), file("gone", "/etc/gone", "data"))))
		later(time.Minute)
		for range 5 {
			for range 450 {
				r.store.Audit(store.Line{Entry: func(p store.Place) []byte {
					b, err := score.Encode(interpret.AuditEntry{APIVersion: score.APIVersion, Kind: interpret.AuditKind, What: interpret.AuditRefusal, Chain: p.Chain, Sequence: p.Sequence, Previous: p.Previous})
					if err != nil {
						t.Error(err)
					}
					return b
				}})
			}
			if err := r.store.FlushAudit(); err != nil {
				t.Fatal(err)
			}
		}
		r.store.Audit(store.Line{Entry: func(store.Place) []byte { return nil }}) // and one cannot be written at all
		signed := preset(score.Reviewed, manifest("m", file("a", "/etc/a", "2"), file("gone", "/etc/gone", "data")))
		signed.Spec.Scores[1].Decommission = true
		benign := manifest("n", file("b", "/etc/b", "1"))
		signed.Metadata.Generation = 2
		offer(t, h, intent(2, signed, benign))
		later(time.Hour)
		r.content("/etc/b", "1")
		r.content("/etc/gone", "data")
		st := s.last()
		gone, _ := scoreOf(st, "m", "gone")
		if gone.Outcome != interpret.Pending {
			t.Errorf("what destroys is %s", gone.Outcome)
		}
		if !slices.ContainsFunc(st.Problems, func(p interpret.Problem) bool {
			return p.Code == agent.CodeAuditLost && strings.Contains(p.Message, "50")
		}) {
			t.Errorf("problems %+v", st.Problems)
		}
		s.failing(false)
		later(time.Hour)
		got := fmt.Sprint(s.took())
		if !strings.Contains(got, "loss audit_lost") || !strings.Contains(got, "decision b intent apply") || !strings.Contains(got, "decision gone") {
			t.Errorf("when the fleet was back: %.2000s", got)
		}
		later(48 * time.Hour)
		for _, p := range s.last().Problems {
			t.Errorf("after two days: %+v", p)
		}
	})
}

// What is done or asked for at the device is written down, too: by who opens the books himself, and by who finds them taken.
func TestAuditOfLocalVerbs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.KeepAudit("pi-1")
		r.confirm(intent(1, manifest("m", file("a", "/etc/a", "1"))))
		dir := t.TempDir()
		if err := agent.LeaveAudit(dir, agent.By("export", "/etc/a", strings.Repeat("\x01", 5000))); err != nil {
			t.Fatal(err)
		}
		left, _, err := store.Open(store.Dir(dir), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = left.Close() })
		words, _, err := left.Asked()
		if err != nil || len(words) != 1 {
			t.Fatalf("%d words, %v", len(words), err)
		}
		r.disk.Put("asked/A", words[0])
		r.disk.Put("asked/B", []byte("rubbish"))
		s, _, _ := r.audited()
		later(time.Hour)
		got := s.took()
		want := []string{"begin first", "decision by-hand a intent apply", "local install by-hand done", "local export", "local"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if names, err := r.disk.List("asked"); err != nil || len(names) > 0 {
			t.Errorf("left %v, %v", names, err)
		}
	})
}

// The end of an operation is in the audit, wherever the power goes: once, or sent once more as it was.
func TestAuditOfOperationsAtPowerCuts(t *testing.T) {
	for cut := range 12 {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			s, h, stop := r.audited()
			offer(t, h, intent(1, preset(score.Reviewed, manifest("m", file("a", "/etc/a", "1")))))
			later(time.Second)
			plan := s.plan(t, h)
			before, steps := r.disk, 0
			var crashed *store.Mem
			before.Fault = func(st store.Step) error {
				if st.Op == "read" {
					return nil
				}
				if steps++; steps > cut {
					return store.ErrStopped
				}
				return nil
			}
			op := interpret.Operation{ID: "cut", Verb: interpret.VerbInstall, Plan: plan.ID, Expires: time.Now().Add(time.Hour)}
			err := h.Operation(op, "d")
			later(time.Second)
			stop()
			before.Fault = nil
			crashed = before.Crash(store.LoseAll)
			r.disk = crashed
			r.start()
			got := s.took()
			s, h, _ = r.audited()
			if err != nil { // it was not accepted, so it is offered again
				if err := h.Operation(op, "d"); err != nil {
					t.Fatal(err)
				}
			}
			later(time.Hour)
			n := 0
			for _, text := range append(got, s.took()...) {
				if strings.HasPrefix(text, "operation") && strings.Contains(text, " cut ") {
					n++
				}
			}
			if n == 0 || n > 2 {
				t.Errorf("cut after %d steps: %d entries", cut, n)
			}
		})
	}
}
