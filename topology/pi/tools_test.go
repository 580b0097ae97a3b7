package pi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// toolbox is a search path of directories that a test fills.
type toolbox struct {
	*tools
	t     *testing.T
	asked int
}

func newToolbox(t *testing.T) *toolbox {
	b := &toolbox{tools: newTools(newBus(t.Context(), true), false, "1.2.3"), t: t}
	b.path = []string{t.TempDir(), t.TempDir(), t.TempDir()}
	really := b.ask
	b.ask = func(ctx context.Context, program string) (string, error) {
		b.asked++
		return really(ctx, program)
	}
	return b
}

// script puts a shell script into a directory of the search path.
func (b *toolbox) script(dir int, name, text string) string {
	b.t.Helper()
	path := filepath.Join(b.path[dir], name)
	next := path + ".next" // a file that somebody still holds open for writing cannot be started
	if err := os.WriteFile(next, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *toolbox) tool(name string) topology.ToolState {
	b.t.Helper()
	st, err := b.Tool(b.t.Context(), name)
	if err != nil {
		b.t.Fatal(err)
	}
	return st
}

func TestConformTools(t *testing.T) {
	conform.Tools(t, func(t *testing.T) conform.ToolBench {
		b := newToolbox(t)
		b.script(1, "podman", "echo podman version 5.4.2")
		return conform.ToolBench{Tools: b, Present: "podman", Missing: "nothing", Shadow: func() (string, error) {
			return b.script(0, "podman", "exec /nonexistent/podman"), nil
		}}
	})
}

// TestToolSays: what is made of what a program does (G51).
func TestToolSays(t *testing.T) {
	tests := []struct{ name, script, version, why string }{
		{"a version", "echo podman version 5.4.2", "5.4.2", ""},
		{"a word before it", "echo 'Python 3.13.5'", "3.13.5", ""},
		{"of a package", "echo 'systemd 257 (257.8-1~deb13u2)'", "257.8-1~deb13u2", ""},
		{"one number", "echo 'less 668 (GNU regular expressions)'", "668", ""},
		{"on stderr", "echo 'tool v1.2-rc1' >&2", "1.2-rc1", ""},
		{"below a banner", "echo Welcome; echo 'tool 1.2'", "1.2", ""},
		{"nothing", "exit 0", "", ""},
		{"much", "head -c 1000000 /dev/zero | tr '\\0' 'x'; echo 1.2", "", ""},
		{"no text", "printf '1.2\\377\\000\\033[31m'", "1.2", ""},
		{"it fails", "echo cannot load library >&2; exit 3", "", "exit status 3 cannot load library"},
		{"it dies", "kill -9 $$", "", "signal: killed"},
		{"an environment", `[ -z "$CANARY" ] && [ "$LC_ALL" = C ] && echo 1.0`, "1.0", ""},
		{"arguments", `[ "$*" = --version ] && echo 1.0`, "1.0", ""},
		{"a child that stays", "sleep 1000 & echo 1.0", "1.0", ""},
	}
	t.Setenv("CANARY", "secret")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newToolbox(t)
			path := b.script(1, "tool", tt.script)
			st := b.tool("tool")
			if len(st.Copies) != 1 {
				t.Fatalf("got %+v", st)
			}
			c := st.Copies[0]
			if c.Path != path || c.Version != tt.version || c.Works != (tt.why == "") || !strings.Contains(c.Why, tt.why) {
				t.Errorf("got %+v", c)
			}
		})
	}
}

// TestToolIsAskedOnce: a program whose file stays the same is not started again, and one that was changed is.
func TestToolIsAskedOnce(t *testing.T) {
	b := newToolbox(t)
	path := b.script(1, "tool", "echo 1.0")
	want := func(asked int, version string) {
		t.Helper()
		if st := b.tool("tool"); b.asked != asked || len(st.Copies) != 1 || st.Copies[0].Version != version {
			t.Errorf("asked %d times, want %d: %+v", b.asked, asked, st)
		}
	}
	for range 100 {
		want(1, "1.0")
	}
	b.script(1, "tool", "echo 2.0")
	want(2, "2.0")
	want(2, "2.0")
	if err := os.Rename(path, path+".away"); err != nil { // G08: gone, and back as it was
		t.Fatal(err)
	}
	if st := b.tool("tool"); st.Condition() != topology.ToolMissing || b.asked != 2 {
		t.Errorf("got %+v", st)
	}
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	if st := b.tool("tool"); st.Condition() != topology.ToolPresent {
		t.Errorf("got %+v", st)
	}
}

// TestToolIsBelievedForAWhile: what a program needs beside its file may come and go.
func TestToolIsBelievedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newToolbox(t)
		var err error
		n := 0
		b.ask = func(context.Context, string) (string, error) { n++; return "tool 1.0", err }
		b.script(1, "tool", "")
		for _, s := range []struct {
			wait  time.Duration
			err   error
			asked int
			works bool
		}{
			{0, nil, 1, true}, {59 * time.Minute, errors.New("broken"), 1, true}, {2 * time.Minute, errors.New("broken"), 2, false},
			{9 * time.Minute, nil, 2, false}, {2 * time.Minute, nil, 3, true},
		} {
			time.Sleep(s.wait) // of the bubble
			err = s.err
			if st := b.tool("tool"); n != s.asked || st.Copies[0].Works != s.works {
				t.Errorf("after %s: asked %d times, %+v, want %d, %v", s.wait, n, st, s.asked, s.works)
			}
		}
	})
}

// TestToolThatHangs: it is killed with all that it started, and is broken.
func TestToolThatHangs(t *testing.T) {
	b := newToolbox(t)
	file := filepath.Join(t.TempDir(), "alive")
	b.script(1, "tool", "(trap '' HUP TERM; while :; do date >"+file+"; sleep 0.1; done) & trap '' TERM; sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := b.Tool(ctx, "tool"); topology.FaultOf(err).Code != topology.CodeTimeout {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	late, tick := time.After(500*time.Millisecond), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if _, err := os.Stat(file); err == nil {
				t.Fatal("its child lives on")
			}
			continue
		case <-late:
		}
		break
	}
}

// TestToolsOnThePath: links, what cannot be started, and two names of one file.
func TestToolsOnThePath(t *testing.T) {
	b := newToolbox(t)
	good := b.script(2, "tool", "echo 3.0")
	for _, f := range []func(string) error{
		func(p string) error { return os.Symlink("/nonexistent/tool", p) },
		func(p string) error { return os.WriteFile(p, []byte("#!/bin/sh\necho 1.0\n"), 0o644) },
		func(p string) error { return os.Mkdir(p, 0o755) },
		func(p string) error { return os.Link(good, p) },
	} {
		path := filepath.Join(b.path[0], "tool")
		if err := f(path); err != nil {
			t.Fatal(err)
		}
		st := b.tool("tool")
		if len(st.Copies) == 0 || !st.Copies[len(st.Copies)-1].Works || len(st.Copies) == 2 && st.Condition() != topology.ToolShadowed {
			t.Errorf("got %+v", st)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(good, filepath.Join(b.path[0], "other")); err != nil {
		t.Fatal(err)
	}
	if st := b.tool("other"); st.Condition() != topology.ToolPresent || st.Copies[0].Target != good {
		t.Errorf("got %+v", st)
	}
}

func FuzzFirstVersion(f *testing.F) {
	for _, s := range []string{"podman version 5.4.2", "systemd 257 (257.8-1~deb13u2)", "", "\xff1.2", "v1", strings.Repeat("1.", 3000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v := firstVersion(text)
		if len(v) > 128 || v != "" && (v[0] < '0' || v[0] > '9') || v != clean(v) {
			t.Errorf("%q gives %q", text, v)
		}
	})
}
