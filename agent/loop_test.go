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
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// What cannot even be looked at is tried again with the same growing pauses as what cannot be changed.
func TestObserveFailsForLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Fail(memory.OpFile, "file:/etc/a", topology.Faultf(topology.CodeIO, "io"))
		_, f, h, _ := r.running()
		rec := r.dev.Record()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(rec.Calls()); n < 10 || n > 60 {
			t.Errorf("looked %d times in an hour", n)
		}
		if st := f.last(); st.State != interpret.StateFailed {
			t.Errorf("state %s", st.State)
		}
	})
}

// A failure is not tried again because something else happened; a new generation tries it at once (H10).
func TestEventsDoNotHurryRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Fail(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeNoSpace, "no space left"))
		_, f, h, _ := r.running()
		m := manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))
		offer(t, h, intent(1, m))
		time.Sleep(20 * time.Minute) // its pause is five minutes by now
		synctest.Wait()
		f.last()
		rec := r.dev.Record()
		for range 60 {
			r.dev.Put("/etc/b", "x")
			time.Sleep(time.Second)
		}
		if n := count(rec, memory.OpWriteFile, "file:/etc/a"); n > 1 {
			t.Errorf("tried %d times in a minute", n)
		}
		synctest.Wait()
		if st := f.last(); !strings.Contains(st.Manifests[0].Scores[0].Message, "no space left; next try at ") {
			t.Errorf("message %q", st.Manifests[0].Scores[0].Message)
		}
		r.dev.Heal()
		m.Metadata.Generation = 2
		offer(t, h, intent(2, m))
		time.Sleep(time.Second)
		synctest.Wait()
		if c, _ := r.dev.Read("/etc/a"); c != "1" {
			t.Error("a new generation waits for the old pause")
		}
	})
}

// Somebody else who changes a file all the time does not get the disk written all the time, and is told of (cases 161).
func TestFight(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Minute)
		rec := r.dev.Record()
		for range 3600 {
			r.dev.Put("/etc/a", "theirs")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := count(rec, memory.OpWriteFile, "file:/etc/a"); n < 10 || n > 40 {
			t.Errorf("written %d times in an hour", n)
		}
		st := f.last()
		if outcomes(st) != "m/a=drifted/contested " || !strings.Contains(st.Manifests[0].Scores[0].Message, "again and again") {
			t.Errorf("got %s: %s", outcomes(st), st.Manifests[0].Scores[0].Message)
		}
		time.Sleep(time.Hour) // they have given up
		r.dev.Put("/etc/a", "once more")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if c, _ := r.dev.Read("/etc/a"); c != "1" {
			t.Error("a row of long ago still counts")
		}
		if st := f.last(); st.State != interpret.StateConverged {
			t.Errorf("state %s", st.State)
		}
	})
}

// The first report comes at once; a link that fails, or hangs, holds up nothing; a stop ends everything at once (X87, H41).
func TestLinkThatFails(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			link := &badLink{hangs: hangs, handler: make(chan agent.Handler, 1)}
			begun := time.Now()
			a := agent.New(agent.Config{Runner: r.runner, Open: open, Link: link, Events: r.dev.Events(), Log: quiet()})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { a.Run(ctx); close(done) }()
			h := <-link.handler
			synctest.Wait()
			if link.reports.Load() != 1 || time.Since(begun) > 0 {
				t.Errorf("%d reports after %s", link.reports.Load(), time.Since(begun))
			}
			offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
			time.Sleep(time.Minute)
			r.dev.Put("/etc/a", "x")
			time.Sleep(2 * time.Second)
			if c, _ := r.dev.Read("/etc/a"); c != "1" {
				t.Error("the loop waits for the link")
			}
			if p := a.Pulse(); p.Generation != 1 || p.State != interpret.StateConverged {
				t.Errorf("pulse %+v", p)
			}
			if n := link.reports.Load(); !hangs && (n < 5 || n > 20) {
				t.Errorf("%d reports tried in a minute", n)
			}
			stop := time.Now()
			cancel()
			<-done
			if d := time.Since(stop); d > time.Second {
				t.Errorf("stopping took %s", d)
			}
		})
	}
}

type badLink struct {
	hangs   bool
	handler chan agent.Handler
	reports atomic.Int32
}

func (l *badLink) Run(ctx context.Context, h agent.Handler) { l.handler <- h; <-ctx.Done() }

func (l *badLink) Inform(ctx context.Context, _ interpret.DeviceInfo) error {
	return l.Report(ctx, interpret.DeviceStatus{})
}

func (l *badLink) Ask(ctx context.Context, _ interpret.ApprovalRequests) error {
	return l.Report(ctx, interpret.DeviceStatus{})
}

func (l *badLink) Report(ctx context.Context, _ interpret.DeviceStatus) error {
	l.reports.Add(1)
	if l.hangs {
		<-ctx.Done()
	}
	return errors.New("cannot report")
}

// blocked makes every call of op hang until its context ends, or for a time.
func (r *rig) blocked(op memory.Op, d time.Duration) {
	r.dev.Before(func(ctx context.Context, c memory.Call) error {
		if c.Op == op {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	})
}

// A stop while an interpreter hangs ends within a second (X87).
func TestStopWhileBlocked(t *testing.T) {
	for _, op := range []memory.Op{memory.OpFile, memory.OpEnsureImage, memory.OpRun} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, _, h, stop := r.running()
			r.blocked(op, 24*time.Hour)
			offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), container("web", "web"))))
			time.Sleep(time.Minute)
			begun := time.Now()
			stop()
			if d := time.Since(begun); d > time.Second {
				t.Errorf("%s: stopping took %s", op, d)
			}
		})
	}
}

// A first pass that hangs does not keep the device from its fleet, nor from the intent that mends it (cases 139, H39).
func TestFirstPassHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		offer(t, h, intent(1, manifest("m", container("web", "web"))))
		time.Sleep(time.Minute)
		stop()
		r.restart()
		r.blocked(memory.OpContainer, 24*time.Hour)
		begun := time.Now()
		_, f, h, _ := r.running()
		if d := time.Since(begun); d > time.Minute {
			t.Errorf("connected after %s", d)
		}
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "2"))))
		time.Sleep(16 * time.Minute) // the call that hangs has been given up
		synctest.Wait()
		if c, _ := r.dev.Read("/etc/a"); c != "2" {
			t.Error("the second intent was not played")
		}
		if st := f.last(); st.Generation != 2 || st.ConvergedAt(2) || st.Phase != interpret.PhaseRunning { // it is looking at what it has to remove
			t.Errorf("generation %d is %s", st.Generation, st.Phase)
		}
	})
}

// A download that hangs gives way to a newer intent, and a device that is told to only
// observe begins nothing more (cases 139, S25).
func TestPassIsEndedEarly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.blocked(memory.OpEnsureImage, 24*time.Hour)
		offer(t, h, intent(1, manifest("m", container("web", "web"), file("a", "/etc/a", "1"))))
		time.Sleep(time.Minute)
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "2"))))
		time.Sleep(time.Second)
		synctest.Wait()
		if st := f.last(); !st.ConvergedAt(2) {
			t.Errorf("generation %d: %s", st.Generation, outcomes(st))
		}
	})
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Parallel = 1
		_, f, h, _ := r.running()
		r.blocked(memory.OpWriteFile, time.Minute)
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), file("c", "/etc/c", "1"))))
		time.Sleep(30 * time.Second)
		h.Control(agent.Control{Blocked: true})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if st := f.last(); outcomes(st) != "m/a=unchanged m/b=drifted/blocked m/c=drifted/blocked " {
			t.Errorf("got %s", outcomes(st))
		}
	})
}

// A heartbeat never mixes two intents, whoever offers from wherever (S21, S39).
func TestPulseIsOfOneIntent(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		a, f, h, _ := r.running()
		const n = 30
		digest, contents := map[uint64]string{0: ""}, map[uint64]string{}
		var all []agent.Intent
		for g := uint64(1); g <= n; g++ {
			contents[g] = fmt.Sprint("content ", g)
			all = append(all, intent(g, manifest("m", file("a", "/etc/a", contents[g]))))
			digest[g] = all[g-1].Digest
		}
		for _, in := range all {
			go func() {
				if err := h.Offer(in); err != nil && !errors.As(err, new(*agent.Refusal)) {
					t.Error(err)
				}
			}()
			go h.Refused("rubbish", fmt.Sprint("document ", in.Generation))
			go func() {
				for range 10 {
					p := a.Pulse()
					if p.Digest != digest[p.Generation] {
						t.Errorf("generation %d has the digest %s", p.Generation, p.Digest)
					}
					if c, _ := r.dev.Read("/etc/a"); p.State == interpret.StateConverged && c < contents[p.Generation] && len(c) == len(contents[p.Generation]) {
						t.Errorf("generation %d has converged with %q", p.Generation, c)
					}
				}
			}()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		st := f.last()
		if c, _ := r.dev.Read("/etc/a"); c != contents[n] || !st.ConvergedAt(n) || a.Pulse().Generation != n {
			t.Errorf("content %q, status %d %s %s", c, st.Generation, st.Phase, st.State)
		}
	})
	bubble(t, func(t *testing.T) { // between the intent and its first pass
		r := newRig(t)
		a, _, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
		time.Sleep(time.Second)
		r.blocked(memory.OpFile, time.Minute)
		offer(t, h, intent(2, manifest("m", file("a", "/etc/a", "2"))))
		if p := a.Pulse(); p.Generation != 2 || p.State != interpret.StateConverging {
			t.Errorf("pulse %+v", p)
		}
	})
}

func (l *badLink) Send(context.Context, interpret.Receipt) error { return errors.New("cannot send") }
