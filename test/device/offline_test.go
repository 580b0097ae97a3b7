//go:build device && linux

package device

import (
	"fmt"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// in counts the messages that the device has sent to the server.
func (s *site) in() int64 {
	s.t.Helper()
	n := int64(0)
	for _, c := range s.clients() {
		n += c.InMsgs
	}
	return n
}

func more(now, before, by int64) error {
	if now < before+by {
		return fmt.Errorf("%d messages, and %d before", now, before)
	}
	return nil
}

// drifts edits the file of the device and waits until that is corrected: the agent works, whatever the network does.
func (s *site) drifts(content string) {
	s.t.Helper()
	s.sh("echo wrong >/etc/kiosk/app.conf")
	s.holds(content)
}

// holds waits until the file of the device is as it should be.
func (s *site) holds(content string) {
	s.t.Helper()
	box.Until(s.t, patience, "the file is right", func() error {
		if got, err := s.Exec(s.t.Context(), "cat", "/etc/kiosk/app.conf"); err != nil || got != content {
			return fmt.Errorf("it holds %q (%v)", got, err)
		}
		return nil
	})
}

// Whatever happens to the network and to the server, the device stays as it is and corrects drift, its agent is the
// same process, and what was published meanwhile arrives (H15, H35, H40, S01; cases 108, 118, 120).
func TestDeviceWithoutItsFleet(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	s.srv.Stop()
	s.run("systemctl", "start", agentUnit) // ready without a server: Type=notify waits for it
	pid := s.agentPID()
	publish := func(content string) uint64 {
		t.Helper()
		return s.publish(file("conf", "/etc/kiosk/app.conf", content+"\n"))
	}

	s.srv.Restart()
	s.control(fleet.ServeOptions{Interval: 5 * time.Second, Reconnect: 5 * time.Second})
	s.converged(publish("one")) // down at the start

	s.srv.Kill()
	s.drifts("one")
	outage(t, 30*time.Second)
	s.drifts("one")
	s.srv.Restart()
	s.converged(publish("two")) // down for a while

	s.srv.Stop()
	s.srv.Wipe()
	s.srv.Restart()
	s.srv.CreateStreams()
	s.problem(natslink.CodeNoDesired) // the store is empty: reported again, and nothing was removed
	s.drifts("two")
	if st := s.state(); st.Status.Generation != 2 || st.Status.State != interpret.StateConverged {
		t.Errorf("with an empty store it reports %s", show(st))
	}
	g := publish("three")
	if st := s.converged(g); len(st.Status.Problems) != 0 || g != 3 {
		t.Errorf("generation %d after the store was lost, with problems %v", g, st.Status.Problems)
	}

	s.Cut() // nobody hears of it: the connection looks as it was
	s.drifts("three")
	g = publish("four")
	outage(t, 5*time.Second)
	s.drifts("three")
	s.Heal()
	s.converged(g)

	s.relay.hang(true) // the server is frozen
	s.drifts("four")
	outage(t, 5*time.Second)
	s.relay.hang(false)
	s.converged(publish("five"))

	if now := s.agentPID(); now != pid {
		t.Errorf("the agent is process %s, and was %s", now, pid)
	}
	if n := s.run("systemctl", "show", "-P", "NRestarts", agentUnit); n != "0" {
		t.Errorf("the agent was restarted %s times", n)
	}
	s.connected() // one connection, after all of this
}

// outage lets a fault last.
func outage(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// A device that boots without any network makes true, from disk, what it accepted last: what drifted while it was off,
// the unit, the container and the host name (H35, S01; case 87).
func TestBootWithoutNetwork(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.run("pibox-image")
	s.converged(s.publish(fourKinds("right\n")...))
	s.sh("systemctl disable -q --now podman.socket podman.service podman-restart.service; sync -f /")
	s.srv.Stop()
	s.Box.Stop()
	s.Offline("sh", "-ec", "echo wrong >etc/kiosk/app.conf; rm etc/containers/systemd/web.container; echo other >etc/hostname")
	s.Up()
	s.Unplug()
	s.holds("right")
	box.Until(t, patience, "the rest is right too", func() error {
		_, err := s.Exec(t.Context(), "sh", "-ec", `systemctl is-active app.service web.service continuo-agent.service
			[ "$(podman inspect web --format '{{.State.Status}}')" = running ]
			[ "$(hostnamectl hostname)" = kiosk-7 ]`)
		return err
	})
	if _, err := s.Exec(t.Context(), "curl", "-s", "-m", "1", "http://"+box.HubIP); err == nil {
		t.Error("there is a network")
	}
	s.run("systemctl", "disable", "-q", "--now", "app.service") // and the next drift
	box.Until(t, patience, "drift is corrected", func() error {
		_, err := s.Exec(t.Context(), "sh", "-ec", "systemctl is-enabled app.service; systemctl is-active app.service")
		return err
	})

	s.Heal()
	s.srv.Restart()
	boot := s.run("cat", "/proc/sys/kernel/random/boot_id")
	s.until("a report after the boot", func(st fleet.DeviceState) error {
		if st.Status.Agent.Sequence == 0 || !st.Status.ConvergedAt(1) || st.Liveness != fleet.Live {
			return fmt.Errorf("it is %s (boot %s)", st.Status.State, boot)
		}
		return nil
	})
}
