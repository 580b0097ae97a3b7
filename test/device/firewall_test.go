//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// wall is a firewall that lets in ssh, the server if reached is true, and a port that tells one version from another.
func wall(reached bool, port uint16, within time.Duration) score.Score {
	f := score.Firewall{
		Input: score.InputDrop, Confirm: &score.Confirm{Within: score.Duration(within)},
		Allow: []score.Allow{{Ports: []score.PortSpan{{First: 22}, {First: port}}}},
	}
	if reached {
		f.Allow = append(f.Allow, score.Allow{From: []string{box.HubIP + "/32"}})
	}
	return score.Score{ID: "wall", Spec: f}
}

// table is what the kernel has of ours.
func (s *site) table() string {
	s.t.Helper()
	return s.sh("nft -nn list table inet continuo 2>/dev/null || echo none")
}

// others is what the kernel has beside, with the numbers that it gave to everything.
func (s *site) others() string {
	s.t.Helper()
	return s.sh(`nft list tables | grep -v continuo | while read -r _ family name; do nft -a -nn list table $family $name; done`)
}

// open waits until our table lets in a port: the change is done, and not proved.
func (s *site) open(port int) {
	s.t.Helper()
	box.Until(s.t, patience, fmt.Sprintf("port %d is let in", port), func() error {
		if out, err := s.Exec(s.t.Context(), "nft", "-nn", "list", "table", "inet", "continuo"); err != nil || !strings.Contains(out, fmt.Sprintf("dport %d ", port)) {
			return fmt.Errorf("it is %q, %v", out, err)
		}
		return nil
	})
}

// back waits until our table is what it was.
func (s *site) back(want string) {
	s.t.Helper()
	box.Until(s.t, patience, "the firewall is what it was", func() error {
		if got := s.table(); got != want {
			return fmt.Errorf("it is\n%s\nwant\n%s", got, want)
		}
		return nil
	})
}

// A firewall that cuts the device off from its fleet is taken back: by the agent, by the next start of an agent that was
// killed inside the window, by a timer if there is no next start, and after a power cut. Those of others stay as they are
// to the byte. A firewall that was proved comes back from disk, also without the fleet (cases 104).
func TestFirewallCutsOff(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	// Answers of the server are no part of a connection that the kernel knows of, so that a firewall can shut them out;
	// and there are the tables of a container runtime.
	theirs := fmt.Sprintf(`nft -f - <<-E
		table inet theirs {
			chain in { type filter hook prerouting priority raw; tcp sport %[1]d notrack; }
			chain out { type filter hook output priority raw; tcp dport %[1]d notrack; }
		}
		table ip netavark { chain PREROUTING { type nat hook prerouting priority dstnat; tcp dport 8080 dnat to 192.0.2.2:80; }
		}
	E`, s.relay.port)
	s.sh(theirs)
	others := s.others()
	s.run("systemctl", "start", agentUnit)

	s.converged(s.publish(wall(true, 1001, time.Minute)))
	good := s.table()
	for _, want := range []string{"policy drop", `comment "continuo: kiosk/wall"`, "tcp dport 22 accept", "ip saddr " + box.HubIP + " accept"} {
		if !strings.Contains(good, want) {
			t.Errorf("there is no %q in\n%s", want, good)
		}
	}

	// The agent takes it back.
	sc := s.outcome(s.publish(wall(false, 1002, 15*time.Second)), "wall", interpret.RolledBack, "connectivity")
	if got := s.table(); got != good {
		t.Errorf("rolled back (%s), it is\n%s\nwant\n%s", sc.Message, got, good)
	}

	// Killed inside the window: the next start does.
	g := s.publish(wall(false, 1003, 10*time.Minute))
	s.open(1003)
	s.run("systemctl", "kill", "-s", "KILL", agentUnit)
	s.back(good)
	s.outcome(g, "wall", interpret.RolledBack, "connectivity")

	// Killed, and never started again: the timer does.
	s.PutFile("/etc/systemd/system/continuo-agent.service.d/once.conf", []byte("[Service]\nRestart=no\n"), 0o644)
	s.run("systemctl", "daemon-reload")
	s.publish(wall(false, 1004, 10*time.Second))
	s.open(1004)
	s.run("systemctl", "kill", "-s", "KILL", agentUnit)
	s.back(good)
	if state, _ := s.Exec(t.Context(), "systemctl", "is-active", agentUnit); state == "active" {
		t.Errorf("the agent is %s", state)
	}
	if got := s.others(); got != others {
		t.Errorf("what others have is\n%s\nwas\n%s", got, others)
	}

	// A power cut inside the window: what was there before is there again.
	s.run("systemctl", "start", agentUnit)
	g = s.publish(wall(false, 1005, 10*time.Minute))
	s.open(1005)
	s.Crash()
	s.UpTo("basic.target")
	s.sh(theirs)
	s.back(good)
	s.outcome(g, "wall", interpret.RolledBack, "connectivity")

	// What was proved comes back without the fleet.
	s.converged(s.publish(wall(true, 1006, time.Minute)))
	proved := s.table()
	s.srv.Stop()
	s.Reboot()
	s.back(proved)
	if left := s.sh("ls /var/lib/continuo/checkpoints"); left != "" {
		t.Errorf("left behind: %s", left)
	}
}
