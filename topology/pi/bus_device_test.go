//go:build device

package pi

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func TestManyCanceledJobsLeaveNothing(t *testing.T) { // case 64
	d := device(t)
	s := d.Services()
	for i := range 5 {
		define(t, s, fmt.Sprintf("ct-many%d.service", i), sleeper)
	}
	state(t, s, "ct-many0.service")
	before := runtime.NumGoroutine()
	for i := range 200 {
		unit := fmt.Sprintf("ct-many%d.service", i%5)
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%20)*time.Millisecond)
		if i%2 == 0 {
			_ = s.Start(ctx, unit, true)
		} else {
			_ = s.Stop(ctx, unit)
		}
		cancel()
		if i == 50 {
			sh(t, "systemctl daemon-reexec")
		}
		if i == 100 {
			d.services.bus.current().close()
		}
	}
	for i := range 5 {
		if err := s.Stop(t.Context(), fmt.Sprintf("ct-many%d.service", i)); err != nil {
			t.Fatal(err)
		}
	}
	before += 2 // go-systemd may leave its reader of a connection that breaks, and two did; of 200 jobs nothing may stay
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before {
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before\n%s", now, before, buf[:runtime.Stack(buf, true)])
	}
}

func TestSystemdAndBusRestart(t *testing.T) { // case 64
	s := device(t).Services()
	define(t, s, "ct-reexec.service", sleeper)
	if err := s.Start(t.Context(), "ct-reexec.service", false); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		done := make(chan error, 1)
		go func() { done <- exec.Command("systemctl", "daemon-reexec").Run() }()
		for running := true; running; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
			}
			if st := state(t, s, "ct-reexec.service"); st.Active != "active" {
				t.Fatalf("%+v", st)
			}
		}
		if err := s.Restart(t.Context(), "ct-reexec.service", false); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, "systemctl restart dbus.service; systemctl try-restart systemd-hostnamed.service") // hostnamed hangs on without a bus
	if st := state(t, s, "ct-reexec.service"); st.Active != "active" {
		t.Errorf("after the bus restarted: %+v", st)
	}
}

func TestHostname(t *testing.T) {
	h := device(t).Host()
	old, err := h.Hostname(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.SetHostname(context.WithoutCancel(t.Context()), old.Static) })
	if err := h.SetHostname(t.Context(), "ct-name"); err != nil {
		t.Fatal(err)
	}
	st, err := h.Hostname(t.Context())
	if err != nil || st.Static != "ct-name" || st.Transient != "ct-name" {
		t.Errorf("%+v, %v", st, err)
	}
	if data, _ := os.ReadFile("/etc/hostname"); !bytes.Equal(data, []byte("ct-name\n")) {
		t.Errorf("/etc/hostname is %q", data)
	}
	if got := sh(t, "uname -n"); got != "ct-name" {
		t.Errorf("the kernel says %q", got)
	}
	wantCode(t, h.SetHostname(t.Context(), "no good name!"), topology.CodeInvalid)
}

func TestNoHostnamed(t *testing.T) { // X29
	const activation = "/usr/share/dbus-1/system-services/org.freedesktop.hostname1.service"
	sh(t, "systemctl stop systemd-hostnamed.service; mv "+activation+" /tmp/; busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig")
	t.Cleanup(func() {
		sh(t, "mv /tmp/org.freedesktop.hostname1.service "+activation+"; busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig")
	})
	_, err := device(t).Host().Hostname(t.Context())
	wantCode(t, err, topology.CodeUnavailable, "systemd-hostnamed")
}

func TestEvents(t *testing.T) { // H25, H62
	d := device(t)
	s := d.Services()
	define(t, s, "ct-ev.service", "[Unit]\nStartLimitIntervalSec=0\n"+sleeper)
	if err := s.Start(t.Context(), "ct-ev.service", false); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	put(t, dir+"/conf", "x")
	file := topology.Resource("file:" + dir + "/conf")
	deep := topology.Resource("file:" + dir + "/a/b/deep")
	heard := make(chan topology.Resource, 1000)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- d.Events().Watch(ctx, []topology.Resource{file, deep, "unit:ct-ev.service", "hostname", "container:ct-ev"}, func(r topology.Resource) { heard <- r })
	}()
	expect := func(name string, want topology.Resource, do string) {
		t.Helper()
		sh(t, do)
		limit := time.After(30 * time.Second) // on a busy machine; test/device measures
		for {
			select {
			case r := <-heard:
				if r == want {
					return
				}
			case <-limit:
				t.Fatalf("%s: no event for %s", name, want)
			}
		}
	}
	// The subscription is there when the first event comes through.
	for ready := false; !ready; {
		sh(t, "systemctl kill -s CONT ct-ev.service; systemctl restart ct-ev.service")
		select {
		case <-heard:
			ready = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	expect("edit in place", file, "echo y >>"+dir+"/conf")
	expect("replace", file, "echo z >"+dir+"/n; mv "+dir+"/n "+dir+"/conf")
	expect("chmod", file, "chmod 600 "+dir+"/conf")
	expect("remove", file, "rm "+dir+"/conf")
	expect("create", file, "touch "+dir+"/conf")
	expect("directory on the way", deep, "mkdir -p "+dir+"/a/b; touch "+dir+"/a/b/deep")
	expect("edit below it", deep, "echo x >>"+dir+"/a/b/deep")
	expect("remove directory", deep, "rm -r "+dir+"/a")
	expect("stop by hand", "unit:ct-ev.service", "systemctl stop ct-ev.service")
	expect("unit file edited", "unit:ct-ev.service", "echo '#' >>/etc/systemd/system/ct-ev.service")
	expect("enabled by hand", "unit:ct-ev.service", "systemctl enable ct-ev.service 2>&1")
	expect("container definition", "container:ct-ev", "mkdir -p /etc/containers/systemd; touch /etc/containers/systemd/ct-ev.container; rm /etc/containers/systemd/ct-ev.container")
	expect("host name", "hostname", "hostnamectl hostname ct-ev-name")
	sh(t, "systemctl restart dbus.service; systemctl try-restart systemd-hostnamed.service") // hostnamed hangs on without a bus
	expect("after the bus restarted", "unit:ct-ev.service", "systemctl start ct-ev.service; sleep 1.5; systemctl stop ct-ev.service")
	stop()
	wantCode(t, <-done, topology.CodeCanceled)
}

func BenchmarkService(b *testing.B) {
	s := device(b).Services()
	define(b, s, "ct-bench.service", sleeper)
	if err := s.Start(b.Context(), "ct-bench.service", false); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu(b)
	for range b.N {
		state(b, s, "ct-bench.service")
	}
}

// A process that is killed between writing a definition and loading it leaves word for
// the next one.
