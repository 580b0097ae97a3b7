package pi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
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
