package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// H48: every command block of the README is executed in order, in one shell, and the last one shows a converged device.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) < 5 {
		t.Fatalf("the README has %d command blocks only", len(blocks))
	}
	script := "set -euo pipefail\n"
	for _, b := range blocks {
		script += "echo '----'\n" + b[1]
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir(), "NATS_URL=", "NATS_CONTEXT=", "NATS_CREDS=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it leaves running ends with it
	out, err := os.CreateTemp(t.TempDir(), "out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Wait()
	if kerr := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); kerr != nil {
		t.Errorf("nothing was left running: %v", kerr)
	}
	text, rerr := os.ReadFile(out.Name())
	if rerr != nil {
		t.Fatal(rerr)
	}
	parts := strings.Split(string(text), "----\n")
	last := parts[len(parts)-1]
	if err != nil || len(parts) != len(blocks)+1 || !strings.Contains(last, "pi-1    converged") {
		t.Errorf("%v:\n%s", err, text)
	}
	waitGone(t, cmd.Process.Pid)
}

// waitGone waits until a process group has ended.
func waitGone(t *testing.T, group int) {
	t.Helper()
	late := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := syscall.Kill(-group, 0); err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			_ = syscall.Kill(-group, syscall.SIGKILL)
			t.Fatal("what the README starts does not end on SIGTERM")
		}
	}
}
