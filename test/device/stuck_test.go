//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/test/device/box"
)

// A container whose monitor was killed, or hangs, is brought back and can be replaced, in bounded time; the one beside it
// lives on (case 81).
func TestStuckContainers(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.run("pibox-image")
	s.converged(s.publish(container("web", "web"), container("other", "other")))
	other := s.run("podman", "inspect", "other", "--format", "{{.Id}} {{.State.StartedAt}}")
	was := s.run("podman", "inspect", "web", "--format", "{{.Id}}")
	up := func(what string) {
		t.Helper()
		box.Until(t, patience, what, func() error {
			out, err := s.Exec(t.Context(), "sh", "-c", `echo $(systemctl is-active web) $(podman inspect web --format '{{.Id}} {{.State.Status}}')`)
			if f := strings.Fields(out); err != nil || len(f) != 3 || f[0] != "active" || f[1] == was || f[2] != "running" {
				return fmt.Errorf("it is %q (%v), and was %s", out, err, was)
			}
			return nil
		})
		was = s.run("podman", "inspect", "web", "--format", "{{.Id}}")
		if now := s.run("podman", "inspect", "other", "--format", "{{.Id}} {{.State.StartedAt}}"); now != other {
			t.Errorf("%s: the other container is %s, and was %s", what, now, other)
		}
	}
	s.sh(`kill -9 $(podman inspect web --format '{{.State.ConmonPid}}')`)
	up("without its monitor it is made anew")

	s.sh(`kill -STOP $(podman inspect web --format '{{.State.ConmonPid}}')`)
	s.converged(s.publish(container("web", "web", "sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait # new"), container("other", "other")))
	up("a monitor that hangs does not keep it from being replaced")
}
