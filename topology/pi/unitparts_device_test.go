//go:build device

package pi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

func dropIn(unit, name, text string) topology.Definition {
	return topology.Definition{Unit: unit, DropIn: name, Text: []byte(topology.DropInHeader + text), Mark: "kiosk/test"}
}

// A drop-in in a folder that is new, and one that is taken away, cost one reload each and are in force at once (cases 55).
func TestDropInCostsOneReload(t *testing.T) {
	s := device(t).Services()
	const unit = "ct-parts.service"
	define(t, s, unit, sleeper)
	state(t, s, unit)
	before := reloads(t)
	for _, name := range []string{"10-a", "20-b", "30-c"} {
		if err := s.Define(t.Context(), dropIn(unit, name, "[Service]\nEnvironment=X="+name+"\n")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetEnabled(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if st := state(t, s, unit); len(st.DropIns) != 3 || st.Stale {
		t.Errorf("%+v", st.DropIns)
	}
	if n := reloads(t) - before; n != 1 {
		t.Errorf("three drop-ins cost %d reloads", n)
	}
	if got := sh(t, "systemctl show -p Environment --value "+unit); got != "X=30-c" {
		t.Errorf("environment is %q", got)
	}
	if err := s.Undefine(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(unitDir + unit + ".d"); err == nil {
		t.Error("the folder of the drop-ins is left")
	}
}

// What somebody else put in the place of a drop-in of ours is told apart and stays, and so does a copy of ours.
func TestDropInOfSomebodyElse(t *testing.T) { // G50
	s := device(t).Services()
	const unit = "ct-others.service"
	define(t, s, unit, sleeper)
	dir := unitDir + unit + ".d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range map[string]string{
		"10-theirs.conf": "[Service]\nExecStart=\nExecStart=/bin/sleep 2d\n",
		"20-copy.conf":   topology.DropInHeader + "[Service]\nNice=3\n", // has our first line, and not our mark
		".hidden.conf":   "[Service]\nNice=4\n",
		"notes.txt":      "not a drop-in",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/null", filepath.Join(dir, "30-null.conf")); err != nil {
		t.Fatal(err)
	}
	sh(t, "systemctl daemon-reload")
	st := state(t, s, unit)
	var names []string
	for _, d := range st.DropIns {
		names = append(names, filepath.Base(d.Path)+"="+d.Name)
	}
	if got := strings.Join(names, " "); got != "10-theirs.conf= 20-copy.conf= 30-null.conf=" {
		t.Errorf("got %s", got)
	}
	wantCode(t, s.RemoveDropIn(t.Context(), unit, "10-theirs"), topology.CodeForeign, "somebody else")
	wantCode(t, s.RemoveDropIn(t.Context(), unit, "20-copy"), topology.CodeForeign)
	for _, bad := range []string{"", "../x", "a/b", ".x"} {
		wantCode(t, s.RemoveDropIn(t.Context(), unit, bad), topology.CodeInvalid)
		wantCode(t, s.Define(t.Context(), topology.Definition{Unit: unit, DropIn: bad + "/"}), topology.CodeInvalid)
	}
	if _, err := os.Lstat(filepath.Join(dir, "20-copy.conf")); err != nil {
		t.Error(err)
	}
}

// A user can put the socket of another manager in the place of that of his own. Root does not speak to it.
func TestUserManagerIsHis(t *testing.T) {
	d := device(t)
	s := d.Services()
	if _, err := s.Service(t.Context(), "pi/ct-any.service"); err != nil {
		t.Fatal(err)
	}
	const socket = "/run/user/1000/systemd/private"
	sh(t, "mv "+socket+" "+socket+".old && ln -s /run/systemd/private "+socket)
	t.Cleanup(func() { sh(t, "mv -T "+socket+".old "+socket) })
	next := device(t)
	_, err := next.Services().Service(t.Context(), "pi/ct-any.service")
	wantCode(t, err, topology.CodeUnavailable, "is not the service manager of pi")
}

func TestLinger(t *testing.T) {
	s := device(t).Services()
	sh(t, "systemctl restart systemd-logind; useradd -m -u 4001 ct-linger") // which another test may have cut off from the bus
	t.Cleanup(func() {
		sh(t, "loginctl disable-linger ct-linger; loginctl terminate-user ct-linger; sleep 1; userdel -rf ct-linger || true")
	})
	st, err := s.Service(t.Context(), "ct-linger/x.service")
	wantCode(t, err, topology.CodeUnavailable, "linger")
	if st.Load != topology.NotFound || st.Definition.Type != topology.Absent {
		t.Errorf("%+v", st)
	}
	for range 2 {
		if err := s.SetLinger(t.Context(), "ct-linger", true); err != nil {
			t.Fatal(err)
		}
		if on, err := s.Lingers(t.Context(), "ct-linger"); err != nil || !on {
			t.Fatalf("got %v, %v", on, err)
		}
	}
	if _, err := s.Service(t.Context(), "ct-linger/x.service"); err != nil {
		t.Fatal(err)
	}
	const unit = "ct-linger/ct-l.service"
	define(t, s, unit, "[Service]\nExecStart=/bin/sleep 1d\n[Install]\nWantedBy=default.target\n")
	if err := s.Start(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, "ps -o user= -p "+sh(t, "systemctl --user -M ct-linger@ show -P MainPID ct-l.service")); got != "ct-linger" && !strings.HasPrefix("ct-linger", strings.TrimSuffix(got, "+")) {
		t.Errorf("it runs as %s", got)
	}
	if err := s.Undefine(context.WithoutCancel(t.Context()), unit); err != nil {
		t.Fatal(err)
	}
	if err := s.SetLinger(t.Context(), "ct-linger", false); err != nil {
		t.Fatal(err)
	}
	if on, err := s.Lingers(t.Context(), "ct-linger"); err != nil || on {
		t.Fatalf("got %v, %v", on, err)
	}
}

// A user is removed with all that runs for him. What was written for his manager goes without it.
func TestUnitOfARemovedUser(t *testing.T) {
	s := device(t).Services()
	sh(t, "systemctl restart systemd-logind; useradd -m -u 4002 ct-gone") // a number that nobody had whose manager still stops
	t.Cleanup(func() { sh(t, "userdel -rf ct-gone 2>/dev/null || true") })
	if err := s.SetLinger(t.Context(), "ct-gone", true); err != nil {
		t.Fatal(err)
	}
	const unit = "ct-gone/ct-g.service"
	define(t, s, unit, "[Service]\nExecStart=/bin/sleep 1d\n[Install]\nWantedBy=default.target\n")
	if err := s.Define(t.Context(), dropIn(unit, "10-a", "[Service]\nNice=1\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.SetEnabled(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context(), unit, true); err != nil {
		t.Fatal(err)
	}
	sh(t, "loginctl disable-linger ct-gone; loginctl terminate-user ct-gone; sleep 1; userdel -r ct-gone 2>/dev/null")
	st, err := s.Service(t.Context(), unit)
	wantCode(t, err, topology.CodeNoAccount, "no user")
	if st.Definition.Mark == "" || len(st.DropIns) != 1 {
		t.Errorf("%+v", st)
	}
	if err := s.Undefine(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, "ls -d /etc/systemd/user/ct-g.service* 2>/dev/null || :"); got != "" {
		t.Errorf("left: %s", got)
	}
}

// Each run has its own words, also right after it ended, and a look at units that are well reads no journal.
func TestWords(t *testing.T) { // H43
	s := device(t).Services()
	const unit = "ct-words.service"
	for _, n := range []string{"one", "two"} {
		define(t, s, unit, `[Service]`+"\nType=oneshot\n"+`ExecStart=/bin/sh -c "for i in $(seq 500); do echo line $i; done; printf '\033[31mred `+n+`\033[0m'; exit 3"`+"\n")
		err := s.RunOnce(t.Context(), unit, n)
		wantCode(t, err, topology.CodeExited, "exit code 3")
		r := state(t, s, unit).Ran
		if r == nil || r.Digest != n || !r.Truncated || !strings.Contains(r.Output, "red "+n) || strings.ContainsRune(r.Output, 27) || strings.Count(r.Output, "\n") >= topology.LogLines {
			t.Fatalf("%+v", r)
		}
	}
	if fi, err := os.Stat("/var/lib/continuo/runs/" + unit); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	sh(t, "echo damaged >/var/lib/continuo/runs/"+unit)
	if r := state(t, s, unit).Ran; r != nil {
		t.Errorf("a damaged record is %+v", r)
	}
}

// A run that outlives the program that asked for it is joined by the next one, and counts once.
func TestRunIsJoined(t *testing.T) { // cases 53
	s := device(t).Services()
	const unit = "ct-join.service"
	define(t, s, unit, "[Service]\nType=oneshot\nExecStart=/bin/sh -c \"echo ran >>/run/ct-join; sleep 4\"\n")
	t.Cleanup(func() { _ = os.Remove("/run/ct-join") })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.RunOnce(ctx, unit, "d") }()
	for state(t, s, unit).Active != "activating" {
	}
	cancel()
	<-done
	next := device(t).Services()
	if err := next.RunOnce(t.Context(), unit, "d"); err != nil {
		t.Fatal(err)
	}
	if r := state(t, next, unit).Ran; r == nil || r.Result != "success" {
		t.Errorf("%+v", r)
	}
	if got := sh(t, "cat /run/ct-join"); got != "ran" {
		t.Errorf("it ran %q", got)
	}
}

// The kernel of a box bounds nothing, which is said before anything is written.
func TestControllers(t *testing.T) { // cases 92
	d := device(t)
	have, err := d.Services().Controllers(t.Context(), "x.service")
	if err != nil {
		t.Fatal(err)
	}
	want := sh(t, "cat /sys/fs/cgroup/cgroup.controllers")
	if strings.Join(have, " ") != want {
		t.Errorf("got %v, want %s", have, want)
	}
}
