//go:build device && linux

package device

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// A container whose port somebody else holds fails, and the reason names who: another container, one in the network of
// the device, a program. The agent does not trace processes, and need not. When the port is free it runs (case 85).
func TestPortsOfOthers(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.sh(`pibox-image
		podman run -d -q --name theirs -p 8080:80 -p 5353:53/udp -p 8085:85 localhost/busybox:1 sleep infinity
		podman run -d -q --name open --network host localhost/busybox:1 nc -l -p 8081
		systemd-run -q --unit=odd busybox nc -l -p 8082
		mkdir -p /etc/containers/systemd
		printf '[Container]\nContainerName=quadlet\nImage=localhost/busybox:1\nPublishPort=127.0.0.1:8083:80\nExec=sleep infinity\n' >/etc/containers/systemd/hand.container
		systemctl daemon-reload; systemctl start hand`)
	with := func(id score.ID, port string) score.Score {
		out := container(id, string(id))
		c := out.Spec.(score.Container)
		var p score.Port
		s.must(p.UnmarshalText([]byte(port)))
		c.Ports = []score.Port{p}
		out.Spec = c
		return out
	}
	pid := s.run("systemctl", "show", "-P", "MainPID", "odd.service")
	g := s.publish(with("web-a", "8080:80"), with("web-b", "5353:53/udp"), with("web-c", "8081:80"), with("web-d", "127.0.0.1:8084-8086:80-82"),
		with("web-e", "8082:80"), with("web-f", "8083:80"), with("free", "8090:80"))
	for id, want := range map[score.ID]string{
		"web-a": "port 8080/tcp of the device is held by container theirs",
		"web-b": "port 5353/udp of the device is held by container theirs",
		"web-c": "port 8081/tcp of the device is held by container open",
		"web-d": "port 8085/tcp of the device is held by container theirs",
		"web-e": "port 8082/tcp of the device is held by process busybox (pid " + pid + ") in odd.service",
		"web-f": "port 8083/tcp of the device is held by container quadlet",
	} {
		if sc := s.outcome(g, id, interpret.Failed, "job_failed"); !strings.Contains(sc.Message+";", want+";") {
			t.Errorf("%s: %s", id, sc.Message)
		}
	}
	if sc, _ := s.state().Score(manifestName, "free"); !sc.Converged() {
		t.Errorf("the container with a free port is %s: %s", sc.Outcome, sc.Message)
	}
	if got := s.run("podman", "inspect", "theirs", "open", "quadlet", "--format", "{{.State.Status}}"); got != "running\nrunning\nrunning" {
		t.Errorf("the others are %s", got)
	}

	s.sh("podman rm -f -t 0 theirs open; systemctl stop odd hand")
	s.converged(g)
}
