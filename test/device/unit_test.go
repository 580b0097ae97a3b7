//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// The unit that the agent prints is one that systemd likes: it says ready when what was accepted is true, it is
// watched, it stops in order, and it may do little (H03, H30).
func TestAgentUnit(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	slow := score.Service{
		Unit: "slow.service", UnitFile: "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/sleep 6\n", State: score.Running,
	}
	g := s.publish(file("conf", "/etc/kiosk/app.conf", "right\n"), score.Score{ID: "slow", Spec: slow})
	s.until("a report while it is at work", func(st fleet.DeviceState) error { // H42
		if st.Status.Phase != interpret.PhaseRunning || st.Status.Generation != g {
			return fmt.Errorf("it is %s at generation %d", st.Status.Phase, st.Status.Generation)
		}
		return nil
	})
	s.converged(g)
	if out := s.run("systemd-analyze", "verify", "/etc/systemd/system/"+agentUnit); out != "" {
		t.Errorf("systemd-analyze verify says:\n%s", out)
	}
	lines := strings.Split(s.run("systemd-analyze", "security", "--no-pager", agentUnit), "\n")
	t.Logf("number: %s", lines[len(lines)-1])

	// The rights of the process, and not only what the unit asks for.
	got := s.sh(`pid=$(systemctl show -P MainPID continuo-agent)
		awk '/^(CapBnd|NoNewPrivs|Seccomp):/ {print $2}' /proc/$pid/status
		nsenter -t $pid -m sh -c 'touch /usr/lib/x 2>/dev/null || echo no /usr; touch /etc/x && rm /etc/x && echo /etc; ls /dev/loop0 2>/dev/null || echo no devices'`)
	if want := "000000008000101f\n1\n2\nno /usr\n/etc\nno devices"; got != want {
		t.Errorf("the agent's process has\n%s\nwant\n%s", got, want)
	}

	// Ready comes after the first pass: systemctl waits for it.
	s.sh("systemctl stop continuo-agent; echo wrong >/etc/kiosk/app.conf")
	if got := s.sh(`systemctl show -P Result,ExecMainStatus,ActiveState continuo-agent | sort`); got != "0\ninactive\nsuccess" {
		t.Errorf("it stopped with\n%s", got)
	}
	if got := s.sh("systemctl start continuo-agent; cat /etc/kiosk/app.conf"); got != "right" {
		t.Errorf("when it is ready, the file holds %q", got)
	}

	// An agent that hangs is killed and started again.
	s.PutFile("/etc/systemd/system/continuo-agent.service.d/fast.conf", []byte("[Service]\nWatchdogSec=5s\nRestartSec=50ms\n"), 0o644)
	s.sh("systemctl daemon-reload; systemctl restart continuo-agent")
	outage(t, 11*time.Second) // more than two intervals of the watchdog
	pid := s.agentPID()
	if n := s.run("systemctl", "show", "-P", "NRestarts", agentUnit); n != "0" {
		t.Fatalf("a healthy agent was restarted %s times by its watchdog", n)
	}
	s.run("kill", "-STOP", pid)
	box.Until(t, patience, "another process", func() error {
		out, err := s.Exec(t.Context(), "systemctl", "show", "-P", "MainPID", agentUnit)
		if err != nil || out == pid || out == "0" {
			return fmt.Errorf("it is %q (%v)", out, err)
		}
		return nil
	})
	if n := s.logged("Watchdog timeout"); n == 0 {
		t.Errorf("nothing of the watchdog in the journal:\n%s", s.journal())
	}
	s.drifts("right")
}
