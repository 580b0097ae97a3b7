//go:build device

package pi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// jobDevice is a device whose records of jobs are in a folder of their own.
func jobDevice(t *testing.T, state string) *Device {
	t.Helper()
	dev, err := Open(t.Context(), Options{State: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

func TestConformJobsOfTheDevice(t *testing.T) {
	conform.Jobs(t, func(t *testing.T) conform.JobBench {
		dev := jobDevice(t, t.TempDir())
		t.Cleanup(func() { _ = systemctl("stop", "ct-job.service"); _ = systemctl("reset-failed", "ct-job.service") })
		return conform.JobBench{
			Jobs: dev.Jobs(), Name: "ct-job", Hurry: func() { dev.jobs.patience = time.Second },
			Well: []string{"/bin/true"}, Fails: []string{"/bin/sh", "-c", "exit 3"}, Long: []string{"/bin/sleep", "1d"},
			Foreign: func(name string) (func() error, error) {
				unit := name + ".service"
				return func() error { return admin{}.Uninstall(unit) }, admin{}.Install(unit, "[Service]\nExecStart=/bin/true\n")
			},
			Stop: func(name string) error { return systemctl("stop", name+".service") },
		}
	})
}

func jobConfig(exec ...string) topology.JobConfig {
	return topology.JobConfig{Name: "ct-job", Exec: exec, Timeout: time.Minute, Success: []int{0}, Digest: "one", Mark: "m/job"}
}

func jobState(t *testing.T, dev *Device, phase topology.JobPhase) topology.JobState {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		st, err := dev.Jobs().Job(t.Context(), "ct-job")
		if err != nil {
			t.Fatal(err)
		}
		if st.Phase == phase {
			return st
		}
		if time.Now().After(end) {
			t.Fatalf("it is %+v, want it %s", st, phase)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestJobSays: what a job wrote, how it was killed, and what it is given (X34).
func TestJobSays(t *testing.T) {
	tests := []struct {
		name   string
		change func(*topology.JobConfig)
		ok     func(topology.JobState) bool
	}{
		{"output", func(c *topology.JobConfig) { c.Exec = []string{"/bin/sh", "-c", "echo one; echo two >&2; exit 3"} },
			func(st topology.JobState) bool { return st.ExitCode == 3 && st.Output == "one\ntwo" && !st.Truncated }},
		{"much output", func(c *topology.JobConfig) {
			c.Exec = []string{"/bin/sh", "-c", "seq 2000; printf '\\377\\n'; echo last"}
		},
			func(st topology.JobState) bool {
				return len(st.Output) <= 4<<10 && strings.HasSuffix(st.Output, "last") && st.Truncated
			}},
		{"timeout", func(c *topology.JobConfig) {
			c.Exec, c.Timeout = []string{"/bin/sh", "-c", "echo begun; trap '' TERM; while :; do sleep 1; done"}, 2*time.Second
		}, func(st topology.JobState) bool {
			return st.Result == topology.JobTimedOut && strings.Contains(st.Output, "begun")
		}},
		{"signal", func(c *topology.JobConfig) { c.Exec = []string{"/bin/sh", "-c", "kill -SEGV $$"} },
			func(st topology.JobState) bool { return st.Result == topology.JobKilled && st.Signal == "SEGV" }},
		{"literal arguments", func(c *topology.JobConfig) {
			c.Exec, c.Env = []string{"/usr/bin/printf", "%s|", "$HOME", "${A}", "%n %%", "a b", ""}, []string{"A=1"}
		}, func(st topology.JobState) bool { return st.Output == "$HOME|${A}|%n %%|a b||" }},
		{"user, directory, environment", func(c *topology.JobConfig) {
			c.Exec, c.User, c.WorkingDir, c.Env = []string{"/bin/sh", "-c", "id -un; pwd; echo $A"}, "daemon", "/usr", []string{"A=$x %n"}
		}, func(st topology.JobState) bool { return st.Output == "daemon\n/usr\n$x %n" }},
		{"no such program", func(c *topology.JobConfig) { c.Exec = []string{"/no/such/program"} },
			func(st topology.JobState) bool { return st.Result == topology.JobExited && st.ExitCode == 203 }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dev := jobDevice(t, t.TempDir())
			c := jobConfig("/bin/true")
			tt.change(&c)
			_ = dev.Jobs().RunJob(t.Context(), c)
			if st := jobState(t, dev, topology.JobEnded); !tt.ok(st) {
				t.Errorf("got %+v", st)
			}
			if left := sh(t, "systemctl list-units --all --plain --no-legend 'ct-job*' | grep -vc failed || true"); left != "0" {
				t.Errorf("%s units are left", left)
			}
			_ = systemctl("reset-failed", "ct-job.service")
		})
	}
}

// TestJobWithoutAPlace: what cannot be started is found out before anything is written down.
func TestJobWithoutAPlace(t *testing.T) {
	dev := jobDevice(t, t.TempDir())
	for _, change := range []func(*topology.JobConfig){
		func(c *topology.JobConfig) { c.WorkingDir = "/no/such/directory" },
		func(c *topology.JobConfig) { c.WorkingDir = "/etc/passwd" },
		func(c *topology.JobConfig) { c.User = "nobody-here" },
	} {
		c := jobConfig("/bin/true")
		change(&c)
		if err := dev.Jobs().RunJob(t.Context(), c); topology.FaultOf(err).Code != topology.CodeInvalid && topology.FaultOf(err).Code != topology.CodeNoAccount {
			t.Errorf("got %v", err)
		}
		jobState(t, dev, topology.JobNever)
	}
}

// TestJobOutlivesWhoAsked: the end of a job is written down also when nobody waits for it any more, and nothing runs again.
func TestJobOutlivesWhoAsked(t *testing.T) {
	state := t.TempDir()
	file := filepath.Join(state, "count")
	first := jobDevice(t, state)
	ctx, cancel := context.WithCancel(t.Context())
	c := jobConfig("/bin/sh", "-c", "echo run >>"+file+"; sleep 3; echo done; exit 0")
	go func() { // an agent that is killed
		for {
			if _, err := os.Stat(file); err == nil {
				cancel()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if err := first.Jobs().RunJob(ctx, c); topology.FaultOf(err).Code != topology.CodeCanceled {
		t.Fatalf("got %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := jobDevice(t, state)
	if st, err := second.Jobs().Job(t.Context(), "ct-job"); err != nil || st.Phase != topology.JobRunning {
		t.Errorf("got %+v, %v", st, err)
	}
	if err := second.Jobs().RunJob(t.Context(), c); err != nil { // it is joined
		t.Fatal(err)
	}
	if st := jobState(t, second, topology.JobEnded); st.ExitCode != 0 || st.Output != "done" {
		t.Errorf("got %+v", st)
	}
	if runs, err := os.ReadFile(file); err != nil || string(runs) != "run\n" {
		t.Errorf("it was run: %s, %v", runs, err)
	}
}

// TestJobContainer: a container is run to its end, with its output, and what a crash left under its name is replaced (X34).
func TestJobContainer(t *testing.T) {
	sh(t, "podman image exists "+busybox+" || pibox-image")
	dev := jobDevice(t, t.TempDir())
	t.Cleanup(func() {
		_, _ = do("podman", "rm", "-f", "-i", "ct-job")
		_ = systemctl("reset-failed", "ct-job.service")
	})
	c := jobConfig()
	c.Exec, c.Container = nil, topology.ContainerConfig{Image: busybox, Entrypoint: []string{"/bin/sh"}, Command: []string{"-c", "echo hello $A; exit 3"}, Env: []string{"A=$x"}, Network: "none"}
	// a leftover of ours
	sh(t, "podman create --name ct-job --label continuo.owner=m/job "+busybox+" sleep 1d")
	err := dev.Jobs().RunJob(t.Context(), c)
	if topology.FaultOf(err).Code != topology.CodeExited {
		t.Fatalf("got %v", err)
	}
	if st := jobState(t, dev, topology.JobEnded); st.ExitCode != 3 || st.Output != "hello $x" {
		t.Errorf("got %+v", st)
	}
	if left := sh(t, "podman ps -a --format '{{.Names}}' | grep -c ct-job || true"); left != "0" {
		t.Errorf("%s containers are left", left)
	}
	// the time is over
	c.Container.Command, c.Timeout, c.Digest = []string{"-c", "trap '' TERM; while :; do sleep 1; done"}, 3*time.Second, "two"
	if err := dev.Jobs().RunJob(t.Context(), c); err != nil && topology.FaultOf(err).Code != topology.CodeTimeout {
		t.Fatalf("got %v", err)
	}
	if st := jobState(t, dev, topology.JobEnded); st.Result != topology.JobTimedOut {
		t.Errorf("got %+v", st)
	}
	if left := sh(t, "podman ps -a --format '{{.Names}}' | grep -c ct-job || true"); left != "0" {
		t.Errorf("%s containers are left", left)
	}
	// somebody else's container
	sh(t, "podman create --name ct-job "+busybox+" sleep 1d")
	c.Digest = "three"
	if err := dev.Jobs().RunJob(t.Context(), c); topology.FaultOf(err).Code != topology.CodeForeign {
		t.Errorf("got %v", err)
	}
}
