//go:build device && linux

package device

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// Each of the four triggers brings a document by itself. The other three are out of the way by what the operator and
// the server do, not by a switch in the agent (H17, H35; case 108).
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
		s.holds(name)
	}
	const never = 24 * time.Hour
	// told lets the device hear from a control service, and gives a function that stops that.
	told := func(poll time.Duration) (stop func()) {
		t.Helper()
		stop = s.control(fleet.ServeOptions{Interval: 5 * time.Second, Poll: poll, Reconnect: 5 * time.Second})
		begun := time.Now()
		box.Until(t, patience, "a heartbeat", func() error {
			if heard := s.state().LastHeard; !heard.After(begun) {
				return fmt.Errorf("the last one came %s", heard)
			}
			return nil
		})
		return stop
	}

	s.republish(false) // no push: the server sends nothing on when something is stored
	s.run("systemctl", "start", agentUnit)
	stop := told(never)
	content("heartbeat")

	stop()
	told(5 * time.Second)()
	content("poll")

	told(never)()
	s.republish(true)
	content("push")

	s.run("systemctl", "stop", agentUnit)
	g := s.publish(file("conf", "/etc/kiosk/app.conf", "connect"))
	s.run("systemctl", "start", agentUnit) // and nobody answers its heartbeats
	s.converged(g)
	s.holds("connect")
}

// republish lets the server send on what is stored, or not.
func (s *site) republish(on bool) {
	s.t.Helper()
	js, err := jetstream.New(s.srv.ConnectUnbound())
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
