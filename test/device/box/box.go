//go:build linux

package box

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// Options says what device a test needs. The zero value is right for most.
type Options struct {
	Suite string   // Debian suite, "trixie" (default) or "bookworm"
	Size  string   // of the writable disk, "4G" by default; "48M" runs full soon
	NICs  int      // 1 by default; eth0 has a fixed address, the others are bare links to a network with DHCP
	Binds []string // HOSTPATH:PATH
}

// Box is one device. It belongs to the test that started it, and goes with it.
type Box struct {
	t    testing.TB
	name string
	ip   string
}

var count atomic.Int64

// Start boots a fresh device and returns once its systemd is up. When the test has failed, the end of the
// device's journal is logged before the device goes.
func Start(t testing.TB, opts Options) *Box {
	t.Helper()
	if netName == "" {
		t.Fatal("box: the package's TestMain must call box.Main")
	}
	b := &Box{t: t, name: fmt.Sprintf("pi-%d", count.Add(1))}
	args := []string{"up", b.name}
	if opts.Suite != "" {
		args = append(args, "--suite", opts.Suite)
	}
	if opts.Size != "" {
		args = append(args, "--size", opts.Size)
	}
	if opts.NICs != 0 {
		args = append(args, "--nics", strconv.Itoa(opts.NICs))
	}
	for _, bind := range opts.Binds {
		args = append(args, "--bind", bind)
	}
	t.Cleanup(b.down)
	b.verbWithin(startTimeout, args...)
	b.ip = b.verb("ip", b.name)
	return b
}

// verb calls the script; a failure ends the test.
func (b *Box) verb(args ...string) string {
	b.t.Helper()
	return b.verbWithin(verbTimeout, args...)
}

func (b *Box) verbWithin(limit time.Duration, args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), limit)
	defer cancel()
	out, err := output(ctx, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *Box) down() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), verbTimeout)
	defer cancel()
	if b.t.Failed() {
		b.diagnose(ctx)
	}
	if _, err := output(ctx, "down", b.name); err != nil {
		b.t.Error(err)
	}
}

// diagnose logs what the device says about itself. A frozen or dead one says nothing within 10 s.
func (b *Box) diagnose(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, cmd := range [][]string{
		{"systemctl", "--failed", "--no-legend", "--plain"},
		{"journalctl", "-b", "-n", "60", "--no-pager", "-o", "short-precise"},
	} {
		out, err := b.Exec(ctx, cmd...)
		if err != nil {
			b.t.Logf("%s: no %s: %v", b.name, cmd[0], err)
			return
		}
		b.t.Logf("%s: %s:\n%s", b.name, cmd[0], out)
	}
}

// Name is the host name of the device; other boxes reach it as NAME.pibox.
func (b *Box) Name() string { return b.name }

// IP is the address of its eth0.
func (b *Box) IP() string { return b.ip }

// Exec runs a command in the device as root and returns its standard output without the last newline. The
// error carries standard error, and wraps *exec.ExitError when the command ran and failed.
func (b *Box) Exec(ctx context.Context, args ...string) (string, error) {
	return output(ctx, append([]string{"exec", b.name}, args...)...)
}

// Stream runs a command in the device as root with its output, both streams, going to w.
func (b *Box) Stream(ctx context.Context, w io.Writer, args ...string) error {
	cmd, err := script(ctx, append([]string{"exec", b.name}, args...)...)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot run %s in %s: %w", args[0], b.name, err)
	}
	return nil
}

// Push copies a file of this machine into the device, with its mode. An existing file is replaced by a
// rename, so a running program may be replaced too.
func (b *Box) Push(src, dst string) {
	b.t.Helper()
	b.verb("push", b.name, src, dst)
}

// PutFile writes a file in the device, replacing one that exists, and creates its folder.
func (b *Box) PutFile(path string, data []byte, mode os.FileMode) {
	b.t.Helper()
	tmp := filepath.Join(b.t.TempDir(), "file")
	if err := os.WriteFile(tmp, data, mode); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Chmod(tmp, mode); err != nil { // whatever the umask
		b.t.Fatal(err)
	}
	b.Push(tmp, path)
}

// Root is the device's live file tree as this machine sees it. Its sockets can be dialled, for example
// Root()+"/run/dbus/system_bus_socket". It changes with each boot. An absolute symbolic link in it leads
// to this machine's tree, so write with PutFile or through os.Root.
func (b *Box) Root() string {
	b.t.Helper()
	return b.verb("root", b.name)
}
