package natslink

import (
	"runtime"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
)

const allTriggers = onPush | onConnect | onHeartbeat | onPoll

// Each of the four triggers is enough when the other three are off (H17, case 108).
func TestEachTriggerIsEnough(t *testing.T) {
	t.Run("push", func(t *testing.T) {
		r := newRig(t)
		o := r.options()
		o.tune.off = allTriggers &^ onPush
		l, h, _ := r.run(o)
		r.online(l)
		r.publish(1)
		h.generation(t, 1)
	})
	t.Run("connect", func(t *testing.T) {
		r := newRig(t)
		r.publish(1)
		o := r.options()
		o.tune.off = allTriggers &^ onConnect
		_, h, _ := r.run(o)
		h.generation(t, 1)
	})
	t.Run("reconnect", func(t *testing.T) {
		r := newRig(t)
		p := newProxy(t, r.srv.URL)
		o := r.options()
		o.Servers = []string{p.url()}
		o.tune.off = allTriggers &^ onConnect
		l, h, _ := r.run(o)
		r.online(l)
		p.setDown(true)
		r.publish(3)
		p.setDown(false)
		h.generation(t, 3)
	})
	t.Run("heartbeat", func(t *testing.T) {
		r := newRig(t)
		o := r.options()
		o.tune.off = allTriggers &^ onHeartbeat
		r.answerWith(r.publish(1))
		_, h, _ := r.run(o)
		h.generation(t, 1)
	})
	t.Run("poll", func(t *testing.T) {
		r := newRig(t)
		o := r.options()
		o.tune.off = allTriggers &^ onPoll
		o.tune.poll = 50 * time.Millisecond
		l, h, _ := r.run(o)
		r.online(l)
		r.publish(1)
		h.generation(t, 1)
	})
	t.Run("none", func(t *testing.T) { // that the switches work at all
		r := newRig(t)
		o := r.options()
		o.tune.off = allTriggers
		o.tune.poll = 20 * time.Millisecond
		r.answerWith(r.publish(1))
		_, h, _ := r.run(o)
		r.beats(10)
		if g := h.Pulse().Generation; g != 0 {
			t.Errorf("at generation %d with every trigger off", g)
		}
	})
}

// The body is fetched only when the generation advances (S02, S12, S10), and 100 heartbeats are all alike in size (S11).
func TestHeartbeatsFetchNothingNew(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers = []string{p.url()}
	o.tune.heartbeat = 2 * time.Millisecond
	o.tune.off = onPush
	say := r.answerWith(r.publish(1))
	_, h, _ := r.run(o)
	h.generation(t, 1)
	r.beats(2)
	before := p.count("get.d.")
	r.beats(100)
	if n := p.count("get.d.") - before; n != 0 {
		t.Errorf("%d fetches in 100 heartbeats without news", n)
	}
	r.publish(2)
	r.publish(3)
	say <- r.publish(4)
	h.generation(t, 4)
	r.beats(20)
	if n := p.count("get.d.") - before; n != 1 {
		t.Errorf("%d fetches for an advance by three", n)
	}
}

// A replica that is behind is asked again, and what was fetched counts, not what was announced (S33).
func TestBehindAndAhead(t *testing.T) {
	t.Run("behind", func(t *testing.T) {
		r := newRig(t)
		p := newProxy(t, r.srv.URL)
		o := r.options()
		o.Servers = []string{p.url()}
		o.tune.off = allTriggers &^ onHeartbeat
		r.publish(5)
		frame, st := seal(t, pi1, 6, r.operator)
		r.answer(func(wire.Heartbeat) *wire.ControlEnvelope {
			return &wire.ControlEnvelope{Generation: 6, Digest: st.Digest}
		})
		_, h, _ := r.run(o)
		h.generation(t, 5) // it is newer than what there was, but not what was announced
		for p.count("get.d.") < 4 {
			r.beats(1)
		}
		r.put(frame, nil)
		h.generation(t, 6)
	})
	t.Run("ahead", func(t *testing.T) {
		r := newRig(t)
		p := newProxy(t, r.srv.URL)
		o := r.options()
		o.Servers = []string{p.url()}
		o.tune.off = allTriggers &^ onHeartbeat
		old := r.publish(5)
		now := r.publish(6)
		r.answer(func(hb wire.Heartbeat) *wire.ControlEnvelope {
			c := old
			if hb.Generation == 6 {
				c = now
			}
			return &c
		})
		_, h, _ := r.run(o)
		h.generation(t, 6)
		r.beats(5)
		if n := p.count("get.d."); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
	t.Run("restored from a backup", func(t *testing.T) { // case 132
		r := newRig(t)
		p := newProxy(t, r.srv.URL)
		o := r.options()
		o.Servers = []string{p.url()}
		o.tune.off = allTriggers &^ onHeartbeat
		say := r.answerWith(r.publish(42))
		_, h, _ := r.run(o)
		h.generation(t, 42)
		say <- r.publish(37)
		h.has(t, agent.CodeRegressed)
		h.has(t, CodeControlPlane)
		r.beats(20)
		if n := p.count("get.d."); n != 2 || h.Pulse().Generation != 42 {
			t.Errorf("%d fetches, at generation %d", n, h.Pulse().Generation)
		}
		say <- r.publish(43)
		h.generation(t, 43)
		h.hasNot(t, CodeControlPlane)
	})
}

// A device that is connected before the control service is there asks again soon, and not an interval later.
func TestHeartbeatBeforeTheControlService(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers, o.tune.heartbeat = []string{p.url()}, time.Hour
	r.run(o)
	for late := time.Now().Add(patience); p.count(wire.HeartbeatSubject(pi1)) < 2; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatal("one heartbeat, and nobody heard it")
		}
	}
}
