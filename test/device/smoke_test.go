//go:build device && linux

package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/test/device/box"
)

func TestMain(m *testing.M) { box.Main(m) }

func TestDeviceBoots(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	if got := run(t, b, "systemctl", "is-system-running"); got != "running" {
		t.Errorf("systemd is %s; failed units:\n%s", got, run(t, b, "systemctl", "--failed", "--plain"))
	}
	if got := run(t, b, "cat", "/proc/1/comm"); got != "systemd" {
		t.Errorf("PID 1 is %s", got)
	}
	if got := run(t, b, "hostname"); got != b.Name() {
		t.Errorf("host name is %s, want %s", got, b.Name())
	}
	_, err := b.Exec(t.Context(), "sh", "-c", "echo no >&2; exit 3")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.HasSuffix(err.Error(), ": no") {
		t.Errorf("a failing command gave %v, want exit status 3 and its standard error", err)
	}
}

// The clock of the machine must be out of reach: a box shares it.
func TestDeviceCannotSetTheClock(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	if _, err := b.Exec(t.Context(), "date", "-s", "2001-01-01"); err == nil {
		t.Error("date -s worked inside the box")
	}
}

func TestDevicePowerCut(t *testing.T) { // alone: others that sync make it try more often
	b := box.Start(t, box.Options{})
	// sync(2) by anyone on this machine saves the data that should get lost, hence the tries
	for try := range 5 {
		want := fmt.Sprintf("kept %d", try)
		run(t, b, "sh", "-ec", "rm -f /etc/lost; echo "+want+" >/etc/kept; sync -f /etc/kept; echo lost >/etc/lost")
		b.Crash()
		if got := b.Offline("cat", "etc/kept"); got != want {
			t.Fatalf("synced data after the power cut is %q, want %q", got, want)
		}
		b.Up()
		if got := run(t, b, "cat", "/etc/kept"); got != want {
			t.Fatalf("synced data after the boot is %q, want %q", got, want)
		}
		if got, err := b.Exec(t.Context(), "cat", "/etc/lost"); err != nil || got == "" {
			return
		}
	}
	t.Error("un-synced data survived every power cut: the fault is not real")
}

func TestDeviceReboot(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	before := run(t, b, "cat", "/proc/sys/kernel/random/boot_id")
	pid := run(t, b, "systemctl", "show", "-P", "UserspaceTimestamp")
	b.PutFile("/etc/mark/deep", []byte("stays\n"), 0o640)
	b.Reboot()
	if got := run(t, b, "stat", "-c", "%a %s", "/etc/mark/deep"); got != "640 6" {
		t.Errorf("the file after a clean reboot has mode and size %s, want 640 6", got)
	}
	if run(t, b, "systemctl", "show", "-P", "UserspaceTimestamp") == pid {
		t.Errorf("systemd did not start again (boot id %s)", before)
	}
}

func TestDeviceLinkAndHub(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	l := box.HubListen(t, 0)
	serve(t, l, "direct")
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, local, "forwarded")
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for url, want := range map[string]string{
		"http://" + box.HubName + ":" + port:                           "direct",
		"http://" + box.HubForward(t, 0, local.Addr().String()) + "/x": "forwarded",
	} {
		if got := run(t, b, "curl", "-s", "-m", "30", url); got != want {
			t.Errorf("the box got %q from %s, want %q", got, url, want)
		}
	}

	ask := []string{"curl", "-s", "-m", "2", "http://" + l.Addr().String()}
	b.Cut()
	if out, err := b.Exec(t.Context(), ask...); err == nil {
		t.Errorf("an answer over a cut link: %q", out)
	}
	if got := run(t, b, "cat", "/sys/class/net/eth0/carrier"); got != "1" {
		t.Errorf("carrier of a silently cut link is %s, want 1", got)
	}
	b.Heal()
	box.Until(t, patience, "an answer over the healed link", func() error {
		_, err := b.Exec(t.Context(), ask...)
		return err
	})

	run(t, b, "systemd-run", "--quiet", "--unit", "echo", "busybox", "nc", "-l", "-p", "7000", "-e", "/bin/cat")
	box.Until(t, patience, "a connection from the hub to the box", func() error {
		c, err := box.HubDial(t.Context(), b.IP()+":7000")
		if err == nil {
			c.Close()
		}
		return err
	})
}

func TestDeviceHangs(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	b.Freeze()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := b.Exec(ctx, "true"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a command in a frozen box gave %v, want the deadline", err)
	}
	b.Thaw()
	run(t, b, "true")
}

func TestDeviceDiskFails(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{Size: "48M"})
	if _, err := b.Exec(t.Context(), "dd", "if=/dev/zero", "of=/big", "bs=1M", "count=100"); err == nil {
		t.Error("100 MB went on a disk of 48 MB")
	}
	run(t, b, "rm", "/big")
	b.ReadOnly()
	if _, err := b.Exec(t.Context(), "touch", "/etc/x"); err == nil {
		t.Error("a write on the failed disk worked")
	}
	b.Crash()
	b.Up()
	run(t, b, "touch", "/etc/x")
}

// The sockets of the device can be dialled from this process: libraries under test may run on either side.
func TestDeviceSocketsFromOutside(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	conn, err := dbus.Dial("unix:path=" + b.Root() + "/run/dbus/system_bus_socket")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := errors.Join(conn.Auth(nil), conn.Hello()); err != nil {
		t.Fatal(err)
	}
	v, err := conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
		GetProperty("org.freedesktop.systemd1.Manager.Virtualization")
	if err != nil || v.Value() != "systemd-nspawn" {
		t.Errorf("systemd over D-Bus says it runs in %v (%v), want systemd-nspawn", v, err)
	}

	run(t, b, "systemctl", "start", "podman.socket")
	socket := b.Root() + "/run/podman/podman.sock"
	podman := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	defer podman.CloseIdleConnections()
	resp, err := podman.Get("http://podman/v4.0.0/libpod/_ping")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "OK" {
		t.Errorf("podman's API answered %q (%v), want OK", body, err)
	}
}

func TestDevicePodmanAndRegistry(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	run(t, b, "pibox-image")
	if got := run(t, b, "podman", "run", "--rm", "localhost/busybox:1", "echo", "hi"); got != "hi" {
		t.Errorf("the container said %q, want hi", got)
	}
	image := box.Registry(t) + "/busybox:1"
	run(t, b, "podman", "push", "-q", "localhost/busybox:1", image)
	run(t, b, "podman", "rmi", "-a", "-f")
	run(t, b, "podman", "pull", "-q", image)
}

func TestDeviceRunsTestBinaries(t *testing.T) {
	t.Parallel()
	b := box.Start(t, box.Options{})
	b.RunTestBinary("./test/device/inbox")
}

// run runs a command that must succeed.
func run(t *testing.T, b *box.Box, args ...string) string {
	t.Helper()
	out, err := b.Exec(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// serve answers every HTTP request with a word until the test ends.
func serve(t *testing.T, l net.Listener, word string) {
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, word) })}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
}
