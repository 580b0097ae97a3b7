//go:build linux

package box

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Main is the TestMain of a package that uses boxes. It installs what the machine lacks, builds the base tree
// (both only the first time), runs the tests, and fails when anything of a box is left on the machine. It
// never skips: without root or without cgroup2 it fails and says why.
func Main(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		return m.Run()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := prepare(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "box: the device tests did not run: %v\n", err)
		return 1
	}
	lock, err := claim()
	if err != nil {
		fmt.Fprintf(os.Stderr, "box: the device tests did not run: %v\n", err)
		return 1
	}
	defer lock.Close()
	finished := context.AfterFunc(ctx, func() { // interrupted: leave nothing behind
		leftovers(context.WithoutCancel(ctx))
		os.Exit(130)
	})
	code := m.Run()
	if !finished() {
		select {} // the clean-up of an interrupted run is at work, and exits
	}
	if left := leftovers(ctx); left != "" {
		fmt.Fprintf(os.Stderr, "box: left on the machine:\n%s\n", left)
		code = max(code, 1)
	}
	return code
}

// prepare makes the machine ready, and removes what killed runs have left.
func prepare(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("they need root")
	}
	cmd, err := script(ctx, "build")
	if err != nil {
		return err
	}
	cmd.Env = append(cmd.Env, "PIBOX_QUIET=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot build the base tree: %w", err)
	}
	_, err = output(ctx, "sweep")
	return err
}

// claim takes the first free network name of this machine, for as long as the returned file is open.
func claim() (*os.File, error) {
	for n := range 100 {
		name := fmt.Sprintf("cb%d", n)
		f, err := os.OpenFile(filepath.Join(cacheDir(), "run."+name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("cannot claim a network: %w", err)
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			netName = name
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("cannot claim a network: all are in use")
}

// leftovers takes everything apart and says what should not have been there, or cannot be removed.
func leftovers(ctx context.Context) string {
	left, err := output(ctx, "list")
	if err != nil {
		left += err.Error() + "\n"
	}
	if _, err := output(ctx, "purge"); err != nil {
		left += err.Error() + "\n"
	}
	if out, err := output(ctx, "leaks"); err != nil {
		left += out
	}
	return left
}
