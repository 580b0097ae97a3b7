//go:build device && linux

package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// A device that starts without a network has looked at all of 200 scores, and corrected what was wrong, within two seconds
// of the start of its agent (H35).
func TestStartFromDisk(t *testing.T) {
	s := newSite(t, box.Options{}) // alone: it is a matter of time
	s.control(fleet.ServeOptions{})
	s.run("systemctl", "start", agentUnit)
	scores := []score.Score{file("conf", "/etc/kiosk/app.conf", "right\n")}
	for i := len(scores); i < 200; i++ {
		scores = append(scores, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/etc/kiosk/f%d.conf", i), strings.Repeat("x", 1000)))
	}
	s.converged(s.publish(scores...))
	s.srv.Stop()
	var took []time.Duration
	for range 5 {
		s.run("systemctl", "stop", agentUnit)
		s.sh("echo wrong >/etc/kiosk/app.conf")
		s.run("systemctl", "start", agentUnit) // Type=notify: it is active when the first pass is over
		if got := s.run("cat", "/etc/kiosk/app.conf"); strings.TrimSpace(got) != "right" {
			t.Fatalf("the agent says that it is ready, and the file holds %q", got)
		}
		var from, to int64
		out := s.sh("systemctl show -P ExecMainStartTimestampMonotonic " + agentUnit + "; systemctl show -P ActiveEnterTimestampMonotonic " + agentUnit)
		if _, err := fmt.Sscan(out, &from, &to); err != nil {
			t.Fatalf("cannot read %q: %v", out, err)
		}
		took = append(took, time.Duration(to-from)*time.Microsecond)
	}
	slices.Sort(took)
	t.Logf("number: start → first pass over, 200 scores, no network: %d ms (%d–%d)", took[2].Milliseconds(), took[0].Milliseconds(), took[4].Milliseconds())
	if took[2] > 2*time.Second {
		t.Errorf("it took %s", took)
	}
}
