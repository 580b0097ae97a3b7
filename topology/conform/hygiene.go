package conform

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// fileHygiene is what a write leaves alone, and leaves behind.
var fileHygiene = []test[FileBench]{
	{"no touch (47)", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.put(t, p, "x")
		before, err := b.Hands.Identity(p)
		hands(t, err)
		for range 10 {
			b.state(t, p)
			_, err := b.Files.Content(t.Context(), p, 10)
			ok(t, err)
		}
		now, err := b.Hands.Identity(p)
		hands(t, err)
		equal(t, "identity", now, before)
	}},
	{"hard link (36)", func(t *testing.T, b FileBench) {
		p, another := b.path("f"), b.path("chroot-f")
		b.put(t, p, "old")
		hands(t, b.Hands.Link(p, another))
		equal(t, "links", b.state(t, p).Links, 2)
		b.write(t, topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o644})
		b.content(t, p, "new")
		b.content(t, another, "old")
		equal(t, "links", b.state(t, p).Links, 1)
	}},
	{"access control list (37)", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.put(t, p, "old")
		hands(t, b.Hands.SetACL(p))
		before, err := b.Hands.ACL(p)
		hands(t, err)
		mode := b.state(t, p).Mode
		b.write(t, topology.FileWrite{Path: p, Content: []byte("new"), Mode: mode, Mark: "m/s"})
		now, err := b.Hands.ACL(p)
		hands(t, err)
		equal(t, "access control list", now, before)
		b.content(t, p, "new")
	}},
	{"running program (46)", func(t *testing.T, b FileBench) {
		p := b.path("program")
		stop, err := b.Hands.Run(p)
		hands(t, err)
		defer stop()
		b.write(t, topology.FileWrite{Path: p, Content: []byte("new"), Mode: 0o755})
		b.content(t, p, "new")
	}},
	{"no window (27, 41)", func(t *testing.T, b FileBench) {
		p, done := b.path("secret.conf"), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // somebody who looks all the time
			for {
				select {
				case <-done:
					return
				default:
				}
				names, err := b.Hands.List(b.Dir)
				if err != nil {
					t.Errorf("hands: %v", err)
					return
				}
				for _, n := range names {
					if n != path.Base(p) && (!strings.HasPrefix(n, ".") || strings.HasSuffix(n, ".conf")) {
						t.Errorf("a program that reads the directory would read %q", n)
					}
					st, err := b.Files.File(t.Context(), b.path(n))
					if err == nil && st.Size > 0 && st.Mode&0o077 != 0 {
						t.Errorf("%s holds content and has mode %04o", n, st.Mode)
					}
				}
			}
		})
		for i := range 100 {
			b.write(t, topology.FileWrite{Path: p, Content: fmt.Appendf(nil, "password %d", i), Mode: 0o600, Owner: b.Owner})
		}
		close(done)
		wg.Wait()
		b.names(t, b.Dir, "secret.conf")
	}},
	{"many at once", func(t *testing.T, b FileBench) {
		var wg sync.WaitGroup
		for i := range 8 {
			for _, p := range []string{b.path(fmt.Sprintf("new/dir/%d", i)), b.path("new/dir/same")} {
				wg.Go(func() {
					if err := b.Files.WriteFile(t.Context(), topology.FileWrite{Path: p, Content: []byte(p), Mode: 0o644}); err != nil {
						t.Errorf("%s: %v", p, err)
					}
				})
			}
		}
		wg.Wait()
		b.names(t, b.path("new/dir"), "0", "1", "2", "3", "4", "5", "6", "7", "same")
	}},
}
