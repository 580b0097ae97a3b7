//go:build device && linux

package device

import (
	"fmt"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// What the image and the machine give to a container is no drift, whatever it is: a volume, a working directory, an
// environment, a user, limits (cases 69, 75).
func TestWhatImageAndMachineBring(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.sh(`pibox-image
		podman create -q --name rich localhost/busybox:1
		podman commit -q --change 'VOLUME /cache' --change 'WORKDIR /srv' --change 'ENV FROM=image' --change 'USER 1000' rich localhost/rich:1
		podman rm rich`)
	web := container("web", "web")
	c := web.Spec.(score.Container)
	c.Image = "localhost/rich:1"
	web.Spec = c
	s.converged(s.publish(web))
	id := func() string { return s.run("podman", "inspect", "web", "--format", "{{.Id}}") }
	first := id()
	if got := s.run("podman", "inspect", "web", "--format", "{{.Config.WorkingDir}} {{.Config.User}} {{len .Mounts}}"); got != "/srv 1000 1" {
		t.Fatalf("the image brings %s", got)
	}
	looks := func(what string) {
		t.Helper()
		instance := s.state().Status.Agent.Instance
		s.run("systemctl", "restart", agentUnit) // it looks at everything anew
		s.until(what, func(st fleet.DeviceState) error {
			if sc, _ := st.Score(manifestName, "web"); st.Status.Agent.Instance == instance || sc.Outcome != interpret.Unchanged || !sc.Converged() {
				return fmt.Errorf("it is %s: %v", sc.Outcome, sc.Changes)
			}
			return nil
		})
	}
	looks("a second run")
	if now := id(); now != first {
		t.Errorf("the container is %s, and was %s", now, first)
	}
	s.PutFile("/etc/containers/containers.conf", []byte("[containers]\ndefault_ulimits = [\"nofile=500:500\"]\npids_limit = 77\nlog_driver = \"k8s-file\"\n"), 0o644)
	looks("other defaults of the machine")
	if now := id(); now != first {
		t.Errorf("with other defaults the container is %s, and was %s", now, first)
	}
	s.run("systemctl", "restart", "web") // made anew, with the other defaults
	looks("made with the other defaults")
	if got := s.run("podman", "exec", "web", "sh", "-c", "ulimit -n"); got != "500" {
		t.Errorf("the limit of the machine is %s", got)
	}
}
