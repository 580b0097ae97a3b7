package natslink

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// One connection, no consumer, whatever a device does (H40, cases 108, 110).
func TestOneConnectionAndNoConsumer(t *testing.T) {
	r := newRig(t)
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope { return &wire.ControlEnvelope{} })
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers = []string{p.url()}
	l, h, _ := r.run(o)
	for i := range uint64(20) { // quick disconnects
		r.online(l)
		r.publish(i + 1)
		h.generation(t, i+1)
		p.cut()
	}
	r.online(l)
	r.report(l, status("instance-1", 1))
	r.beats(3)
	conns, err := r.srv.Embedded().Connz(&server.ConnzOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mine := 0
	for _, c := range conns.Conns {
		if strings.HasPrefix(c.Name, "continuo-agent") {
			mine++
		}
	}
	if mine != 1 {
		t.Errorf("%d connections", mine)
	}
	for _, name := range []string{wire.StreamDesired, wire.StreamActual} {
		s, err := r.js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().State.Consumers; n != 0 {
			t.Errorf("%d consumers on %s", n, name)
		}
	}
}

// When a link stops, nothing of it is left, connected or not.
func TestNothingIsLeftRunning(t *testing.T) {
	r := newRig(t)
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope { return &wire.ControlEnvelope{} })
	before := runtime.NumGoroutine()
	for range 5 {
		l, _, stop := r.run(r.options())
		r.online(l)
		r.report(l, status("instance-1", 1))
		stop()
		o := r.options()
		o.Servers = []string{"nats://127.0.0.1:1"}
		l, _, stop = r.run(o)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Report(ctx, status("instance-1", 1)) }()
		cancel()
		if err := <-done; err == nil {
			t.Error("reported to nobody")
		}
		stop()
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

// The servers are a list, and the first may be dead (X20).
func TestSecondServer(t *testing.T) {
	r := newRig(t)
	r.publish(1)
	o := r.options()
	o.Servers = []string{"nats://127.0.0.1:1", r.srv.URL}
	_, h, _ := r.run(o)
	h.generation(t, 1)
}

// A server that is not there at the start, and one that goes and comes back, cost nothing but time (H15).
func TestServerLateAndRestarted(t *testing.T) {
	r := newRig(t)
	r.publish(1)
	r.srv.Stop()
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers = []string{p.url()}
	l, h, _ := r.run(o)
	for p.connects() < 3 {
		runtime.Gosched()
	}
	r.restart()
	h.generation(t, 1)
	r.srv.Kill()
	r.restart() // on the same store
	r.online(l)
	r.publish(2)
	h.generation(t, 2)
	p.setDown(true)
	r.publish(3)
	r.publish(4)
	p.setDown(false)
	h.generation(t, 4)
}

// Heartbeats keep their pace while the agent takes its time over a document (H39, H41).
func TestHeartbeatsDoNotWait(t *testing.T) {
	r := newRig(t)
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope { return &wire.ControlEnvelope{} })
	r.publish(1)
	l, err := New(r.options())
	if err != nil {
		t.Fatal(err)
	}
	h := newHandler()
	h.block = make(chan struct{})
	r.start(l, h)
	r.beats(3)
	const n = 20
	begun := time.Now()
	r.beats(n)
	took, nominal := time.Since(begun), n*l.o.tune.heartbeat
	// Each period is within 10 % of the nominal one; the rest is for a machine that is busy.
	if took < nominal*8/10 || took > nominal*3 {
		t.Errorf("%d heartbeats took %s, nominally %s", n, took, nominal)
	}
	if h.Pulse().Generation != 0 {
		t.Error("the document was taken")
	}
	close(h.block)
	h.generation(t, 1)
}

// A connection that brings no signed answers is left for another one.
func TestWatchdog(t *testing.T) {
	r := newRig(t)
	silent := make(chan struct{})
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope {
		select {
		case <-silent:
			return nil
		default:
			return &wire.ControlEnvelope{}
		}
	})
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers = []string{p.url()}
	o.tune.timeout, o.tune.watchdog = 50*time.Millisecond, 300*time.Millisecond
	r.run(o)
	for begun := time.Now(); time.Since(begun) < 2*o.tune.watchdog; {
		r.beats(1)
	}
	if n := p.connects(); n != 1 {
		t.Errorf("%d connections while answers came", n)
	}
	close(silent)
	for deadline := time.Now().Add(patience); p.connects() < 3; {
		if time.Now().After(deadline) {
			t.Fatal("it holds on to a connection without answers")
		}
		r.beats(1)
	}
}

// Answers of a stranger, to another heartbeat or for another device decide nothing (H65).
func TestUntrustedControl(t *testing.T) {
	r := newRig(t)
	trusted := r.control
	r.control = newSigner(t)
	c := r.publish(1)
	c.Blocked, c.Reconnect = true, 3600
	r.answerWith(c)
	o := r.options()
	o.Trust.keys.control = trustIn(t, wire.KindHeartbeat, trusted, r.operator)
	o.tune.off = allTriggers &^ onHeartbeat
	o.KeepWindow = func(time.Duration) { t.Error("a window was learnt") }
	_, h, _ := r.run(o)
	h.has(t, CodeUntrustedBeat)
	r.beats(5)
	h.change(func() {
		if h.control.Blocked || h.pulse.Generation != 0 || h.reports[CodeUntrustedBeat] != 1 {
			t.Errorf("control %+v, generation %d, %d reports", h.control, h.pulse.Generation, h.reports[CodeUntrustedBeat])
		}
	})
}

// Each field of the answer does what it says (S24).
func TestControlEnvelope(t *testing.T) {
	r := newRig(t)
	next := r.answerWith(wire.ControlEnvelope{})
	kept := make(chan time.Duration, 10)
	o := r.options()
	o.KeepWindow = func(d time.Duration) { kept <- d }
	l, h, _ := r.run(o)
	if d := <-kept; d != wire.ReconnectBound.Default {
		t.Errorf("the default window is %s", d)
	}
	next <- wire.ControlEnvelope{Blocked: true, Reconnect: 120, Poll: 77}
	h.until(t, "blocked", func() bool { return h.control.Blocked })
	if d := <-kept; d != 2*time.Minute {
		t.Errorf("the window is %s", d)
	}
	l.mu.Lock()
	poll := l.poll
	l.mu.Unlock()
	if poll != 77*time.Second {
		t.Errorf("the poll interval is %s", poll)
	}
	next <- wire.ControlEnvelope{}
	h.until(t, "not blocked", func() bool { return !h.control.Blocked })
	for seconds, want := range map[uint32]time.Duration{0: 30 * time.Second, 1: 5 * time.Second, 40: 40 * time.Second, 1 << 30: time.Hour} {
		o := r.options()
		o.tune.heartbeat = 0
		l, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		l.h = newHandler()
		if got := l.follow(wire.ControlEnvelope{Interval: seconds}); got != want {
			t.Errorf("interval %d gives %s", seconds, got)
		}
	}
}

// A heartbeat says how the agent is.
func TestHeartbeatContent(t *testing.T) {
	r := newRig(t)
	c := r.publish(3)
	r.answerWith(c)
	_, h, _ := r.run(r.options())
	h.generation(t, 3)
	h.change(func() {
		h.pulse.State, h.pulse.Pending, h.pulse.Problems, h.pulse.Store = "drifted", 2, 1, "store_recovered"
	})
	r.beats(1)
	hb := r.beats(1)
	if hb.Generation != 3 || string(hb.Digest) != string(c.Digest) || hb.Outcome != "drifted" || hb.Pending != 2 || hb.Health != "problems" ||
		hb.Store != "store_recovered" || hb.Agent != "test" || hb.Boot != "boot-1" || hb.Instance != "instance-1" {
		t.Errorf("got %+v", hb)
	}
	if other := r.beats(1); string(other.Nonce) == string(hb.Nonce) || len(hb.Nonce) != 16 {
		t.Error("the nonce is not fresh")
	}
}

// Reconnects are spread over the window, every one anew; the window holds at the start too (5.9).
func TestSpread(t *testing.T) {
	s := newSpread(Options{Window: time.Minute})
	longest, shortest := time.Duration(0), time.Hour
	for range 2000 {
		_, d := s.next([]nats.Server{{}}, nats.ServerInfo{})
		longest, shortest = max(longest, d), min(shortest, d)
		s.connected()
		if f := s.first(); f >= time.Minute {
			t.Fatalf("the first connection waits %s", f)
		}
	}
	if longest < 55*time.Second || longest >= time.Minute || shortest > 5*time.Second {
		t.Errorf("delays from %s to %s", shortest, longest)
	}
	if d := newSpread(Options{}).delay(); d >= wire.ReconnectBound.Min {
		t.Errorf("a device that was never connected waits %s", d)
	}
	if d := newSpread(Options{atOnce: true, Window: time.Hour}).delay(); d > time.Second {
		t.Errorf("at once is after %s", d)
	}
	several := []nats.Server{{}}
	several = append(several, several...)
	s.connected()
	if _, d := s.next(several, nats.ServerInfo{}); d == 0 {
		t.Error("the round begins without a delay")
	}
	if second, d := s.next(several, nats.ServerInfo{}); d != 0 || second != &several[1] {
		t.Error("the second server is not tried at once")
	}
}

var _ agent.Handler = (*handler)(nil)
