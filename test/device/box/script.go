//go:build linux

package box

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The private network is the same in every run: runs are kept apart by their network namespaces.
const subnet = "10.213.81"

// HubIP is the address of the fleet side of the private network, HubName its name inside a box.
const (
	HubIP   = subnet + ".1"
	HubName = "hub.pibox"
)

// verbTimeout bounds one call of the script, which takes up to 10 s on a busy machine. startTimeout is longer,
// because the base tree of another suite than the default one is built when a test first asks for it.
const (
	verbTimeout  = 2 * time.Minute
	startTimeout = 10 * time.Minute
)

// netName is the network of this test process, claimed by Main.
var netName string

// moduleRoot is the folder with go.mod, seen from the folder that a test runs in.
var moduleRoot = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the module root: %w", err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("cannot find the module root: no go.mod above the working directory")
})

// cacheDir is where base trees and boxes live; the script has the same default.
func cacheDir() string {
	if dir := os.Getenv("PIBOX_DIR"); dir != "" {
		return dir
	}
	return "/var/cache/continuo-box"
}

// script prepares a call of pibox. Cancelling ctx kills it with everything it started on this side.
func script(ctx context.Context, args ...string) (*exec.Cmd, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "test/device/pibox"), args...)
	cmd.Env = append(os.Environ(), "PIBOX_DIR="+cacheDir(), "PIBOX_SUBNET="+subnet, "PIBOX_QUIET=1")
	if netName != "" {
		cmd.Env = append(cmd.Env, "PIBOX_NET="+netName)
	}
	ownGroup(cmd)
	return cmd, nil
}

// ownGroup makes cancelling reach the children too: nsenter forks, and would leave its child running.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
}

// output runs pibox and returns what it printed, without the last newline. The error carries standard error.
func output(ctx context.Context, args ...string) (string, error) {
	cmd, err := script(ctx, args...)
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return stdout.String(), fmt.Errorf("cannot run %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}
