//go:build linux

package box

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Build compiles a command of this module, static and for the box, and returns the path of the binary.
// Repeated calls are cheap thanks to Go's own cache.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), path.Base(pkg))
	goTool(t, "build", "-trimpath", "-o", out, pkg)
	return out
}

// RunTestBinary compiles the tests of a package of this module with the build tag "device", pushes them with
// the package's testdata folder into the device, and runs them there as root with CONTINUO_IN_BOX=1 in the
// environment. Tests that change the machine they run on must refuse to run without it. Their output is
// streamed; the test fails when one of them fails or is skipped, or when none ran. Args are further flags of
// the test binary, for example "-test.run=^TestConformance$".
func (b *Box) RunTestBinary(pkg string, args ...string) {
	b.t.Helper()
	bin := filepath.Join(b.t.TempDir(), "package.test")
	goTool(b.t, "test", "-c", "-tags", "device", "-o", bin, pkg)
	if _, err := os.Stat(bin); err != nil {
		b.t.Fatalf("cannot run the tests of %s: it has none", pkg)
	}
	dir := "/var/lib/continuo-test/" + path.Base(pkg)
	b.Push(bin, dir+"/package.test")
	b.pushTree(filepath.Join(goTool(b.t, "list", "-f", "{{.Dir}}", pkg), "testdata"), dir+"/testdata")

	r, w := io.Pipe()
	ran := make(chan outcome, 1)
	go func() { ran <- readResults(io.TeeReader(r, b.t.Output())) }()
	inner := append([]string{"env", "-C", dir, "CONTINUO_IN_BOX=1", "./package.test", "-test.v", "-test.count=1"}, args...)
	err := b.Stream(b.t.Context(), w, inner...)
	w.Close()
	got := <-ran
	for _, line := range got.complaints(pkg, err) {
		b.t.Error(line)
	}
}

// pushTree copies a folder of this machine into the device; one that does not exist is no error.
func (b *Box) pushTree(src, dst string) {
	b.t.Helper()
	if _, err := os.Stat(src); err != nil {
		return
	}
	tar := exec.CommandContext(b.t.Context(), "tar", "-C", src, "-cf", "-", ".")
	unpack, err := script(b.t.Context(), "exec", b.name, "sh", "-c", `mkdir -p "$1" && tar -C "$1" -xf - --no-same-owner`, "sh", dst)
	if err != nil {
		b.t.Fatal(err)
	}
	var pipe io.ReadCloser
	if pipe, err = tar.StdoutPipe(); err == nil {
		unpack.Stdin = pipe
		if err = tar.Start(); err == nil {
			out, uerr := unpack.CombinedOutput()
			if err = tar.Wait(); err == nil && uerr != nil {
				err = fmt.Errorf("%w: %s", uerr, out)
			}
		}
	}
	if err != nil {
		b.t.Fatalf("cannot copy %s into %s: %v", src, b.name, err)
	}
}

// goTool runs the go command in the module root, without cgo, and returns what it printed.
func goTool(t testing.TB, args ...string) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*verbTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot run go %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
