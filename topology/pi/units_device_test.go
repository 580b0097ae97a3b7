//go:build device

package pi

import (
	"os"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A daemon-reload costs a small device a second; what is new costs one.
func TestNewServiceCostsOneReload(t *testing.T) {
	s := device(t).Services()
	const unit = "ct-once.service"
	state(t, s, unit) // loads what other tests have left
	before := reloads(t)
	define(t, s, unit, sleeper)
	if err := s.SetEnabled(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if st := state(t, s, unit); st.Load != topology.Loaded || st.Enabled != "enabled" {
		t.Fatalf("%+v", st)
	}
	if err := s.Start(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	state(t, s, unit)
	if n := reloads(t) - before; n != 1 {
		t.Errorf("a new service that is enabled costs %d reloads", n)
	}
	if got := sh(t, "systemctl show -P NeedDaemonReload "+unit); got != "no" {
		t.Errorf("NeedDaemonReload is %s", got)
	}
}

// reloads counts the daemon-reloads since the boot.
func reloads(t *testing.T) int {
	t.Helper()
	return number(t, sh(t, `journalctl --sync; journalctl -b _PID=1 -o cat --no-pager | grep -c '^Reloading\.' || true`))
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

func TestMasked(t *testing.T) { // cases 57, 35
	s := device(t).Services()
	sh(t, "systemctl mask ct-masked.service 2>&1")
	t.Cleanup(func() { sh(t, "systemctl unmask ct-masked.service 2>&1") })
	if st := state(t, s, "ct-masked.service"); st.Load != topology.Masked || st.Enabled != "masked" || st.Definition.Type != topology.Symlink {
		t.Errorf("%+v", st)
	}
	wantCode(t, s.Start(t.Context(), "ct-masked.service", true), topology.CodeMasked, "unmask")
	wantCode(t, s.SetEnabled(t.Context(), "ct-masked.service", true), topology.CodeMasked)
	wantCode(t, s.Define(t.Context(), topology.Definition{Unit: "ct-masked.service", Text: []byte(sleeper), Mark: "a/b"}), topology.CodeMasked)

	define(t, s, "ct-zero.service", sleeper)
	state(t, s, "ct-zero.service")
	sh(t, "truncate -s 0 /etc/systemd/system/ct-zero.service; systemctl daemon-reload")
	if st := state(t, s, "ct-zero.service"); st.Load != topology.Masked || st.Definition.Type != topology.Regular || st.Definition.Size != 0 {
		t.Errorf("zero bytes: %+v", st)
	}
	if err := s.Define(t.Context(), topology.Definition{Unit: "ct-zero.service", Text: []byte(sleeper), Mark: "kiosk/test"}); err != nil {
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
	if st := state(t, d.Services(), "ct-drop.service"); len(st.DropIns) != 1 || st.DropIns[0].Path != p {
		t.Errorf("drop-ins: %v", st.DropIns)
	}
	if err := d.Files().RemoveFile(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if st := state(t, d.Services(), "ct-drop.service"); len(st.DropIns) != 0 {
		t.Errorf("drop-ins after removal: %v", st.DropIns)
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
