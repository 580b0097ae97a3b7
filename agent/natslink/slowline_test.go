package natslink

import (
	"crypto/rand"
	"encoding/base64"
	"net"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// largest makes a document of pi1 that is as large as one may be, within a few KiB.
func (r *rig) largest(generation uint64) (frame []byte, st wire.Statement) {
	r.t.Helper()
	noise := make([]byte, wire.MaxPayload-8<<10) // what base64 adds, gzip takes away again
	rand.Read(noise)
	frame, st = seal(r.t, pi1, generation, r.operator, func(_ *wire.Statement, a *score.Assignment) {
		a.Spec.Manifests[0].Spec.Scores[0].Spec = score.File{Path: "/etc/noise", Content: base64.StdEncoding.EncodeToString(noise), Mode: 0o644}
	})
	if len(frame) < wire.MaxPayload-16<<10 {
		r.t.Fatalf("the document has %d bytes only", len(frame))
	}
	return frame, st
}

// slow makes connections from now on slow for what the server says.
func (p *proxy) slow(rate int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = rate
}

// A slowConn lets through so many bytes a second of what is written to it, as a mobile line does.
type slowConn struct {
	net.Conn
	rate int
}

func (c slowConn) Write(b []byte) (n int, err error) {
	const tick = 10 * time.Millisecond
	due := time.Now()
	for n < len(b) {
		piece := min(max(c.rate/int(time.Second/tick), 1), len(b)-n)
		due = due.Add(time.Duration(piece) * time.Second / time.Duration(c.rate))
		<-time.After(time.Until(due))
		m, err := c.Conn.Write(b[n : n+piece])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// The largest document comes over a slow line: heartbeats keep their pace meanwhile, the connection is kept, the
// document is asked for once, and what the control side says next is done (H41).
func TestHeartbeatsBesideASlowDownload(t *testing.T) {
	const rate = wire.MaxPayload / 2 // bytes a second
	for _, tt := range []struct {
		name string
		off  trigger
		asks int
	}{
		{"pushed", onConnect | onHeartbeat, 0},
		{"fetched", onPush, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			next := r.answerWith(wire.ControlEnvelope{})
			p := newProxy(t, r.srv.URL)
			p.slow(rate)
			o := r.options()
			o.Servers = []string{p.url()}
			o.tune.heartbeat, o.tune.timeout, o.tune.off = 50*time.Millisecond, 40*time.Millisecond, tt.off
			l, h, _ := r.run(o)
			r.online(l)
			r.beats(3)
			frame, st := r.largest(1)
			ask := "PUB " + wire.FetchSubject(wire.DeviceKey(pi1)) + " "
			asked, begun := p.count(ask), time.Now()
			r.put(frame, wire.Announce(st))
			next <- wire.ControlEnvelope{Generation: 1, Digest: st.Digest, Size: st.Size, Blocked: true}
			for len(r.asked) > 0 {
				<-r.asked
			}
			h.generation(t, 1)
			took, came := time.Since(begun), len(r.asked)
			t.Logf("%d bytes took %s, with %d heartbeats beside", len(frame), took, came)
			if took < time.Second {
				t.Fatalf("the line is not slow: %s", took)
			}
			// Each period is within 10 % of the nominal one; the rest is for a machine that is busy.
			if nominal := int(took / o.tune.heartbeat); came < nominal/3 || came > nominal*5/4 {
				t.Errorf("%d heartbeats in %s, nominally %d", came, took, nominal)
			}
			h.until(t, "blocked", func() bool { return h.control.Blocked })
			if n := p.connects(); n != 1 {
				t.Errorf("%d connections", n)
			}
			if n := p.count(ask) - asked; n != tt.asks {
				t.Errorf("asked for it %d times, want %d", n, tt.asks)
			}
		})
	}
}
