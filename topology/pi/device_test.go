//go:build device

package pi

import (
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
	return settling(t, 700*time.Millisecond)
}

// settling is a device with a settle time.
func settling(t testing.TB, d time.Duration) *Device {
	t.Helper()
	if os.Getenv("CONTINUO_IN_BOX") != "1" {
		t.Fatal("this test runs in a box only: it changes the units of the machine")
	}
	dev, err := Open(t.Context(), Options{Settle: d, Plaintext: []string{registryAddr}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
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
	if err := s.Define(t.Context(), topology.Definition{Unit: unit, Text: []byte(text), Mark: "kiosk/test"}); err != nil {
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
			before := reloads(t)
			if err := s.Start(t.Context(), unit, false); err != nil {
				t.Fatal(err)
			}
			again := state(t, s, unit)
			if again.Invocation != st.Invocation || again.MainPID != st.MainPID {
				t.Error("Start of a running unit started it again")
			}
			if n := reloads(t) - before; n != 0 {
				t.Errorf("%d daemon-reloads while nothing changed", n)
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

func TestEndsWithinSettleTime(t *testing.T) { // case 50
	s := settling(t, 4*time.Second).Services() // a busy machine takes long to start and to end a process
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
	if err := s.Define(t.Context(), topology.Definition{Unit: unit, Text: []byte("[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1h\n" + sleeper), Mark: "kiosk/test"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
}
