//go:build device && linux

package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/test/device/box"
	"github.com/continuo-fleet/continuo/topology"
)

// informed waits until the device says that it is what ok wants: ok gives nil.
func (s *site) informed(what string, ok func(interpret.DeviceInfo) error) interpret.DeviceInfo {
	s.t.Helper()
	late, tick := time.After(patience), time.NewTicker(200*time.Millisecond)
	defer tick.Stop()
	not := fmt.Errorf("it said nothing")
	for {
		all, err := s.fleet.Info(s.t.Context(), s.id)
		s.must(err)
		if len(all) == 1 && all[0].Info != nil {
			if not = ok(*all[0].Info); not == nil {
				return *all[0].Info
			}
		}
		select {
		case <-late:
			s.t.Fatalf("%s: never: %v; last: %+v", what, not, all)
		case <-tick.C:
		}
	}
}

// TestPodmanGoesAway: the next report names the tool that is missing, containers are unsupported, once and not failing in a
// loop, everything else goes on, and all is well when it is back (G08).
func TestPodmanGoesAway(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	s.sh(`sed -i 's/^{/{"relist":"10s",/' /etc/continuo/agent.yaml`)
	s.run("pibox-image")
	s.control(fleet.ServeOptions{Interval: 5 * time.Second, Reconnect: 5 * time.Second})
	s.run("systemctl", "start", agentUnit)
	g := s.publish(container("web", "web", "sleep", "1d"), file("conf", "/etc/kiosk/app.conf", "right\n"))
	s.converged(g)
	podman := func(i interpret.DeviceInfo) topology.ToolCondition {
		n := slices.IndexFunc(i.Tools, func(t interpret.Tool) bool { return t.Name == "podman" })
		if n < 0 {
			return ""
		}
		return i.Tools[n].Condition
	}
	is := func(want topology.ToolCondition) func(interpret.DeviceInfo) error {
		return func(i interpret.DeviceInfo) error {
			if got := podman(i); got != want {
				return fmt.Errorf("podman is %q: %+v", got, i.Tools)
			}
			return nil
		}
	}
	first := s.informed("podman is there", is(topology.ToolPresent))
	for _, tool := range first.Tools {
		if tool.Condition != topology.ToolPresent || tool.Copies[0].Version == "" {
			t.Errorf("%s is %+v", tool.Name, tool)
		}
	}
	if first.Facts.Kernel == "" || first.Facts.OS.ID != "debian" || len(first.Facts.Disks) == 0 || len(first.Facts.Interfaces) == 0 || first.Agent.Version == "" {
		t.Errorf("got %+v", first.Facts)
	}

	s.sh("mv /usr/bin/podman /usr/bin/podman.gone")
	sc := s.outcome(g, "web", interpret.Unsupported, "unavailable")
	if !strings.Contains(sc.Message, "podman is missing") {
		t.Errorf("the reason is %q", sc.Message)
	}
	s.informed("podman is missing", is(topology.ToolMissing))
	if n := strings.Count(s.journal(), "podman is missing"); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, s.journal())
	}
	s.drifts("right")

	s.sh("mv /usr/bin/podman.gone /usr/bin/podman")
	s.outcome(g, "web", interpret.Unchanged, "")
	s.informed("podman is back", is(topology.ToolPresent))
}

// TestRebootIsRequired: a marker of a package is a problem until the device has booted; then its boot id is another one (X39).
func TestRebootIsRequired(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.converged(s.publish(file("conf", "/etc/kiosk.conf", "right\n")))
	s.sh("echo linux-image-rpi-v8 >/run/reboot-required.pkgs; touch /run/reboot-required")
	if p := s.problem("reboot_required"); !strings.Contains(p.Message, "linux-image-rpi-v8") {
		t.Errorf("got %q", p.Message)
	}
	info := s.informed("a reboot is required", func(i interpret.DeviceInfo) error {
		if !i.Facts.RebootRequired {
			return fmt.Errorf("it says %+v", i.Facts)
		}
		return nil
	})
	s.Reboot()
	s.until("it is back", func(st fleet.DeviceState) error {
		if boot := st.Status.Agent.BootID; boot == "" || boot == info.Facts.BootID || len(st.Status.Problems) > 0 || st.Verdict != fleet.Converged {
			return fmt.Errorf("boot id %s, problems %v, %s", boot, st.Status.Problems, st.Verdict)
		}
		return nil
	})
	s.informed("no reboot is required", func(i interpret.DeviceInfo) error {
		if i.Facts.RebootRequired || i.Facts.BootID == info.Facts.BootID {
			return fmt.Errorf("it says %+v", i.Facts)
		}
		return nil
	})
}
