package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// toolchain builds every release of this commit, wherever: another one would give other bytes. A Go of another version
// fetches it. It is raised when the standard library has a fix that is needed (SECURITY.md).
const toolchain = "go1.26.8"

var commands = []string{"continuo", "continuo-agent"}

// A target is a machine that a release is for.
type target struct{ name, arch, level string } // level as in "GOARM=6": the oldest processor that it runs on

var all = []target{
	{"amd64", "amd64", "GOAMD64=v1"},
	{"arm64", "arm64", "GOARM64=v8.0"},
	{"armv6", "arm", "GOARM=6"},
	{"armv7", "arm", "GOARM=7"},
}

func chosen(only string) ([]target, error) {
	if only == "" {
		return all, nil
	}
	var out []target
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(t target) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("cannot build for %q: it is none of %v", name, all)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func (t target) String() string { return t.name }

// A place is what a build has around it. None of it may be seen in what is built.
type place struct {
	cache string   // of compiled packages; that of the user if it is empty
	env   []string // beside what the build sets
}

// A file is one that was made.
type file struct {
	name, sum string
	size      int64
}

// build makes all files of a release in dir, which is emptied before, and returns them sorted.
func build(ctx context.Context, s source, dir string, p place, targets []target, names []string) ([]file, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	tree, err := os.MkdirTemp("", "release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tree)
	if err := export(ctx, s, tree); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("cannot make room for the release: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var made []file
	for _, t := range targets {
		for _, name := range names {
			binary := fmt.Sprintf("%s-linux-%s", name, t)
			if err := compile(ctx, s, tree, p, t, name, filepath.Join(dir, binary)); err != nil {
				return nil, err
			}
			list, err := contents(filepath.Join(dir, binary), binary, s)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(dir, binary+".cdx.json"), list, 0o644); err != nil {
				return nil, err
			}
			for _, n := range []string{binary, binary + ".cdx.json"} {
				f, err := look(dir, n)
				if err != nil {
					return nil, err
				}
				made = append(made, f)
			}
		}
	}
	slices.SortFunc(made, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var sums strings.Builder
	for _, f := range made {
		fmt.Fprintf(&sums, "%s  %s\n", f.sum, f.name) // as sha256sum --check reads it
	}
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil {
		return nil, err
	}
	return made, nil
}

// export writes the files of the commit to tree: not what else lies in the work tree, and no history.
func export(ctx context.Context, s source, tree string) error {
	archive, unpack := exec.CommandContext(ctx, "git", "-C", s.repository, "archive", "--format=tar", s.commit), exec.CommandContext(ctx, "tar", "-x", "-C", tree)
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	unpack.Stdin = pipe
	var said strings.Builder
	archive.Stderr, unpack.Stderr = &said, &said
	if err := archive.Start(); err != nil {
		return fmt.Errorf("cannot read commit %s: %w", s.commit, err)
	}
	err = unpack.Run()
	if aerr := archive.Wait(); err == nil {
		err = aerr
	}
	if err != nil {
		return fmt.Errorf("cannot write the files of commit %s: %w: %s", s.commit, err, said.String())
	}
	return nil
}

// compile makes one binary. Everything that go build takes from its surroundings and that could show is set.
func compile(ctx context.Context, s source, tree string, p place, t target, name, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w "+s.stamp(), "-o", out, "./cmd/"+name)
	cmd.Dir = tree
	cmd.Env = append(cmd.Environ(), p.env...)
	if p.cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+p.cache)
	}
	cmd.Env = append(cmd.Env, "PWD="+tree, "GOTOOLCHAIN="+toolchain, "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+t.arch, t.level,
		"GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "GOFIPS140=off", "GOENV=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build %s for %s: %w: %s", name, t, err, text)
	}
	return os.Chmod(out, 0o755) // whatever the umask
}

func look(dir, name string) (file, error) {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return file{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return file{name, hex.EncodeToString(h.Sum(nil)), n}, err
}

// compare builds twice and tells the first difference. The second build is in another directory, by another cache, and
// in another time zone, language and umask.
func compare(ctx context.Context, s source, targets []target, names []string, out io.Writer) error {
	room, err := os.MkdirTemp("", "twice-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(room)
	first, err := build(ctx, s, filepath.Join(room, "first"), place{}, targets, names)
	if err != nil {
		return err
	}
	other := filepath.Join(room, "a place with another name", "tmp")
	if err := os.MkdirAll(other, 0o700); err != nil {
		return err
	}
	defer elsewhere(other)()
	second, err := build(ctx, s, filepath.Join(room, "second"), place{
		cache: filepath.Join(room, "cache"), env: []string{"TZ=Asia/Kathmandu", "LANG=tr_TR.UTF-8", "USER=somebody", "HOSTNAME=elsewhere"},
	}, targets, names)
	if err != nil {
		return err
	}
	for _, f := range first {
		fmt.Fprintf(out, "%s  %s\n", f.sum, f.name)
	}
	if err := same(s.commit, first, second); err != nil {
		return err
	}
	fmt.Fprintf(out, "commit %s, built in two places: the same bytes\n", s.commit)
	return nil
}

func same(commit string, first, second []file) error {
	if len(first) != len(second) {
		return fmt.Errorf("commit %s gives two builds, one of %d files and one of %d", commit, len(first), len(second))
	}
	for i, f := range first {
		if second[i] != f {
			return fmt.Errorf("commit %s gives two builds of %s: %d bytes with digest %s, and %d with %s", commit, f.name, f.size, f.sum, second[i].size, second[i].sum)
		}
	}
	return nil
}
