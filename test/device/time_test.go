//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// The clock of a device follows the servers of its manifest: the agent may do that with the rights that its unit gives it, says
// what it finds, leaves alone what is right, and takes back what somebody edited.
func TestTimeSync(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	// systemd-timesyncd does not run in containers, and shall not set the clock of the machine around the box.
	s.PutFile("/etc/systemd/system/systemd-timesyncd.service.d/box.conf",
		[]byte("[Unit]\nConditionVirtualization=\nConditionCapability=\n[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\n"), 0o644)
	s.sh("systemctl daemon-reload; systemctl start systemd-timesyncd; systemctl start continuo-agent")
	st := s.converged(s.publish(readExample(t, "../../examples/timeSync.yaml").Spec.Scores...))
	sc, _ := st.Score(manifestName, "clock")
	for _, want := range []string{`"timezone":"Europe/Berlin"`, `"servers":["192.0.2.123","ntp.example.org"]`, `"active":true`, `"synchronized":`} {
		if !strings.Contains(string(sc.Observed), want) {
			t.Errorf("there is no %s in %s", want, sc.Observed)
		}
	}
	run := s.run("systemctl", "show", "-P", "InvocationID", "systemd-timesyncd")
	s.sh("systemctl restart continuo-agent")
	if now := s.run("systemctl", "show", "-P", "InvocationID", "systemd-timesyncd"); now != run {
		t.Error("systemd-timesyncd was restarted, and nothing had changed")
	}
	s.sh("echo PollIntervalMaxSec=60 >>" + score.TimesyncConf + "; timedatectl set-timezone Etc/UTC")
	box.Until(t, patience, "what was edited is taken back", func() error {
		out, err := s.Exec(t.Context(), "sh", "-c", "cat "+score.TimesyncConf)
		if err != nil || strings.Contains(out, "Poll") {
			return fmt.Errorf("it is %q, %v", out, err)
		}
		zone, err := s.Exec(t.Context(), "timedatectl", "show", "-P", "Timezone")
		if err != nil || zone != "Europe/Berlin" {
			return fmt.Errorf("it is %q, %v", zone, err)
		}
		return nil
	})
}
