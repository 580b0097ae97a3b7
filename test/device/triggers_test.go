//go:build device && linux

package device

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// Each of the four triggers brings a document by itself. The other three are out of the way by what the operator and
// the server do, not by a switch in the agent (H09, H38; cases 108, 110).
func TestEachTriggerIsEnough(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	content := func(name string) { // publishes, and waits for the file
		t.Helper()
		before := s.clients()
		s.converged(s.publish(file("conf", "/etc/kiosk/app.conf", name)))
		if after := s.clients(); len(before) != 1 || len(after) != 1 || before[0].Cid != after[0].Cid {
			t.Errorf("%s: it has connected again, and may have got it so", name)
		}
		if got := s.run("cat", "/etc/kiosk/app.conf"); got != name {
			t.Errorf("%s: the file holds %q", name, got)
		}
	}
	// No control service answers so far, so heartbeats bring nothing, and the slow poll comes after 4 minutes.

	// connect: published while the agent does not run.
	g := s.publish(file("conf", "/etc/kiosk/app.conf", "connect"))
	s.run("systemctl", "start", agentUnit)
	s.converged(g)

	// push: published to an agent that is connected and has fetched already.
	content("push")

	// heartbeat: the server sends nothing on when something is stored, and the poll is a day away.
	s.republish(false)
	stop := s.control(fleet.ServeOptions{Interval: 5 * time.Second, Poll: 24 * time.Hour, Reconnect: 5 * time.Second})
	content("heartbeat")

	// poll: the control side asks for one every 5 s, and then goes.
	stop()
	stop = s.control(fleet.ServeOptions{Interval: 5 * time.Second, Poll: 5 * time.Second, Reconnect: 5 * time.Second})
	beats := s.in()
	box.Until(t, patience, "a heartbeat answered", func() error { return more(s.in(), beats, 2) })
	stop()
	content("poll")
}

// republish lets the server send on what is stored, or not.
func (s *site) republish(on bool) {
	s.t.Helper()
	js, err := jetstream.New(s.srv.ConnectOperator())
	s.must(err)
	stream, err := js.Stream(s.t.Context(), wire.StreamDesired)
	s.must(err)
	c := stream.CachedInfo().Config
	c.RePublish = nil
	if on {
		c.RePublish = &jetstream.RePublish{Source: wire.DesiredSubject(">"), Destination: wire.AllConfig}
	}
	_, err = js.UpdateStream(s.t.Context(), c)
	s.must(err)
}
