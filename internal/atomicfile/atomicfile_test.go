package atomicfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// folder is a fresh directory with its handle.
func folder(t *testing.T) (string, *os.File) {
	t.Helper()
	path := t.TempDir()
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return path, dir
}

func names(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func stat(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CONTINUO_DEVICE_REQUIRED") != "" {
		t.Fatal("needs root: changes owners")
	}
	t.Skip("needs root: changes owners")
}

func TestWrite(t *testing.T) {
	old := unix.Umask(0o077) // the mode is what was asked for, whatever the umask
	defer unix.Umask(old)
	path, dir := folder(t)
	for _, f := range []File{
		{Content: []byte("one\n"), Mode: 0o644},
		{Content: nil, Mode: 0o400},
		{Content: bytes.Repeat([]byte("x"), 3<<20), Mode: 0o755},
		{Content: []byte("s"), Mode: 0o4750},
		{Content: []byte("none"), Mode: 0},
	} {
		before := uint64(0)
		if st, err := os.Stat(filepath.Join(path, "name")); err == nil {
			before = st.Sys().(*syscall.Stat_t).Ino
		}
		if err := Write(dir, "name", f); err != nil {
			t.Fatal(err)
		}
		st := stat(t, filepath.Join(path, "name"))
		if st.Mode&0o7777 != f.Mode || st.Size != int64(len(f.Content)) || st.Ino == before {
			t.Errorf("mode %o size %d, want %o %d", st.Mode, st.Size, f.Mode, len(f.Content))
		}
		if got := names(t, path); !slices.Equal(got, []string{"name"}) {
			t.Errorf("directory holds %q", got)
		}
	}
}

func TestOwnerThenMode(t *testing.T) { // cases 38
	needRoot(t)
	path, dir := folder(t)
	if err := Write(dir, "tool", File{Content: []byte("x"), Mode: 0o4755, SetOwner: true, UID: 65534, GID: 12}); err != nil {
		t.Fatal(err)
	}
	st := stat(t, filepath.Join(path, "tool"))
	if st.Mode&0o7777 != 0o4755 || st.Uid != 65534 || st.Gid != 12 {
		t.Errorf("mode %o owner %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
	}
}

func TestXattrs(t *testing.T) {
	path, dir := folder(t)
	attrs := map[string][]byte{"user.continuo": []byte("kiosk/conf"), "user.a": {}}
	root := os.Geteuid() == 0
	if root { // a capability survives only if it comes after the owner
		attrs["security.capability"] = []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	}
	err := Write(dir, "name", File{Content: []byte("x"), Mode: 0o440, Xattrs: attrs, SetOwner: root, UID: 65534, GID: 65534})
	if errors.Is(err, unix.EOPNOTSUPP) {
		t.Fatalf("cannot test extended attributes: the file system of %s has none; set TMPDIR to one that has", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range attrs {
		buf := make([]byte, 64)
		n, err := unix.Getxattr(filepath.Join(path, "name"), name, buf)
		if err != nil || !bytes.Equal(buf[:n], want) {
			t.Errorf("%s: %q %v", name, buf[:max(n, 0)], err)
		}
	}
	if err := Write(dir, "name", File{Mode: 0o600, Xattrs: map[string][]byte{"nonsense": nil}}); err == nil || !strings.HasPrefix(err.Error(), `cannot set extended attributes of "name": nonsense: `) {
		t.Errorf("got %v", err)
	}
	if got := names(t, path); !slices.Equal(got, []string{"name"}) {
		t.Errorf("directory holds %q", got)
	}
}

// Whatever fails, the old file is whole and no temporary file is left.
func TestFailuresLeaveNothing(t *testing.T) { // cases 43
	path, dir := folder(t)
	if err := os.MkdirAll(filepath.Join(path, "folder", "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, "old", File{Content: []byte("old"), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 256)
	tests := []struct {
		name, file string
		f          File
		want       string
	}{
		{"a folder is in the way", "folder", File{Content: []byte("x")}, `cannot put "folder" in place: `},
		{"taken", "old", File{NoReplace: true}, `cannot put "old" in place: file exists`},
		{"name too long", long, File{}, "in place: file name too long"},
		{"no name", "", File{}, `cannot write "": not the name of a file`},
		{"parent", "..", File{}, `cannot write "..": not the name of a file`},
		{"path", "folder/x", File{}, `cannot write "folder/x": not the name of a file`},
	}
	for _, tt := range tests {
		err := Write(dir, tt.file, tt.f)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
	if err := Write(dir, "old", File{NoReplace: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("taken: %v", err)
	}
	if err := Write(dir, "new", File{NoReplace: true, Content: []byte("n"), Mode: 0o600}); err != nil {
		t.Error(err)
	}
	// A full disk: the limit on the size of files fails a write the same way.
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	small := unix.Rlimit{Cur: 4096, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	err := Write(dir, "old", File{Content: make([]byte, 10_000), Mode: 0o600})
	if rerr := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); rerr != nil {
		t.Fatal(rerr)
	}
	if !errors.Is(err, unix.EFBIG) {
		t.Errorf("too big: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(path, "old")); string(b) != "old" {
		t.Errorf("old file: %q %v", b, err)
	}
	if got := names(t, path); !slices.Equal(got, []string{"folder", "new", "old"}) {
		t.Errorf("directory holds %q", got)
	}
}

func TestReplacesALinkAndNotItsTarget(t *testing.T) {
	path, dir := folder(t)
	target := filepath.Join(path, "target")
	if err := os.WriteFile(target, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(path, "link")); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, "link", File{Content: []byte("new"), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(target); string(b) != "keep" {
		t.Errorf("target holds %q", b)
	}
	if st := stat(t, filepath.Join(path, "link")); st.Mode&unix.S_IFMT != unix.S_IFREG {
		t.Errorf("still a link")
	}
}

// In a directory where everybody may write, somebody has made the temporary name already: a link to a file of ours, a link to
// nothing, a file, a directory. It is refused, nothing is followed, and the next one is another name that nobody can guess
// (case 153).
func TestNameThatIsTaken(t *testing.T) {
	path, dir := folder(t)
	outside := filepath.Join(t.TempDir(), "precious")
	if err := errors.Join(os.Chmod(path, 0o777|fs.ModeSticky), os.WriteFile(outside, []byte("keep"), 0o600)); err != nil {
		t.Fatal(err)
	}
	const name = TempPrefix + "guessed"
	taken := filepath.Join(path, name)
	for what, take := range map[string]func() error{
		"a link":            func() error { return os.Symlink(outside, taken) },
		"a link to nothing": func() error { return os.Symlink(outside+"2", taken) },
		"a file":            func() error { return os.WriteFile(taken, []byte("theirs"), 0o666) },
		"a directory":       func() error { return os.Mkdir(taken, 0o777) },
	} {
		if err := take(); err != nil {
			t.Fatal(err)
		}
		before := stat(t, taken)
		if err := create(dir, name, "conf", File{Content: []byte("secret"), Mode: 0o600}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: got %v", what, err)
		}
		if after := stat(t, taken); after.Ino != before.Ino || after.Mode != before.Mode || after.Size != before.Size {
			t.Errorf("%s: it became %+v", what, after)
		}
		if err := os.Remove(taken); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := os.ReadFile(outside); string(b) != "keep" {
		t.Errorf("outside is %q", b)
	}
	if got := names(t, filepath.Dir(outside)); len(got) != 1 {
		t.Errorf("outside are %q", got)
	}
	if one, other := tempName(), tempName(); len(token) < 10 || one == other {
		t.Errorf("a name can be guessed: %s, %s", one, other)
	}
}

// The handle decides, not the path: a directory moved away still gets the file,
// and the one at its old path does not.
func TestDirectoryMoved(t *testing.T) {
	parent := t.TempDir()
	path := filepath.Join(parent, "dir")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if err := errors.Join(os.Rename(path, path+".moved"), os.Mkdir(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, "name", File{Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, path); len(got) > 0 {
		t.Errorf("the wrong directory holds %q", got)
	}
	if got := names(t, path+".moved"); len(got) != 1 {
		t.Errorf("the right directory holds %q", got)
	}
}

// No name ever shows more rights than the file ends with, nor another owner's
// rights, while it holds content.
func TestNoMomentWithMoreRights(t *testing.T) { // cases 41
	path, dir := folder(t)
	stop := make(chan struct{})
	var watch sync.WaitGroup
	var seen int
	watch.Go(func() {
		d, err := os.Open(path)
		if err != nil {
			t.Error(err)
			return
		}
		defer d.Close()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := d.Seek(0, 0); err != nil {
				t.Error(err)
				return
			}
			list, _ := d.Readdirnames(-1)
			for _, name := range list {
				var st unix.Stat_t
				if unix.Lstat(filepath.Join(path, name), &st) != nil || st.Size == 0 {
					continue
				}
				seen++
				if st.Mode&0o077&^0o040 != 0 || st.Mode&0o040 != 0 && st.Uid == uint32(os.Geteuid()) && os.Geteuid() == 0 {
					t.Errorf("%s has mode %o of %d", name, st.Mode&0o7777, st.Uid)
				}
			}
		}
	})
	f := File{Content: bytes.Repeat([]byte("secret"), 1000), Mode: 0o440}
	if os.Geteuid() == 0 {
		f.SetOwner, f.UID, f.GID = true, 65534, 65534
	}
	for range 200 {
		if err := Write(dir, "secret", f); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	watch.Wait()
	if seen < 200 {
		t.Logf("the watcher saw %d files only", seen)
	}
	if seen == 0 {
		t.Error("the watcher saw nothing")
	}
}

func TestSweep(t *testing.T) { // cases 27
	path, dir := folder(t)
	const dead = ".continuo-ABCDEFGHIJKLMNOP-12"
	mine := TempPrefix + token + "-99"
	keep := []string{
		".continuo-", ".continuo-notes", ".continuo-ABCDEFGHIJKLMNOP", ".continuo-ABCDEFGHIJKLMNOP-", ".continuo-ABCDEFGHIJKLMNOP-x",
		".continuo-ABCDEFGHIJKLMNO1-1", ".continuo-ABCDEFGHIJKLMNO-1", mine, "ABCDEFGHIJKLMNOP-12", "motd",
	}
	for _, name := range append(keep, dead) {
		if err := os.WriteFile(filepath.Join(path, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := ".continuo-ABCDEFGHIJKLMNOP-13"
	if err := errors.Join(os.Symlink("motd", filepath.Join(path, link)), os.Mkdir(filepath.Join(path, ".continuo-ABCDEFGHIJKLMNOP-14"), 0o755)); err != nil {
		t.Fatal(err)
	}
	removed, err := Sweep(dir)
	if slices.Sort(removed); err != nil || !slices.Equal(removed, []string{dead, link}) {
		t.Errorf("removed %q, %v", removed, err)
	}
	keep = append(keep, ".continuo-ABCDEFGHIJKLMNOP-14")
	slices.Sort(keep)
	if got := names(t, path); !slices.Equal(got, keep) {
		t.Errorf("left %q\nwant %q", got, keep)
	}
	if removed, err := Sweep(dir); err != nil || removed != nil { // the handle is good for a second time
		t.Errorf("again: %q %v", removed, err)
	}
	if !IsTemp(dead) || !IsTemp(mine) || IsTemp(".continuo-notes") {
		t.Error("IsTemp")
	}
}

func TestParallelWriters(t *testing.T) {
	path, dir := folder(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			content := bytes.Repeat([]byte{byte('a' + i)}, 10_000)
			for range 10 {
				if err := WriteNoSync(dir, "name", File{Content: content, Mode: 0o644}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b, err := os.ReadFile(filepath.Join(path, "name"))
	if err != nil || len(b) != 10_000 || len(bytes.Trim(b, string(b[:1]))) != 0 {
		t.Errorf("a mixture: %d bytes, %v", len(b), err)
	}
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
	if got := names(t, path); len(got) != 1 {
		t.Errorf("directory holds %q", got)
	}
}

func TestImmutableFile(t *testing.T) { // cases 40: untouched, and nothing left behind
	needRoot(t)
	path, dir := folder(t)
	if err := Write(dir, "fixed", File{Content: []byte("old"), Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(path, "fixed"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0x10 /* FS_IMMUTABLE_FL */); err != nil {
		t.Skipf("no immutable flag on this file system: %v", err)
	}
	defer func() { _ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0) }()
	if err := Write(dir, "fixed", File{Content: []byte("new"), Mode: 0o600}); !errors.Is(err, unix.EPERM) {
		t.Errorf("got %v", err)
	}
	if got := names(t, path); len(got) != 1 {
		t.Errorf("directory holds %q", got)
	}
}

func BenchmarkWrite(b *testing.B) {
	dir, err := os.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	f := File{Content: make([]byte, 1024), Mode: 0o644}
	b.Run("sync", func(b *testing.B) {
		for b.Loop() {
			if err := Write(dir, "name", f); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("nosyncdir", func(b *testing.B) {
		for b.Loop() {
			if err := WriteNoSync(dir, "name", f); err != nil {
				b.Fatal(err)
			}
		}
	})
}
