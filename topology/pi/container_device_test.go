//go:build device

package pi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

const busybox = "localhost/busybox:1"

// sleepCommand ends at once when it is told to.
var sleepCommand = []string{"sh", "-c", "trap 'exit 0' TERM; sleep 1d & wait"}

func box(t testing.TB) (*Device, topology.Containers) {
	t.Helper()
	d := device(t)
	sh(t, "podman image exists "+busybox+" || pibox-image >/dev/null")
	return d, d.Containers()
}

func run(t testing.TB, c topology.Containers, cfg topology.ContainerConfig) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.RemoveContainer(context.WithoutCancel(t.Context()), cfg.Name); err != nil {
			t.Error(err)
		}
	})
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func look(t testing.TB, c topology.Containers, name string) topology.ContainerState {
	t.Helper()
	st, err := c.Container(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Departs) > 0 && name != departing {
		t.Errorf("%s departs from its definition in %v", name, st.Departs)
	}
	return st
}

// until looks until ok, for at most a minute.
func until(t testing.TB, c topology.Containers, name string, ok func(topology.ContainerState) bool) topology.ContainerState {
	t.Helper()
	for began := time.Now(); ; {
		st := look(t, c, name)
		if ok(st) {
			return st
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("still %+v", st)
		}
	}
}

func config(name string) topology.ContainerConfig {
	return topology.ContainerConfig{Name: name, Image: busybox, Command: sleepCommand, Restart: "always", SpecDigest: "sha256:1", Mark: "kiosk/" + topology.Mark(name)}
}

func TestContainerLife(t *testing.T) { // H25, H58, X35
	_, c := box(t)
	if st := look(t, c, "ct-life"); st.State != "absent" || st.Mark != "" || st.SpecDigest != "" {
		t.Fatalf("before: %+v", st)
	}
	digest, err := c.EnsureImage(t.Context(), topology.ImageRequest{Image: busybox})
	if err != nil || !strings.HasPrefix(digest, "sha256:") {
		t.Fatal(digest, err)
	}
	cfg := config("ct-life")
	cfg.Volumes = []string{"ct-life-data:/data"}
	t.Cleanup(func() { sh(t, "podman volume rm ct-life-data") }) // it is still there
	run(t, c, cfg)
	st := look(t, c, "ct-life")
	if st.State != "running" || st.Mark != cfg.Mark || st.SpecDigest != cfg.SpecDigest || st.Digest != digest || st.ID == "" || st.Restarts != 0 ||
		st.Image != busybox || time.Since(st.Since) > time.Minute || st.Unit.Active != "active" || st.Unit.Enabled != "generated" ||
		st.Definition.Mark != cfg.Mark {
		t.Errorf("running: %+v", st)
	}
	for i := range 2 { // killed by hand, twice
		sh(t, "podman kill ct-life")
		id := st.ID
		st = until(t, c, "ct-life", func(st topology.ContainerState) bool { return st.State == "running" && st.ID != id })
		if st.Restarts != uint32(i+1) {
			t.Errorf("%d restarts, want %d", st.Restarts, i+1)
		}
	}
	if err := c.Restart(t.Context(), "ct-life"); err != nil {
		t.Fatal(err)
	}
	if now := look(t, c, "ct-life"); now.ID == st.ID || now.Restarts != 0 {
		t.Errorf("restarted: %+v", now)
	}
	cfg.SpecDigest, cfg.Env = "sha256:2", []string{"A=1"}
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if st := look(t, c, "ct-life"); st.SpecDigest != "sha256:2" || st.State != "running" {
		t.Errorf("replaced: %+v", st)
	}
	sh(t, "systemctl stop ct-life.service")
	if st := look(t, c, "ct-life"); st.State != "exited" || st.Mark != cfg.Mark || st.SpecDigest != "sha256:2" || st.ID != "" {
		t.Errorf("stopped by hand: %+v", st)
	}
	if err := c.Restart(t.Context(), "ct-life"); err != nil {
		t.Fatal(err)
	}
	// A definition that somebody edited, or removed, does not count as ours any more.
	sh(t, "echo '#' >>/etc/containers/systemd/ct-life.container")
	if st := look(t, c, "ct-life"); st.SpecDigest != "" || st.State != "running" {
		t.Errorf("edited: %+v", st)
	}
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	sh(t, "rm /etc/containers/systemd/ct-life.container")
	if st := look(t, c, "ct-life"); st.SpecDigest != "" || st.State != "running" || st.Mark != cfg.Mark {
		t.Errorf("definition removed: %+v", st)
	}
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.RemoveContainer(t.Context(), "ct-life"); err != nil {
			t.Fatal(err)
		}
	}
	if st := look(t, c, "ct-life"); st.State != "absent" || st.Definition.Type != topology.Absent || st.Unit.Load != topology.NotFound {
		t.Errorf("removed: %+v", st)
	}
}

func TestArgumentsArriveAsWritten(t *testing.T) { // case 72
	_, c := box(t)
	out := t.TempDir() + "/a dir $x %n"
	if err := os.MkdirAll(out, 0o777); err != nil {
		t.Fatal(err)
	}
	cfg := config("ct-argv")
	cfg.Restart = "never"
	cfg.Volumes = []string{out + ":/out"}
	cfg.Command = append([]string{"sh", "-c", `cat /proc/self/environ >/out/env; cat /proc/$$/cmdline >/out/args; sleep 1d`, "name"}, nasty...)
	var want []string
	for i, s := range nasty {
		if !strings.Contains(s, "\n") {
			e := fmt.Sprintf("N%02d=%s", i, s)
			cfg.Env, want = append(cfg.Env, e), append(want, e)
		}
	}
	run(t, c, cfg)
	args, err := os.ReadFile(out + "/args")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(args), strings.Join(cfg.Command, "\x00")+"\x00"; got != want {
		t.Errorf("arguments\n%q\nwant\n%q", got, want)
	}
	env, err := os.ReadFile(out + "/env")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range want {
		if !strings.Contains("\x00"+string(env), "\x00"+e+"\x00") {
			t.Errorf("%q is not in the environment %q", e, env)
		}
	}
}

func TestForeignThingsStay(t *testing.T) { // case 83
	d, c := box(t)
	sh(t, "podman run -d --name ct-dev "+busybox+" sleep 1d; mkdir -p /etc/containers/systemd /srv/ct")
	t.Cleanup(func() { sh(t, "podman rm -f -t 0 ct-dev") })
	id := sh(t, "podman inspect -f '{{.Id}}' ct-dev")
	st := look(t, c, "ct-dev")
	if st.State != "running" || st.Mark != "" || st.ID != id {
		t.Errorf("%+v", st)
	}
	wantCode(t, c.Run(t.Context(), config("ct-dev")), topology.CodeForeign, id[:12], "adopt")
	wantCode(t, c.RemoveContainer(t.Context(), "ct-dev"), topology.CodeForeign, id[:12])
	if now := sh(t, "podman inspect -f '{{.Id}}{{.State.Running}}' ct-dev"); now != id+"true" {
		t.Errorf("the container became %s", now)
	}
	if _, err := os.Lstat(quadletDir + "ct-dev.container"); err == nil {
		t.Error("a definition was left")
	}

	// Podman would take this name for that container, and replace it.
	wantCode(t, c.Run(t.Context(), config(id[:6])), topology.CodeForeign, id[:6], "ct-dev")
	if now := sh(t, "podman inspect -f '{{.Id}}{{.State.Running}}' ct-dev"); now != id+"true" {
		t.Errorf("the container became %s", now)
	}

	define(t, d.Services(), "ct-unit.service", sleeper)
	wantCode(t, c.Run(t.Context(), config("ct-unit")), topology.CodeForeign, "/etc/systemd/system/ct-unit.service")
	wantCode(t, c.RemoveContainer(t.Context(), "ct-unit"), topology.CodeForeign)

	text := "[Container]\nImage=" + busybox + "\nExec=sleep 1d\n"
	put(t, quadletDir+"ct-hand.container", text)
	t.Cleanup(func() { sh(t, "rm "+quadletDir+"ct-hand.container; systemctl daemon-reload") })
	wantCode(t, c.Run(t.Context(), config("ct-hand")), topology.CodeForeign, quadletDir+"ct-hand.container")
	wantCode(t, c.RemoveContainer(t.Context(), "ct-hand"), topology.CodeForeign)
	if got, _ := os.ReadFile(quadletDir + "ct-hand.container"); string(got) != text {
		t.Errorf("the definition became %q", got)
	}
}

func TestRefusedDefinitionChangesNothing(t *testing.T) { // case 96
	_, c := box(t)
	cfg := config("ct-bad")
	run(t, c, cfg)
	before := look(t, c, "ct-bad")
	bad := cfg
	bad.SpecDigest, bad.Volumes = "sha256:bad", []string{"missing.volume:/data"}
	wantCode(t, c.Run(t.Context(), bad), topology.CodeDefinition, "missing.volume")
	after := look(t, c, "ct-bad")
	if after.ID != before.ID || after.SpecDigest != before.SpecDigest || after.Definition.SHA256 != before.Definition.SHA256 {
		t.Errorf("became %+v", after)
	}
	if left, _ := filepath.Glob(os.TempDir() + "/continuo-quadlet-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestContainerThatEnds(t *testing.T) { // cases 50, 139
	_, c := box(t)
	cfg := config("ct-ends")
	cfg.Restart, cfg.Command = "never", []string{"sh", "-c", "exit 3"}
	t.Cleanup(func() { _ = c.RemoveContainer(context.WithoutCancel(t.Context()), cfg.Name) })
	watched := settling(t, time.Minute).Containers() // whenever it ends on a machine that is busy
	wantCode(t, watched.Run(t.Context(), cfg), topology.CodeExited, "exit code 3")
	if st := look(t, c, cfg.Name); st.State != "exited" || st.ExitCode != 3 || st.Mark != cfg.Mark {
		t.Errorf("%+v", st)
	}
	cfg.Restart = "always"
	wantCode(t, watched.Run(t.Context(), cfg), topology.CodeExited, "exit code 3")
	cfg.Command = sleepCommand // the fix is not blocked by the loop
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	cfg.Volumes = []string{"/no/such/dir:/data"}
	wantCode(t, c.Run(t.Context(), cfg), topology.CodeJobFailed, "journalctl -u ct-ends.service")
	cfg.Image = "localhost/never-seen:1"
	wantCode(t, c.Run(t.Context(), cfg), topology.CodeImage, "never-seen")
}

func TestQuietContainerStartsNoProcess(t *testing.T) {
	_, c := box(t)
	run(t, c, config("ct-quiet"))
	look(t, c, "ct-quiet")
	forks := func() string { return sh(t, "systemctl show -p InvocationID,NRestarts podman.service") }
	before := forks()
	for range 50 {
		if st := look(t, c, "ct-quiet"); st.State != "running" {
			t.Fatalf("%+v", st)
		}
	}
	// The service ends 5 s after the last question, and is not started again.
	for began := time.Now(); sh(t, "systemctl is-active podman.service || true") != "inactive"; {
		if time.Since(began) > time.Minute {
			t.Fatal("podman's service does not end")
		}
		look(t, c, "ct-quiet")
	}
	look(t, c, "ct-quiet")
	if got := sh(t, "systemctl is-active podman.service || true"); got != "inactive" {
		t.Errorf("podman.service is %s", got)
	}
	if after := forks(); after != before && !strings.Contains(after, "InvocationID=\n") {
		t.Logf("podman.service: %s, then %s", before, after)
	}
}

// registry serves one image, as registries do, and can be broken.
func BenchmarkContainer(b *testing.B) {
	_, c := box(b)
	run(b, c, config("ct-bench"))
	look(b, c, "ct-bench")
	b.ReportAllocs()
	b.ResetTimer()
	cpu(b)
	for range b.N {
		look(b, c, "ct-bench")
	}
}

func TestHealth(t *testing.T) { // case 89
	_, c := box(t)
	sh(t, `podman rm -f ct-h; podman create --name ct-h `+busybox+` && podman commit -q -f docker --change 'HEALTHCHECK --interval=1s CMD test -e /tmp/well' ct-h localhost/ct-health:1; podman rm ct-h`)
	t.Cleanup(func() { sh(t, "podman rmi -f localhost/ct-health:1") })
	cfg := config("ct-health")
	cfg.Image = "localhost/ct-health:1"
	run(t, c, cfg)
	if st := look(t, c, "ct-health"); st.Health != "starting" && st.Health != "unhealthy" {
		t.Errorf("%+v", st)
	}
	sh(t, "podman exec ct-health touch /tmp/well")
	until(t, c, "ct-health", func(st topology.ContainerState) bool { return st.Health == "healthy" })
	run(t, c, config("ct-nohealth"))
	if st := look(t, c, "ct-nohealth"); st.Health != "" {
		t.Errorf("an image without a check is %q", st.Health)
	}
}
