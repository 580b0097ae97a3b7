//go:build device

package pi

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func given(name, value string) topology.ContainerSecret {
	return topology.ContainerSecret{Name: name, Fingerprint: fmt.Sprintf("%x", len(value)) + name, Value: topology.SecretValue(value)}
}

// The value of a secret is where the program sees it, and in no file, log, label, argument or answer that others read; one
// that was rotated, and all of a container that is gone, are gone from podman (90, G58).
func TestContainerSecretsStayInside(t *testing.T) {
	_, c := box(t)
	const canary, second, third = "plugh-in-a-variable", "plugh-in-a-file", "plugh-that-was-rotated"
	cfg := config("ct-canary")
	variable, file := given("password", canary), given("tls.key", second)
	variable.Env, file.Target, file.Mode = "PASSWORD", "/run/secrets/tls", 0o400
	step := variable
	cfg.Secrets = []topology.ContainerSecret{variable, file}
	cfg.Init = []topology.InitContainer{{
		Name: "ct-canary-init-one", Image: busybox, Command: []string{"sh", "-c", "test -n \"$PASSWORD\""}, Secrets: []topology.ContainerSecret{step}, Timeout: time.Minute,
	}}
	watch := make(chan string)
	ctx, stop := context.WithCancel(t.Context())
	go func() { // what every user can read of every process, while it starts
		var seen strings.Builder
		for ctx.Err() == nil {
			dirs, _ := os.ReadDir("/proc")
			for _, d := range dirs {
				b, _ := os.ReadFile("/proc/" + d.Name() + "/cmdline")
				if strings.Contains(string(b), "plugh-") && seen.Len() == 0 {
					seen.Write(b)
				}
			}
		}
		watch <- seen.String()
	}()
	run(t, c, cfg)
	stop()
	if seen := <-watch; seen != "" {
		t.Errorf("a process shows %q", seen)
	}
	// Places that anybody, or any tool, may show. The files of the runtime itself are root's alone: that is checked as well.
	for _, place := range []string{
		"cat /etc/containers/systemd/ct-canary.container", "systemctl cat ct-canary.service", "systemctl show ct-canary.service", "podman inspect ct-canary",
		"podman secret inspect $(podman secret ls -q)", "journalctl --no-pager -u ct-canary.service", "podman ps -a --no-trunc --format json",
		"grep -rl plugh- /etc /tmp /var/tmp /var/log /run/systemd /run/continuo 2>/dev/null || true",
	} {
		if out := sh(t, place); strings.Contains(out, "plugh-") {
			t.Errorf("%s shows it:\n%s", place, out)
		}
	}
	for _, f := range strings.Fields(sh(t, "grep -rl plugh- /var/lib/containers /run/containers 2>/dev/null || true")) {
		// It, or a directory on the way to it, is closed to others.
		if out := sh(t, "setpriv --reuid 1000 --regid 1000 --clear-groups cat "+f+" 2>&1 || true"); !strings.Contains(out, "Permission denied") {
			t.Errorf("another user reads %s", f)
		}
	}
	kept := func() string {
		return sh(t, "podman secret ls --format '{{.Name}}' | grep ct-canary || true")
	}
	before := kept()
	rotated := given("password", third)
	rotated.Env = "PASSWORD"
	cfg.Secrets, cfg.Init, cfg.SpecDigest = []topology.ContainerSecret{rotated, file}, nil, "sha256:2"
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if after := kept(); after == before || len(strings.Fields(after)) != 2 || !strings.Contains(after, secretID("ct-canary", rotated)) {
		t.Errorf("podman keeps\n%s\nand had\n%s", after, before)
	}
	if got, err := (podmanAdmin{}).Secret("ct-canary", "PASSWORD"); err != nil || got != third {
		t.Errorf("the container has %q, %v", got, err)
	}
	// One that somebody else made under its name is not taken for it.
	taken := given("password", "another")
	taken.Env = "PASSWORD"
	sh(t, "printf x | podman secret create "+secretID("ct-canary", taken)+" -")
	t.Cleanup(func() { sh(t, "podman secret rm "+secretID("ct-canary", taken)) })
	cfg.Secrets, cfg.SpecDigest = []topology.ContainerSecret{taken}, "sha256:3"
	wantCode(t, c.Run(t.Context(), cfg), topology.CodeForeign, "podman secret rm")
	if st := look(t, c, "ct-canary"); st.State != "running" || st.SpecDigest != "sha256:2" {
		t.Errorf("became %+v", st)
	}
	if err := c.RemoveContainer(t.Context(), "ct-canary"); err != nil {
		t.Fatal(err)
	}
	if left := kept(); left != secretID("ct-canary", taken) {
		t.Errorf("podman keeps %s", left)
	}
}

// A limit that the kernel cannot hold is found out before anything is touched. The box has no controller at all (92).
func TestContainerLimitWithoutController(t *testing.T) {
	_, c := box(t)
	if have, _ := os.ReadFile("/sys/fs/cgroup/cgroup.controllers"); strings.Contains(string(have), "memory") {
		t.Fatalf("this box has the controllers %s: the test needs one without", have)
	}
	cfg := config("ct-limits")
	run(t, c, cfg)
	before := look(t, c, "ct-limits")
	for words, edit := range map[string]func(*topology.ContainerConfig){
		"memory controller disabled (cmdline.txt)": func(c *topology.ContainerConfig) { c.Memory = 256 << 20 },
		"cpu controller disabled":                  func(c *topology.ContainerConfig) { c.CPU = 50 },
		"pids controller disabled":                 func(c *topology.ContainerConfig) { c.PIDs = 100 },
	} {
		limited := cfg
		limited.SpecDigest = "sha256:limited"
		edit(&limited)
		for range 2 {
			wantCode(t, c.Run(t.Context(), limited), topology.CodeNotSupported, words)
		}
	}
	if st := look(t, c, "ct-limits"); st.ID != before.ID || st.SpecDigest != before.SpecDigest {
		t.Errorf("became %+v", st)
	}
}

// Nothing starts a container that is stopped, at boot least of all; one that runs is started (87).
func TestStoppedContainerIsNotWanted(t *testing.T) {
	_, c := box(t)
	wanted := func() bool {
		return strings.Contains(sh(t, "systemctl list-dependencies --plain multi-user.target"), "ct-stopped.service")
	}
	cfg := config("ct-stopped")
	run(t, c, cfg)
	if !wanted() {
		t.Error("nothing starts it at boot")
	}
	cfg.Stopped, cfg.SpecDigest = true, "sha256:2"
	for range 2 {
		if err := c.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if st := look(t, c, "ct-stopped"); wanted() || st.Unit.Active != "inactive" || st.State != "exited" || st.SpecDigest != "sha256:2" {
			t.Errorf("it is wanted: %v, %+v", wanted(), st)
		}
	}
	sh(t, "systemctl start ct-stopped.service") // by hand it can be started
	if st := look(t, c, "ct-stopped"); st.State != "running" {
		t.Errorf("%+v", st)
	}
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	// One that ends again and again is stopped, too.
	cfg.Stopped, cfg.Command, cfg.SpecDigest = false, []string{"sh", "-c", "exit 3"}, "sha256:3"
	wantCode(t, settling(t, time.Minute).Containers().Run(t.Context(), cfg), topology.CodeExited)
	cfg.Stopped, cfg.SpecDigest = true, "sha256:4"
	if err := c.Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if st := look(t, c, "ct-stopped"); st.Unit.Active != "inactive" || st.Unit.Result != "success" {
		t.Errorf("%+v", st)
	}
}

// departing is the one container that departs from its definition, because a test has it so.
const departing = "ct-installed"

// A container that was created otherwise than its definition says departs from it, although it has our labels (G49).
func TestInstalledContainerDeparts(t *testing.T) {
	_, c := box(t)
	cfg := config(departing)
	cfg.Env = []string{"A=1"}
	run(t, c, cfg)
	if st := look(t, c, departing); len(st.Departs) > 0 {
		t.Errorf("departs in %v", st.Departs)
	}
	line := sh(t, "grep '^ExecStart=' /run/systemd/generator/ct-installed.service")
	sh(t, "mkdir -p /etc/systemd/system/ct-installed.service.d")
	put(t, "/etc/systemd/system/ct-installed.service.d/other.conf", "[Service]\nExecStart=\n"+strings.Replace(line, "A=1", "A=2", 1)+"\n")
	t.Cleanup(func() { sh(t, "rm -r /etc/systemd/system/ct-installed.service.d; systemctl daemon-reload") })
	sh(t, "systemctl daemon-reload; systemctl restart ct-installed.service")
	st := look(t, c, departing)
	if !slices.Equal(st.Departs, []string{"env"}) || st.SpecDigest != cfg.SpecDigest || st.Mark != cfg.Mark {
		t.Errorf("%+v", st)
	}
}

// The journal keeps what a flood began with, and no more, so that others are heard (log limits by default).
func TestContainerFloodIsBounded(t *testing.T) {
	_, c := box(t)
	cfg := config("ct-flood")
	cfg.Command = []string{"sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo >/tmp/done; " + sleepCommand[2]}
	run(t, c, cfg)
	sh(t, "for i in $(seq 300); do podman exec ct-flood test -e /tmp/done && break; sleep 0.1; done; journalctl --sync")
	lines := sh(t, "journalctl --no-pager -o cat -u ct-flood.service | grep -c '^line '")
	var n int
	if _, err := fmt.Sscan(lines, &n); err != nil || n < 100 || n > 10*logBurst { // times what the journal allows for a disk that is almost empty
		t.Errorf("the journal has %s of 20000 lines, %v", lines, err)
	}
	t.Logf("the journal has %d of 20000 lines", n)
}

// Definitions that come at once, with reloads by others in between, all become units (96).
func TestContainersAtOnce(t *testing.T) {
	_, c := box(t)
	var wg sync.WaitGroup
	for i := range 4 {
		cfg := config(fmt.Sprintf("ct-once-%d", i))
		t.Cleanup(func() { _ = c.RemoveContainer(context.WithoutCancel(t.Context()), cfg.Name) })
		wg.Go(func() {
			for n := range 3 {
				cfg.SpecDigest, cfg.Env = fmt.Sprintf("sha256:%d", n), []string{fmt.Sprintf("N=%d", n)}
				if err := c.Run(t.Context(), cfg); err != nil {
					t.Errorf("%s: %v", cfg.Name, err)
				}
			}
		})
		wg.Go(func() {
			for range 3 {
				sh(t, "systemctl daemon-reload")
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		if st := look(t, c, fmt.Sprintf("ct-once-%d", i)); st.State != "running" || st.SpecDigest != "sha256:2" || len(st.Departs) > 0 {
			t.Errorf("%+v", st)
		}
	}
}

// A key that podman does not know is told in the words of its generator, and nothing is left of it (96).
func TestContainerKeyThatPodmanDoesNotKnow(t *testing.T) {
	box(t)
	err := dryRun(t.Context(), "ct-key", []byte("[Container]\nImage=a.b/c:1\nTeleport=yes\n"))
	wantCode(t, err, topology.CodeDefinition, "Teleport", "ct-key")
}

// Number: how long it takes until a container that was stopped runs, by us and by hand.
func TestContainerStartNumber(t *testing.T) {
	_, c := box(t)
	cfg := config("ct-start")
	run(t, c, cfg)
	var ours, byHand []time.Duration
	for range 9 {
		sh(t, "systemctl stop ct-start.service")
		began := time.Now()
		sh(t, "systemctl start ct-start.service")
		byHand = append(byHand, time.Since(began))
		sh(t, "systemctl stop ct-start.service")
		began = time.Now()
		if err := c.Run(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		ours = append(ours, look(t, c, "ct-start").Unit.Since.Sub(began)) // without the time that it is watched
	}
	slices.Sort(ours)
	slices.Sort(byHand)
	a, b := ours[len(ours)/2], byHand[len(byHand)/2]
	t.Logf("number: a container that was stopped runs after %v, and after %v by systemctl start: %.2f times as long (medians of %d)",
		a.Round(time.Millisecond), b.Round(time.Millisecond), float64(a)/float64(b), len(ours))
}
