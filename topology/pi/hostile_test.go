package pi

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

func TestOrdinaryUserBelowRoot(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 1234, 1234); err != nil {
		t.Fatal(err)
	}
	asUser(t, 1234, func() error {
		d, err := Open(t.Context(), Options{Root: dir})
		if err != nil {
			return err
		}
		defer d.Close()
		w := topology.FileWrite{Path: "/etc/motd", Content: []byte("x"), Mode: 0o640, Owner: "1234", Group: "1234", Mark: "a/b"}
		for range 2 {
			if err := d.files.WriteFile(t.Context(), w); err != nil {
				return err
			}
			if err := d.files.SetAttributes(t.Context(), w); err != nil {
				return err
			}
		}
		w.Owner = "0"
		if code := topology.FaultOf(d.files.WriteFile(t.Context(), w)).Code; code != topology.CodePermission {
			return fmt.Errorf("a file for root: code %s", code)
		}
		return nil
	})
	wantNoTemp(t, dir+"/etc")
}

func TestHostileSwap(t *testing.T) { // case 146: 10,000 turns
	f, root := below(t)
	outside := t.TempDir()
	put(t, outside+"/passwd", "secret")
	put(t, root+"/srv/app/cfg/passwd", "mine")
	cfg, link := root+"/srv/app/cfg", root+"/srv/app/link"
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for ctx.Err() == nil { // a directory, then a link out of the root in its place
			_ = unix.Renameat2(unix.AT_FDCWD, cfg, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	})
	reads, writes, refused := 0, 0, 0
	for i := range 10_000 {
		if i%20 != 0 { // reads are many times cheaper
			data, err := f.Content(ctx, "/srv/app/cfg/passwd", 100)
			switch {
			case err != nil:
				refused++
			case string(data) == "secret":
				t.Fatal("read outside of the root")
			default:
				reads++
			}
			continue
		}
		if f.WriteFile(ctx, topology.FileWrite{Path: "/srv/app/cfg/passwd", Content: []byte("mine"), Mode: 0o600}) == nil {
			writes++
		} else {
			refused++
		}
	}
	stop()
	swapper.Wait()
	t.Logf("%d reads, %d writes, %d refused", reads, writes, refused)
	if reads == 0 || writes == 0 || refused == 0 {
		t.Error("the race never happened")
	}
	if got, _ := os.ReadFile(outside + "/passwd"); string(got) != "secret" {
		t.Errorf("the file outside became %q", got)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside holds %v", entries)
	}
}

// Whatever is changed, a component that is swapped for a link leads nobody out of the root (case 146).
func TestHostileSwapOfEverything(t *testing.T) {
	f, root := below(t)
	outside := t.TempDir()
	put(t, outside+"/f", "precious")
	for _, err := range []error{os.Mkdir(outside+"/d", 0o700), os.Symlink("/precious", outside+"/l"), os.Chmod(outside, 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg, link := root+"/srv/app/cfg", root+"/srv/app/link"
	put(t, cfg+"/keep", "mine")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	p := func(name string) string { return "/srv/app/cfg/" + name }
	w := topology.FileWrite{Path: p("f"), Mode: 0o644}
	sum := sha256.Sum256([]byte("new"))
	w.Source = &topology.Source{SHA256: hex.EncodeToString(sum[:]), Size: 3,
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("new")), nil }}
	ops := map[string]func(context.Context) error{
		"streamed write": func(ctx context.Context) error { return f.WriteFile(ctx, w) },
		"attributes":     func(ctx context.Context) error { return f.SetAttributes(ctx, w) },
		"remove file":    func(ctx context.Context) error { return f.RemoveFile(ctx, p("f")) },
		"make directory": func(ctx context.Context) error {
			return f.MakeDirectory(ctx, topology.DirectoryWrite{Path: p("d"), Mode: 0o777})
		},
		"make the directory": func(ctx context.Context) error {
			return f.MakeDirectory(ctx, topology.DirectoryWrite{Path: "/srv/app/cfg", Mode: 0o777})
		},
		"make directories": func(ctx context.Context) error {
			return f.MakeDirectory(ctx, topology.DirectoryWrite{Path: p("new/d"), Mode: 0o777})
		},
		"remove directory": func(ctx context.Context) error { return f.RemoveDirectory(ctx, p("d")) },
		"make link": func(ctx context.Context) error {
			return f.MakeSymlink(ctx, topology.SymlinkWrite{Path: p("l"), Target: "/evil", Replaces: "absent"})
		},
		"replace link": func(ctx context.Context) error {
			return f.MakeSymlink(ctx, topology.SymlinkWrite{Path: p("l"), Target: "/evil", Replaces: "/precious"})
		},
		"remove link":            func(ctx context.Context) error { return f.RemoveSymlink(ctx, p("l")) },
		"remove link to outside": func(ctx context.Context) error { return f.RemoveFile(ctx, "/srv/app/cfg") },
		"remove the directory":   func(ctx context.Context) error { return f.RemoveDirectory(ctx, "/srv/app/cfg") },
		"entries": func(ctx context.Context) error {
			names, _, err := f.Entries(ctx, "/srv/app/cfg", 10)
			return outsider(names, err)
		},
		"digest of what is there": func(ctx context.Context) error { _, err := f.Digest(ctx, p("keep"), 10); return err },
	}
	before := listing(t, outside)
	ctx, stop := context.WithCancel(t.Context())
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, cfg, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	})
	done, refused := map[string]int{}, 0
	for i := range 5000 {
		if i >= 150 && done["streamed write"] > 0 && done["make directory"] > 0 && done["make link"]+done["replace link"] > 0 {
			break // every race has happened
		}
		for name, op := range ops {
			if err := op(ctx); err == nil {
				done[name]++
			} else if errors.Is(err, errOutside) {
				t.Fatalf("%s: what is outside was listed", name)
			} else {
				refused++
			}
		}
	}
	stop()
	swapper.Wait()
	t.Logf("done %v, %d refused", done, refused)
	if refused == 0 || done["streamed write"] == 0 || done["make directory"] == 0 || done["make link"]+done["replace link"] == 0 {
		t.Error("the race never happened")
	}
	if after := listing(t, outside); after != before {
		t.Errorf("outside was\n%s\nand is\n%s", before, after)
	}
}

var errOutside = errors.New("outside")

// outsider finds a name that is outside only.
func outsider(names []string, err error) error {
	if slices.Contains(names, "keep") || err != nil || !slices.Contains(names, "f") || slices.Contains(names, "new") {
		return err
	}
	return errOutside
}

// listing is everything below a directory, with its rights and what it holds.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		content, _ := os.ReadFile(p)
		to, _ := os.Readlink(p)
		st := fi.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&b, "%s %v %d:%d %q %q\n", p, fi.Mode(), st.Uid, st.Gid, content, to)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A link is replaced only by itself: a file that is swapped into its place is never lost.
func TestHostileSwapOfALink(t *testing.T) {
	f, root := below(t)
	link, precious := root+"/srv/link", root+"/srv/precious"
	put(t, precious, "precious")
	if err := os.Symlink("/seen", link); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for ctx.Err() == nil {
			_ = unix.Renameat2(unix.AT_FDCWD, link, unix.AT_FDCWD, precious, unix.RENAME_EXCHANGE)
		}
	})
	made, refused := 0, 0
	for range 3000 {
		if f.MakeSymlink(ctx, topology.SymlinkWrite{Path: "/srv/link", Target: "/seen", Replaces: "/seen"}) == nil {
			made++
		} else {
			refused++
		}
	}
	stop()
	swapper.Wait()
	t.Logf("%d made, %d refused", made, refused)
	if made == 0 || refused == 0 {
		t.Error("the race never happened")
	}
	a, _ := os.ReadFile(link)
	b, _ := os.ReadFile(precious)
	if string(a) != "precious" && string(b) != "precious" {
		t.Errorf("the file is lost: %s", listing(t, root+"/srv"))
	}
	wantNoTemp(t, root+"/srv")
}

func asUser(t *testing.T, uid int, do func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		// The thread is never unlocked, so the runtime ends it with the goroutine.
		runtime.LockOSThread()
		for _, call := range [][3]uintptr{{unix.SYS_SETGROUPS, 0, 0}, {unix.SYS_SETRESGID, uintptr(uid), uintptr(uid)}, {unix.SYS_SETRESUID, uintptr(uid), uintptr(uid)}} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], uintptr(uid)); errno != 0 {
				done <- errno
				return
			}
		}
		done <- do()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
