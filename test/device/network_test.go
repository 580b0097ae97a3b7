//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/connection"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// router is where the fleet is behind, for a device of its network. It is the hub.
const router = "203.0.113.1"

// address is that of the device in the network of the router: no two boxes have one.
func (s *site) address() score.CIDR {
	return score.CIDR("203.0.113." + s.IP()[strings.LastIndexByte(s.IP(), '.')+1:] + "/24")
}

// uplink is the way to the fleet, by a gateway.
func (s *site) uplink(gateway string) score.Score {
	return score.Score{ID: "uplink", Spec: score.Ethernet{
		Name: "uplink ☎", Interface: "eth0", Confirm: &score.Confirm{Within: score.Duration(10 * time.Second)},
		IPv4: &score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{s.address()}, Gateway: score.IP(gateway), Metric: 50},
		IPv6: &score.IPConfig{Method: score.MethodDisabled},
	}}
}

// routed is a site whose device reaches its fleet over a router, as a score said that it committed. Before its agent
// starts, prepare is run in the box.
func routed(t *testing.T, prepare string) *site {
	s := newSite(t, box.Options{})
	s.sh(prepare)
	cmd := box.HubCommand(t.Context(), t, "ip", "address", "replace", router+"/24", "dev", "br0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.control(fleet.ServeOptions{Interval: 5 * time.Second, Reconnect: 5 * time.Second})
	s.run("systemctl", "start", agentUnit)
	s.connected()
	g := s.publish(s.uplink(router))
	st := s.converged(g)
	sc, _ := st.Score(manifestName, "uplink")
	o, err := interpret.Read[connection.Observed](sc)
	s.must(err)
	if o.Link != "up" || !o.Durable || o.Device != "eth0" || !strings.Contains(strings.Join(o.Addresses, " "), string(s.address())) {
		t.Errorf("the device reports %s", sc.Observed)
	}
	s.gateway(router)
	return s
}

// gateway waits until the default route leads to a router.
func (s *site) gateway(to string) {
	s.t.Helper()
	box.Until(s.t, patience, "the gateway is "+to, func() error {
		if got := s.run("ip", "-4", "route", "show", "default"); !strings.Contains(got, "via "+to+" ") {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}

// kept is the gateway of the profile on the disk.
func (s *site) kept() string {
	s.t.Helper()
	return s.sh(`grep -h gateway /etc/NetworkManager/system-connections/*uplink* ; stat -c '%a %U' /etc/NetworkManager/system-connections/*uplink*`)
}

// A wrong gateway, a wrong VLAN and the removal of the way to the fleet are taken back by themselves; a right change is
// kept, and then nothing is done any more (cases 98, 103, 104).
func TestNetworkIsTakenBack(t *testing.T) {
	t.Parallel()
	s := routed(t, "")
	if got := s.kept(); !strings.Contains(got, router) || !strings.Contains(got, "600 root") {
		t.Errorf("on the disk is %q", got)
	}
	s.quiet()
	transitions := func() string {
		return s.sh(`journalctl -b -u NetworkManager --no-pager | grep -c 'device (eth0): state change' || :`)
	}
	before := transitions()
	for range 4 {
		s.run("systemctl", "restart", agentUnit) // looks at everything
		s.quiet()
	}
	if after := transitions(); after != before {
		t.Errorf("%s changes of the link's state, and before %s, with nothing to do", after, before)
	}

	sc := s.outcome(s.publish(s.uplink("203.0.113.99")), "uplink", interpret.RolledBack, "connectivity")
	if !strings.Contains(sc.Message, "taken back") {
		t.Errorf("it says %q", sc.Message)
	}
	s.gateway(router)
	if got := s.kept(); !strings.Contains(got, router) {
		t.Errorf("on the disk is %q", got)
	}

	tagged := s.uplink(router)
	e := tagged.Spec.(score.Ethernet)
	e.Interface, e.VLAN = "eth0.9", &score.VLAN{ID: 9, Parent: "eth0"}
	tagged.Spec = e
	g := s.publish(tagged)
	s.until("the wrong VLAN is taken back", func(st fleet.DeviceState) error {
		sc, _ := st.Score(manifestName, "uplink")
		// The kernel of a box may know no VLAN at all: NetworkManager says so then.
		if st.Status.Generation < g || sc.Outcome != interpret.RolledBack && sc.Outcome != interpret.Failed {
			return fmt.Errorf("generation %d: %s %s", st.Status.Generation, sc.Outcome, sc.Message)
		}
		t.Logf("wrong VLAN: %s %s: %s", sc.Outcome, sc.Code, sc.Message)
		return nil
	})
	s.gateway(router)

	good := s.uplink(router)
	e = good.Spec.(score.Ethernet)
	e.IPv4.Routes = []score.Route{{To: "198.51.100.0/24", Via: router, Metric: 70}}
	s.converged(s.publish(good))
	if got := s.run("ip", "route", "show", "198.51.100.0/24"); !strings.Contains(got, "via "+router) {
		t.Errorf("the route is %q", got)
	}

	// Without the score nothing leads to the fleet.
	g = s.publish(file("conf", "/etc/kiosk.conf", "x\n"))
	s.until("the removal is taken back", func(st fleet.DeviceState) error {
		for _, o := range st.Status.Orphans {
			if o.Score == "uplink" && o.Code == "connectivity" {
				return nil
			}
		}
		return fmt.Errorf("generation %d, orphans %+v", st.Status.Generation, st.Status.Orphans)
	})
	s.gateway(router)
	if got := s.kept(); !strings.Contains(got, router) {
		t.Errorf("on the disk is %q", got)
	}
}

// An agent that is killed in the window leaves a device that comes back by itself; the next one says so (cases 104).
func TestNetworkAgentKilledInTheWindow(t *testing.T) {
	t.Parallel()
	s := routed(t, "")
	s.PutFile("/etc/systemd/system/continuo-agent.service.d/once.conf", []byte("[Service]\nRestart=no\n"), 0o644)
	s.run("systemctl", "daemon-reload")
	g := s.publish(s.uplink("203.0.113.99"))
	s.gateway("203.0.113.99")
	s.run("systemctl", "kill", "--signal=KILL", agentUnit)
	start := time.Now()
	s.gateway(router) // NetworkManager's own doing
	t.Logf("number: the network was back %.1f s after the agent was killed", time.Since(start).Seconds())
	if got := s.kept(); !strings.Contains(got, router) {
		t.Errorf("on the disk is %q", got)
	}
	s.run("systemctl", "start", agentUnit)
	s.until("the agent says what was taken back", func(st fleet.DeviceState) error {
		sc, _ := st.Score(manifestName, "uplink")
		if st.Status.Generation < g || sc.Outcome != interpret.RolledBack {
			return fmt.Errorf("generation %d: %s %s %s", st.Status.Generation, sc.Outcome, sc.Code, sc.Message)
		}
		return nil
	})
	s.gateway(router)
	s.converged(s.publish(s.uplink(router)))

	// One that starts at once does not wait for that.
	s.sh("rm /etc/systemd/system/continuo-agent.service.d/once.conf; systemctl daemon-reload")
	s.publish(s.uplink("203.0.113.98"))
	s.gateway("203.0.113.98")
	s.run("systemctl", "kill", "--signal=KILL", agentUnit)
	s.gateway(router)
	s.until("the next agent says what was taken back", func(st fleet.DeviceState) error {
		if sc, _ := st.Score(manifestName, "uplink"); sc.Outcome != interpret.RolledBack {
			return fmt.Errorf("%s %s %s", sc.Outcome, sc.Code, sc.Message)
		}
		return nil
	})
}

// After a power cut in the window the device has what it had before, and does not cut itself off again (cases 104).
func TestNetworkPowerCutInTheWindow(t *testing.T) {
	t.Parallel()
	s := routed(t, "")
	g := s.publish(s.uplink("203.0.113.99"))
	s.gateway("203.0.113.99")
	s.Crash()
	s.Up()
	if got := s.kept(); !strings.Contains(got, router) {
		t.Errorf("on the disk is %q", got)
	}
	if out, err := s.Exec(t.Context(), "nmcli", "-g", "ipv4.gateway", "connection", "show", "uplink ☎"); err != nil || strings.TrimSpace(out) != router {
		t.Errorf("NetworkManager has %q: %v", out, err)
	}
	s.notTriedAgain(g)
	s.run("systemctl", "restart", agentUnit)
	s.notTriedAgain(g)
	s.converged(s.publish(s.uplink(router)))
	s.gateway(router)
}

// notTriedAgain waits until the device says that what was tried before its agent started was taken back, and looks whether
// it was left so.
func (s *site) notTriedAgain(g uint64) {
	s.t.Helper()
	s.until("the device says that it was taken back", func(st fleet.DeviceState) error {
		if sc, _ := st.Score(manifestName, "uplink"); st.Status.Generation < g || sc.Outcome != interpret.RolledBack || !strings.Contains(sc.Message, "stopped before it was proved") {
			return fmt.Errorf("%s %s %s", sc.Outcome, sc.Code, sc.Message)
		}
		return nil
	})
	// A box may have come up with a profile of its own.
	if got := s.run("ip", "-4", "route", "show", "default"); strings.Contains(got, "via 203.0.113.9") {
		s.t.Errorf("the default route is %q", got)
	}
	if got := s.sh("journalctl -b -u NetworkManager --no-pager | grep -c checkpoint-create || :"); strings.TrimSpace(got) != "0" {
		s.t.Errorf("%s windows were opened since the boot", got)
	}
}

// systemd-networkd does the same, where it keeps the network (cases 104).
func TestNetworkdIsTakenBack(t *testing.T) {
	t.Parallel()
	s := routed(t, "systemctl disable --quiet --now NetworkManager; systemctl enable --quiet --now systemd-networkd")
	kept := func() {
		t.Helper()
		if got := s.sh("grep -h ^Gateway= /etc/systemd/network/*continuo*"); got != "Gateway="+router {
			t.Errorf("on the disk is %q", got)
		}
	}
	kept()
	s.outcome(s.publish(s.uplink("203.0.113.99")), "uplink", interpret.RolledBack, "connectivity")
	s.gateway(router)
	kept()

	s.PutFile("/etc/systemd/system/continuo-agent.service.d/once.conf", []byte("[Service]\nRestart=no\n"), 0o644)
	s.run("systemctl", "daemon-reload")
	s.publish(s.uplink("203.0.113.98"))
	s.gateway("203.0.113.98")
	s.run("systemctl", "kill", "--signal=KILL", agentUnit)
	start := time.Now()
	s.gateway(router) // the timer's doing
	t.Logf("number: systemd-networkd had the network back %.1f s after the agent was killed", time.Since(start).Seconds())
	kept()

	s.run("systemctl", "start", agentUnit)
	s.converged(s.publish(s.uplink(router)))
	g := s.publish(s.uplink("203.0.113.97"))
	s.gateway("203.0.113.97")
	s.Crash()
	s.Up()
	kept()
	if got := s.sh("ls /run/systemd/network 2>/dev/null || :"); strings.Contains(got, "continuo") {
		t.Errorf("after the boot there is %q", got)
	}
	s.notTriedAgain(g)
}
