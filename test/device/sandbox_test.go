//go:build device && linux

package device

import (
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// What the agent's unit lets a program do, asked by another program under the same unit; and what the agent itself shows to
// others: no socket that listens, no state that anybody else may read, no memory in a core dump or for who may not trace.
func TestAgentSandbox(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.converged(s.publish(file("conf", "/etc/kiosk/app.conf", "right\n")))

	// The one system call by which the clock is asked for is allowed to it.
	s.informed("the kernel says whether its clock was set", func(i interpret.DeviceInfo) error {
		if i.Facts.ClockSynchronized == nil {
			return errors.New("it does not say")
		}
		return nil
	})

	s.PutFile("/etc/probe.sh", []byte(`try() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "$what: yes"; else echo "$what: no"; fi; }
try "writes to /etc" touch /etc/probe.touched
try "writes to /usr" touch /usr/lib/probe.touched
try "reads memory of the machine" busybox dd if=/dev/mem count=1
try "sees the disks" ls /dev/loop0
try "reads the log of the kernel" dmesg
try "mounts" mount -t tmpfs none /mnt
try "makes a namespace" unshare -n true
try "becomes somebody else" setpriv --reuid=65534 true
try "makes a device" mknod /etc/probe.dev c 1 3
try "changes the kernel" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
try "is rid of the rules by a setuid program" sh -c 'cp /bin/busybox /etc/probe.suid; chmod 4755 /etc/probe.suid; grep -q "NoNewPrivs:.*0" /proc/self/status'
`), 0o755)
	s.sh(`mkdir -p /etc/systemd/system/probe.service.d
		cp /etc/systemd/system/` + agentUnit + ` /etc/systemd/system/probe.service
		printf '[Service]\nType=oneshot\nExecStart=\nExecStart=/bin/sh /etc/probe.sh\nRestart=no\nWatchdogSec=0\nStateDirectory=\nRuntimeDirectory=\nStandardOutput=truncate:/etc/probe.out\n' >/etc/systemd/system/probe.service.d/probe.conf
		systemctl daemon-reload; systemctl start probe`)
	free := s.sh("rm -f /etc/probe.touched /etc/probe.suid; /bin/sh /etc/probe.sh; rm -f /usr/lib/probe.touched; umount /mnt")
	for _, may := range []string{"writes to /usr", "mounts", "makes a namespace", "becomes somebody else"} {
		if !strings.Contains(free, may+": yes") {
			t.Errorf("without the unit it is no other: %s\n%s", may, free)
		}
	}
	const want = `writes to /etc: yes
writes to /usr: no
reads memory of the machine: no
sees the disks: no
reads the log of the kernel: no
mounts: no
makes a namespace: no
becomes somebody else: no
makes a device: no
changes the kernel: no
is rid of the rules by a setuid program: no`
	if got := s.sh("cat /etc/probe.out"); got != want {
		t.Errorf("a program under the unit of the agent\n%s\nwant\n%s", got, want)
	}

	pid := s.agentPID()
	sockets := s.run("ss", "-H", "-a", "-n", "-p")
	if !strings.Contains(sockets, "pid="+pid+",") {
		t.Error("ss shows no socket of the agent at all")
	}
	for line := range strings.Lines(sockets) {
		if strings.Contains(line, "pid="+pid+",") && (strings.Contains(line, "LISTEN") || strings.HasPrefix(line, "udp") || strings.HasPrefix(line, "p_raw")) {
			t.Errorf("the agent has a socket that others can speak to: %s", line)
		}
	}
	if got := s.sh(`find /var/lib/continuo /run/continuo /etc/continuo/device.creds -perm /077; stat -c %a /var/lib/continuo /run/continuo`); got != "700\n700" {
		t.Errorf("not only root may look at\n%s", got)
	}
	// The other process hides nothing, and has no more rights than who looks.
	const traced = `drop=-sys_ptrace,-perfmon,-sys_admin
		setpriv --bounding-set=$drop --inh-caps=$drop sleep 60 & other=$!
		for pid in %PID $other; do
			setpriv --bounding-set=$drop --inh-caps=$drop head -c 1 /proc/$pid/environ >/dev/null 2>&1 && echo open || echo closed; done
		kill $other`
	if got := s.sh(strings.ReplaceAll(traced, "%PID", pid)); got != "closed\nopen" {
		t.Errorf("to who may not trace, the agent and a usual process are\n%s", got)
	}
	if got := s.sh("systemctl show -P LimitCORE -P MemorySwapMax continuo-agent"); got != "0\n0" {
		t.Errorf("its memory may be written to the disk: LimitCORE, MemorySwapMax are\n%s", got)
	}

	// What the unit leaves open is what THREATS.md gives a reason for.
	var open []struct {
		Name     string
		Exposure string
	}
	s.must(json.Unmarshal([]byte(s.run("systemd-analyze", "security", "--no-pager", "--json=short", agentUnit)), &open))
	doc, err := os.ReadFile("../../THREATS.md")
	s.must(err)
	n := 0
	for _, o := range open {
		if points, err := strconv.ParseFloat(o.Exposure, 64); err != nil || points == 0 {
			continue
		}
		if n++; !strings.Contains(string(doc), "| `"+strings.ReplaceAll(o.Name, "|", `\|`)+"` |") {
			t.Errorf("THREATS.md does not say why the unit leaves %s open", o.Name)
		}
	}
	if n < 10 {
		t.Errorf("systemd-analyze names %d exposures only", n)
	}
}
