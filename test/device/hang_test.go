//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// slowRuntime stands before the runtime of podman: one container is not started while the flag is there.
const slowRuntime = `#!/bin/sh
for a; do
	[ "$last" != --bundle ] || ! grep -q HANGS=yes "$a/config.json" || while [ -e /etc/hang ]; do sleep 0.2; done
	last=$a
done
exec /usr/bin/crun.real "$@"
`

// After a power cut all five containers are left as exited, and podman hangs in the start of one. The agent is up and
// reports, four run, the fifth is failed and says why; when it can be started it is (case 86).
func TestBootWithHangingContainer(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.run("pibox-image")
	s.sh("mv /usr/bin/crun /usr/bin/crun.real")
	s.PutFile("/usr/bin/crun", []byte(slowRuntime), 0o755)
	good := []string{"one", "two", "three", "four"}
	hang := container("hang", "hang")
	c := hang.Spec.(score.Container)
	c.Env = map[string]score.Value{"HANGS": score.Text("yes")}
	hang.Spec = c
	scores := []score.Score{hang}
	for _, name := range good {
		scores = append(scores, container(score.ID(name), name))
	}
	st := s.converged(s.publish(scores...))
	instance := st.Status.Agent.Instance
	s.sh("touch /etc/hang; sync -f /")
	s.Crash()
	if left := s.Offline("sh", "-c", "ls -d var/lib/containers/storage/overlay-containers/*/ | wc -l"); left != "5" {
		t.Errorf("%s containers are left of the boot before", left)
	}
	s.UpTo("basic.target") // the boot does not end before it gave up on the one that hangs
	st = s.until("four run and one is failed", func(st fleet.DeviceState) error {
		if st.Status.Agent.Instance == instance {
			return fmt.Errorf("no report since the boot")
		}
		for _, name := range good {
			if sc, _ := st.Score(manifestName, score.ID(name)); !sc.Converged() {
				return fmt.Errorf("%s is %s: %s", name, sc.Outcome, sc.Message)
			}
		}
		if sc, _ := st.Score(manifestName, "hang"); sc.Outcome != interpret.Failed {
			return fmt.Errorf("the one that hangs is %s: %s", sc.Outcome, sc.Message)
		}
		return nil
	})
	sc, _ := st.Score(manifestName, "hang")
	t.Logf("the one that hangs: %s: %s", sc.Code, sc.Message)
	if sc.Code != "timeout" || !strings.Contains(sc.Message, "hang") {
		t.Errorf("the reason is %s: %s", sc.Code, sc.Message)
	}
	s.alive("while one hangs")
	for _, name := range good {
		if got := s.run("systemctl", "is-active", name); got != "active" {
			t.Errorf("%s is %s", name, got)
		}
	}
	g := s.publish(append(scores, file("conf", "/etc/kiosk/app.conf", "right\n"))...)
	s.until("something new is done beside it", func(st fleet.DeviceState) error {
		if sc, _ := st.Score(manifestName, "conf"); !sc.Converged() {
			return fmt.Errorf("it is %s: %s", sc.Outcome, sc.Message)
		}
		return nil
	})

	s.run("rm", "/etc/hang")
	s.converged(g)
}

// alive waits for the next heartbeats.
func (s *site) alive(what string) {
	s.t.Helper()
	before := s.in()
	box.Until(s.t, patience, "heartbeats "+what, func() error { return more(s.in(), before, 3) })
	if st := s.state(); st.Liveness != fleet.Live {
		s.t.Errorf("%s the device is %s", what, st.Liveness)
	}
}
