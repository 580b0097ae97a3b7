//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// After a power cut podman's storage is looked at before a container is played, and once: an image whose files the cut has
// emptied is fetched again when its container fails, one that came from no registry is named, and what else there is has not
// waited. A boot after an orderly end looks at nothing (case 94).
func TestStorageAfterPowerCut(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	registry := box.Registry(t)
	s.sh("pibox-image; podman push -q localhost/busybox:1 " + registry + "/cut:1; podman rmi -a -f; pibox-image")
	web := container("web", "web")
	c := web.Spec.(score.Container)
	c.Image = registry + "/cut:1"
	web.Spec = c
	g := s.publish(web, file("conf", "/etc/kiosk/app.conf", "right\n"))
	s.converged(g)
	const looks, sound, bad = "is looked at before they are played", "is sound", "a power cut damaged"
	boot := func(what string, looked bool) {
		t.Helper()
		instance := s.state().Status.Agent.Instance
		if looked {
			s.run("sync", "-f", "/")
			s.Crash()
			s.Up()
		} else {
			s.Reboot()
		}
		s.until(what, func(st fleet.DeviceState) error {
			if sc, _ := st.Score(manifestName, "web"); st.Status.Agent.Instance == instance || st.Status.State != interpret.StateConverged {
				return fmt.Errorf("it is %s, and the container %s (%s): %s", st.Status.State, sc.Outcome, sc.Code, sc.Message)
			}
			return nil
		})
		if got := s.logged(looks) > 0; got != looked {
			t.Errorf("%s: looked at what containers are made from: %v", what, got)
		}
	}
	boot("a boot in order", false)
	boot("a power cut that damaged nothing", true)
	box.Until(t, patience, "it is sound", func() error {
		if s.logged(sound) == 0 {
			return fmt.Errorf("nothing is said")
		}
		return nil
	})
	s.run("systemctl", "restart", agentUnit) // the same boot: it was looked at
	s.until("the agent again", func(st fleet.DeviceState) error {
		if n := s.logged(looks); n != 1 {
			return fmt.Errorf("it was looked at %d times", n)
		}
		return nil
	})
	took := s.sh("journalctl -b -u " + agentUnit + " -o cat --no-pager | sed -n 's/.*is sound.*took=\\([^ ]*\\).*/\\1/p'")

	// What the power cut did: the program in the image is empty.
	s.sh(`systemctl stop continuo-agent web
		top=$(podman image inspect -f '{{.GraphDriver.Data.UpperDir}}' ` + registry + `/cut:1); : >$top/bin/busybox; sync -f /`)
	boot("a power cut that damaged the image", true)
	if s.logged(bad) == 0 {
		t.Errorf("the damage is not told: %s", s.sh("journalctl -b -u "+agentUnit+" -o cat --no-pager | head -30"))
	}
	s.until("nothing is damaged any more", func(st fleet.DeviceState) error {
		for _, p := range st.Status.Problems {
			if p.Code == agent.CodeStorage {
				return fmt.Errorf("%s", p.Message)
			}
		}
		return nil
	})
	if got := s.run("podman", "inspect", "web", "--format", "{{.State.Status}}"); got != "running" {
		t.Errorf("the container is %s", got)
	}
	if got := strings.TrimSpace(s.sh("cat /var/lib/continuo/boots/begun")); got != s.run("cat", "/proc/sys/kernel/random/boot_id") {
		t.Errorf("the boot that was begun is %q", got)
	}
	t.Logf("number: after a power cut podman's storage, of one small image, is looked at in %s", took)
}
