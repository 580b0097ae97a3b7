package pi

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// readTogether reads the directory p whole: names and contents.
func readTogether(ctx context.Context, f *files, p string) (map[string]string, error) {
	s := f.Snapshot()
	names, _, err := s.Entries(ctx, p, 100)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range names {
		content, err := s.Content(ctx, p+"/"+name, 1<<10)
		if err != nil {
			return nil, err
		}
		out[name] = string(content)
	}
	return out, s.Settle(ctx)
}

// Somebody swaps a directory for a link out of the root, rewrites files at the same size, and puts others
// beside them, all the time. Whatever Settle says yes to was there at one time (X53).
func TestHostileSnapshot(t *testing.T) {
	for name, disturb := range map[string]func(dir, link string, n int){
		"swapped for a link": func(dir, link string, n int) {
			_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		},
		"rewritten at the same size": func(dir, _ string, n int) {
			for _, name := range []string{"a", "b", "c"} { // one after the other: at no time are two of them more than one apart
				f, err := os.OpenFile(dir+"/"+name, os.O_WRONLY, 0)
				if err == nil {
					_, _ = f.WriteString(fmt.Sprintf("%08d", n))
					_ = f.Close()
				}
			}
		},
		"another directory in its place": func(dir, _ string, n int) {
			other := dir + "." + strconv.Itoa(n%2)
			_ = os.Mkdir(other, 0o755)
			for _, name := range []string{"a", "b", "c"} {
				_ = os.WriteFile(other+"/"+name, fmt.Appendf(nil, "%08d", n), 0o644)
			}
			_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, other, unix.RENAME_EXCHANGE)
		},
		"a file beside": func(dir, _ string, n int) {
			if n%2 == 0 {
				_ = os.WriteFile(dir+"/d", fmt.Appendf(nil, "%08d", n), 0o644)
			} else {
				_ = os.Remove(dir + "/d")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, root := below(t)
			outside := t.TempDir()
			dir := root + "/srv/cfg"
			for _, name := range []string{"a", "b", "c"} {
				put(t, outside+"/"+name, "outside!")
				put(t, dir+"/"+name, "00000000")
			}
			if err := os.Symlink(outside, root+"/srv/link"); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var hostile sync.WaitGroup
			turns := make(chan int) // the hostile hand is never far behind, and never waited for
			hostile.Go(func() {
				for n := range turns {
					disturb(dir, root+"/srv/link", n)
				}
			})
			whole, refused := 0, 0
			for n := 1; n <= 3000; n++ {
				select {
				case turns <- n:
				default:
				}
				got, err := readTogether(ctx, f, "/srv/cfg")
				if err != nil {
					refused++
					continue
				}
				whole++
				if err := atOneTime(got); err != nil {
					t.Errorf("turn %d: %v: %v", n, err, got)
				}
			}
			close(turns)
			stop()
			hostile.Wait()
			t.Logf("%d whole, %d refused", whole, refused)
			if whole == 0 || refused == 0 {
				t.Error("the race never happened")
			}
		})
	}
}

// atOneTime reports what cannot have been at one time.
func atOneTime(got map[string]string) error {
	var n []int
	for _, name := range []string{"a", "b", "c"} {
		i, err := strconv.Atoi(got[name])
		if err != nil || strings.Contains(got[name], "outside") {
			return fmt.Errorf("%s holds %q", name, got[name])
		}
		n = append(n, i)
	}
	// They are written in their order, so that none is before the next one, and the last is of this turn or of the one before.
	if n[0] < n[1] || n[1] < n[2] {
		return fmt.Errorf("a later file is newer")
	}
	if n[0] != n[1] && n[1] != n[2] {
		return fmt.Errorf("three turns in one reading")
	}
	return nil
}

// What a file system holds is told by no time of it: a second change within the step of its clock is found by reading
// again (X53).
func TestSnapshotReadsAgain(t *testing.T) {
	f, root := below(t)
	put(t, root+"/etc/a", "one")
	s := f.Snapshot().(*snapshot)
	if _, err := s.Content(t.Context(), "/etc/a", 10); err != nil {
		t.Fatal(err)
	}
	put(t, root+"/etc/a", "two")
	n, err := f.node("/etc/a")
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	s.seen["/etc/a"].stat = n.stat // as if the clock had not moved
	wantCode(t, s.Settle(t.Context()), topology.CodeChanged, "/etc/a")
}
