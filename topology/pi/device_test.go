//go:build device

package pi

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// These tests need a systemd that they may break: they run in a box, as root. Each
// makes its own units and takes them away again.

func device(t testing.TB) *Device {
	t.Helper()
	if os.Getenv("CONTINUO_IN_BOX") != "1" {
		t.Fatal("this test runs in a box only: it changes the units of the machine")
	}
	d, err := Open(t.Context(), Options{Settle: 700 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func sh(t testing.TB, line string) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", line).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return strings.TrimSpace(string(out))
}

// define writes a unit and removes it at the end of the test.
func define(t testing.TB, s topology.Services, unit, text string) {
	t.Helper()
	if err := s.Define(t.Context(), unit, []byte(text), "kiosk/test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Undefine(context.WithoutCancel(t.Context()), unit); err != nil {
			t.Error(err)
		}
	})
}

func state(t testing.TB, s topology.Services, unit string) topology.ServiceState {
	t.Helper()
	st, err := s.Service(t.Context(), unit)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

const sleeper = "[Service]\nExecStart=/bin/sleep 1d\n\n[Install]\nWantedBy=multi-user.target\n"

func TestServiceLife(t *testing.T) { // H59, H51, X35, case 47, 66
	s := device(t).Services()
	for _, unit := range []string{"ct-life.service", "ct_life_db.service", "ct.a-b@x:1.service", `ct-esc@a\x2db.service`} {
		t.Run(unit, func(t *testing.T) {
			st := state(t, s, unit)
			if st.Load != topology.NotFound || st.Enabled != "" || st.Definition.Type != topology.Absent {
				t.Fatalf("before: %+v", st)
			}
			wantCode(t, s.Start(t.Context(), unit, false), topology.CodeInvalid, "no such unit")
			wantCode(t, s.Stop(t.Context(), unit), topology.CodeInvalid, "no such unit")
			wantCode(t, s.SetEnabled(t.Context(), unit, true), topology.CodeInvalid, "no such unit")
			define(t, s, unit, sleeper)
			if err := s.SetEnabled(t.Context(), unit, true); err != nil {
				t.Fatal(err)
			}
			if err := s.Start(t.Context(), unit, false); err != nil {
				t.Fatal(err)
			}
			st = state(t, s, unit)
			if st.Load != topology.Loaded || st.Active != "active" || st.Sub != "running" || st.Enabled != "enabled" || st.Type != "simple" ||
				st.MainPID == 0 || st.Invocation == "" || time.Since(st.Since) > time.Minute || st.Source != unitDir+unit ||
				st.Definition.Mark != "kiosk/test" || st.Definition.Mode != 0o644 || st.Result != "success" {
				t.Errorf("started: %+v", st)
			}
			if got := sh(t, "systemctl show -p NeedDaemonReload --value '"+unit+"'"); got != "no" {
				t.Errorf("NeedDaemonReload is %s after SetEnabled", got)
			}
			jobs := sh(t, "journalctl -b --no-pager | grep -c 'Reloading requested' || true")
			if err := s.Start(t.Context(), unit, false); err != nil {
				t.Fatal(err)
			}
			again := state(t, s, unit)
			if again.Invocation != st.Invocation || again.MainPID != st.MainPID {
				t.Error("Start of a running unit started it again")
			}
			if now := sh(t, "journalctl -b --no-pager | grep -c 'Reloading requested' || true"); now != jobs {
				t.Errorf("daemon-reloads while nothing changed: %s, then %s", jobs, now)
			}
			if err := s.Restart(t.Context(), unit, false); err != nil {
				t.Fatal(err)
			}
			if now := state(t, s, unit); now.Invocation == st.Invocation {
				t.Error("Restart did not restart")
			}
			if err := s.Stop(t.Context(), unit); err != nil {
				t.Fatal(err)
			}
			if err := s.SetEnabled(t.Context(), unit, false); err != nil {
				t.Fatal(err)
			}
			if st = state(t, s, unit); st.Active != "inactive" || st.Enabled != "disabled" || st.MainPID != 0 {
				t.Errorf("stopped: %+v", st)
			}
		})
	}
	for _, unit := range []string{"a b.service", "foo@.service", "foo", "../x.service", "", "ü.service"} {
		_, err := s.Service(t.Context(), unit)
		wantCode(t, err, topology.CodeInvalid, "not the name of a unit")
	}
}

func TestUndefine(t *testing.T) {
	s := device(t).Services()
	define(t, s, "ct-undef.service", sleeper)
	if err := s.SetEnabled(t.Context(), "ct-undef.service", true); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), "ct-undef.service", false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Undefine(t.Context(), "ct-undef.service"); err != nil {
			t.Fatal(err)
		}
	}
	if st := state(t, s, "ct-undef.service"); st.Load != topology.NotFound || st.Active != "inactive" || st.Definition.Type != topology.Absent {
		t.Errorf("%+v", st)
	}
	if _, err := os.Lstat("/etc/systemd/system/multi-user.target.wants/ct-undef.service"); err == nil {
		t.Error("the link is left")
	}
}

func TestEndsWithinSettleTime(t *testing.T) { // case 50
	s := device(t).Services()
	tests := []struct {
		name, text string
		code       topology.Code
		words      string
	}{
		{"fails", "[Service]\nExecStart=/bin/false\n", topology.CodeExited, "exit code 1"},
		{"fails later", "[Service]\nExecStart=/bin/sh -c 'sleep 0.3; exit 7'\n", topology.CodeExited, "exit code 7"},
		{"ends well", "[Service]\nExecStart=/bin/true\n", topology.CodeExited, "exit code 0"},
		{"is restarted", "[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=1\n", topology.CodeExited, "exit code 1"},
		{"is restarted fast", "[Service]\nExecStart=/bin/sh -c 'sleep 0.1; exit 3'\nRestart=always\nRestartSec=10ms\nStartLimitBurst=100\n", topology.CodeExited, "restarts"},
		{"killed", "[Service]\nExecStart=/bin/sh -c 'kill -9 $$$$'\n", topology.CodeExited, "exit code 137"},
		{"no program", "[Service]\nExecStart=/no/such/program\n", topology.CodeExited, "exit code 203"},
		{"notify never comes", "[Service]\nType=notify\nExecStart=/bin/false\n", topology.CodeJobFailed, "exit code 1"},
		{"oneshot fails", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'exit 5'\n", topology.CodeJobFailed, "exit code 5"},
		{"oneshot", "[Service]\nType=oneshot\nExecStart=/bin/true\n", "", ""},
		{"oneshot that remains", "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n", "", ""},
		{"runs", sleeper, "", ""},
		{"bad setting", "[Service]\nExecStart=not/absolute\n", topology.CodeDefinition, "bad-setting"},
		{"no start at all", "[Service]\nUser=root\n", topology.CodeDefinition, "bad-setting"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			unit := fmt.Sprintf("ct-ends%d.service", i)
			define(t, s, unit, tt.text)
			err := s.Start(t.Context(), unit, true)
			if tt.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantCode(t, err, tt.code, tt.words)
		})
	}
}

func TestStopActivating(t *testing.T) { // case 51
	s := device(t).Services()
	define(t, s, "ct-act.service", "[Service]\nExecStartPre=/bin/sleep 999\nExecStart=/bin/sleep 1d\n")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx, "ct-act.service", false) }()
	for state(t, s, "ct-act.service").Active != "activating" {
		runtime.Gosched()
	}
	if err := s.Stop(t.Context(), "ct-act.service"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, <-done, topology.CodeJobFailed, "overtook")
	cancel()
	if st := state(t, s, "ct-act.service"); st.Active != "inactive" && st.Active != "failed" {
		t.Errorf("%+v", st)
	}
}

func TestStartLimit(t *testing.T) { // case 54
	s := device(t).Services()
	const unit = "ct-limit.service"
	define(t, s, unit, "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1h\n[Service]\nExecStart=/bin/false\n")
	for range 2 {
		wantCode(t, s.Start(t.Context(), unit, false), topology.CodeExited)
	}
	wantCode(t, s.Start(t.Context(), unit, false), topology.CodeStartLimit, "reset-failed")
	invocation := state(t, s, unit).Invocation
	wantCode(t, s.Start(t.Context(), unit, false), topology.CodeStartLimit)
	if state(t, s, unit).Invocation != invocation {
		t.Error("it was tried again")
	}
	if err := s.Define(t.Context(), unit, []byte("[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1h\n"+sleeper), "kiosk/test"); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
}

func TestMasked(t *testing.T) { // cases 57, 35
	s := device(t).Services()
	sh(t, "systemctl mask ct-masked.service 2>&1")
	t.Cleanup(func() { sh(t, "systemctl unmask ct-masked.service 2>&1") })
	if st := state(t, s, "ct-masked.service"); st.Load != topology.Masked || st.Enabled != "masked" || st.Definition.Type != topology.Symlink {
		t.Errorf("%+v", st)
	}
	wantCode(t, s.Start(t.Context(), "ct-masked.service", true), topology.CodeMasked, "unmask")
	wantCode(t, s.SetEnabled(t.Context(), "ct-masked.service", true), topology.CodeMasked)
	wantCode(t, s.Define(t.Context(), "ct-masked.service", []byte(sleeper), "a/b"), topology.CodeMasked)

	define(t, s, "ct-zero.service", sleeper)
	state(t, s, "ct-zero.service")
	sh(t, "truncate -s 0 /etc/systemd/system/ct-zero.service; systemctl daemon-reload")
	if st := state(t, s, "ct-zero.service"); st.Load != topology.Masked || st.Definition.Type != topology.Regular || st.Definition.Size != 0 {
		t.Errorf("zero bytes: %+v", st)
	}
	if err := s.Define(t.Context(), "ct-zero.service", []byte(sleeper), "kiosk/test"); err != nil {
		t.Fatal(err)
	}
	if st := state(t, s, "ct-zero.service"); st.Load != topology.Loaded {
		t.Errorf("repaired: %+v", st)
	}
}

func TestNewDropIn(t *testing.T) { // case 55
	d := device(t)
	define(t, d.Services(), "ct-drop.service", sleeper)
	if err := d.Services().Start(t.Context(), "ct-drop.service", false); err != nil {
		t.Fatal(err)
	}
	p := "/etc/systemd/system/ct-drop.service.d/10.conf"
	if err := d.Files().WriteFile(t.Context(), topology.FileWrite{Path: p, Content: []byte("[Service]\nEnvironment=X=new\n"), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll("/etc/systemd/system/ct-drop.service.d") })
	if err := d.Services().Restart(t.Context(), "ct-drop.service", false); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, "systemctl show -p Environment --value ct-drop.service"); got != "X=new" {
		t.Errorf("environment is %q", got)
	}
	if st := state(t, d.Services(), "ct-drop.service"); len(st.Overrides) != 1 || st.Overrides[0] != p {
		t.Errorf("overrides: %v", st.Overrides)
	}
	if err := d.Files().RemoveFile(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if st := state(t, d.Services(), "ct-drop.service"); len(st.Overrides) != 0 {
		t.Errorf("overrides after removal: %v", st.Overrides)
	}
}

func TestEditedByHandIsLoaded(t *testing.T) {
	s := device(t).Services()
	define(t, s, "ct-hand.service", sleeper)
	state(t, s, "ct-hand.service")
	sh(t, "sleep 0.01; sed -i 's/sleep 1d/sleep 2d/' /etc/systemd/system/ct-hand.service")
	state(t, s, "ct-hand.service")
	if got := sh(t, "systemctl show -p ExecStart --value ct-hand.service"); !strings.Contains(got, "sleep 2d") {
		t.Errorf("loaded is %s", got)
	}
}

func TestEnabledForThisBootOnly(t *testing.T) { // case 59
	s := device(t).Services()
	const unit = "ct-rt.service"
	define(t, s, unit, sleeper)
	state(t, s, unit)
	sh(t, "systemctl enable --runtime "+unit+" 2>&1")
	if st := state(t, s, unit); st.Enabled != "enabled-runtime" {
		t.Errorf("enabled is %q", st.Enabled)
	}
	for range 2 {
		if err := s.SetEnabled(t.Context(), unit, false); err != nil {
			t.Fatal(err)
		}
		if st := state(t, s, unit); st.Enabled != "disabled" {
			t.Errorf("enabled is %q", st.Enabled)
		}
	}
	sh(t, "systemctl enable --runtime "+unit+" 2>&1")
	if err := s.SetEnabled(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if st := state(t, s, unit); st.Enabled != "enabled" {
		t.Errorf("enabled is %q", st.Enabled)
	}
	if _, err := os.Lstat("/etc/systemd/system/multi-user.target.wants/" + unit); err != nil {
		t.Error(err)
	}
	define(t, s, "ct-static.service", "[Service]\nExecStart=/bin/sleep 1d\n")
	wantCode(t, s.SetEnabled(t.Context(), "ct-static.service", true), topology.CodeInvalid, "[Install]")
}

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
	deadline := time.Now().Add(10 * time.Second)
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
	sh(t, "systemctl restart dbus.service")
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

func TestEvents(t *testing.T) { // H25, H62
	d := device(t)
	s := d.Services()
	define(t, s, "ct-ev.service", sleeper)
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
		limit := time.After(2 * time.Second)
		sh(t, do)
		for {
			select {
			case r := <-heard:
				if r == want {
					return
				}
			case <-limit:
				t.Fatalf("%s: no event for %s within 2 s", name, want)
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
	sh(t, "systemctl restart dbus.service")
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
func TestReloadIsNotForgotten(t *testing.T) { // case 55
	d := device(t)
	define(t, d.Services(), "ct-word.service", sleeper)
	if err := d.Services().Start(t.Context(), "ct-word.service", false); err != nil {
		t.Fatal(err)
	}
	p := "/etc/systemd/system/ct-word.service.d/10.conf"
	if err := d.Files().WriteFile(t.Context(), topology.FileWrite{Path: p, Content: []byte("[Service]\nEnvironment=X=new\n"), Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll("/etc/systemd/system/ct-word.service.d") })
	next := device(t)
	if err := next.Services().Restart(t.Context(), "ct-word.service", false); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, "systemctl show -p Environment --value ct-word.service"); got != "X=new" {
		t.Errorf("environment is %q", got)
	}
	if _, err := os.Lstat(reloadMark); err == nil {
		t.Errorf("%s is left after the reload", reloadMark)
	}
}
