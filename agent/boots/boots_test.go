package boots

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// What a device went through tells whether the boot after it follows a power cut. A step that did not come, because the
// power went, is left out.
func TestUnclean(t *testing.T) { // case 94
	type step func(*testing.T, string)
	begin := func(id string) step {
		return func(t *testing.T, dir string) { must(t, Open(dir, id).Begin()) }
	}
	end := func(id string) step {
		return func(t *testing.T, dir string) { must(t, Open(dir, id).End()) }
	}
	holds := func(text string) step {
		return func(t *testing.T, dir string) {
			must(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
			must(t, os.WriteFile(filepath.Join(dir, folder, name), []byte(text), 0o600))
		}
	}
	for _, tt := range []struct {
		name  string
		steps []step
		this  string
		want  bool
	}{
		{"never begun", nil, "b", false},
		{"ended", []step{begin("a"), end("a")}, "b", false},
		{"cut", []step{begin("a")}, "b", true},
		{"the agent started again", []step{begin("a"), begin("a")}, "a", false},
		{"ended, and the agent started again", []step{begin("a"), end("a"), begin("a")}, "b", true},
		{"cut while it was looked at", []step{begin("a")}, "c", true},
		{"cut, ended before it was looked at", []step{begin("a"), end("b")}, "c", true},
		{"cut, looked at, ended", []step{begin("a"), begin("b"), end("b")}, "c", false},
		{"cut, looked at, cut", []step{begin("a"), begin("b")}, "c", true},
		{"ended twice", []step{begin("a"), end("a"), end("a")}, "b", false},
		{"an empty file", []step{holds("")}, "b", true},
		{"half a file", []step{holds("b")}, "b", true},
		{"garbage", []step{holds(string(bytes.Repeat([]byte("x"), 1<<20)))}, "b", true},
		{"no id of this boot", []step{begin("a")}, "", false},
		{"no id of that boot", []step{begin("")}, "b", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, s := range tt.steps {
				s(t, dir)
			}
			if got := Open(dir, tt.this).Unclean(); got != tt.want {
				t.Errorf("unclean: %v, want %v", got, tt.want)
			}
		})
	}
}

// A file that cannot be read may say anything: it is looked at once more, and what cannot be written is told.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, folder, name), 0o700)) // a directory in its place
	b := Open(dir, "a")
	if !b.Unclean() {
		t.Error("it is clean")
	}
	if err := b.Begin(); err == nil {
		t.Error("it was noted")
	}
	if err := Open(filepath.Join(dir, "none"), "a").Begin(); err == nil {
		t.Error("it was noted where there is no state directory")
	}
}

// Nothing is written when nothing is new.
func TestBeginAgain(t *testing.T) {
	dir := t.TempDir()
	b := Open(dir, "a")
	must(t, b.Begin())
	first, err := os.Stat(filepath.Join(dir, folder, name))
	must(t, err)
	must(t, b.Begin())
	if now, err := os.Stat(filepath.Join(dir, folder, name)); err != nil || !os.SameFile(first, now) {
		t.Errorf("it was written again: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
