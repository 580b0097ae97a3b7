package standard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const motd = "/etc/motd"

func TestFileChanges(t *testing.T) { // cases 155, 156
	s := score.File{Path: motd, Content: "hello\n", Mode: 0o644, Owner: "pi", Group: "1000"}
	tests := []struct {
		name    string
		outside func(rig)
		fields  []string
		ops     []memory.Op
	}{
		{"from nothing", func(r rig) { r.Delete(motd) }, []string{"present create"}, []memory.Op{memory.OpWriteFile}},
		{"content", func(r rig) { r.Put(motd, "hello") }, []string{"content mutate"}, []memory.Op{memory.OpWriteFile}},
		{"content of a file with two names (36)", func(r rig) { r.Put(motd, "hello"); r.Link(motd, "/srv/second") }, []string{"content mutate", "links mutate"}, []memory.Op{memory.OpWriteFile}},
		{"mode", func(r rig) { r.Chmod(motd, 0o666) }, []string{"mode mutate"}, []memory.Op{memory.OpSetAttributes}},
		{"owner", func(r rig) { r.Chown(motd, 0, 1000) }, []string{"owner mutate"}, []memory.Op{memory.OpSetAttributes}},
		{"group", func(r rig) { r.Chown(motd, 1000, 0) }, []string{"group mutate"}, []memory.Op{memory.OpSetAttributes}},
		{"everything", func(r rig) { r.Put(motd, ""); r.Chmod(motd, 0o4755); r.Chown(motd, 1, 1) },
			[]string{"content mutate", "mode mutate", "owner mutate", "group mutate"}, []memory.Op{memory.OpWriteFile}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.play(s)
			tt.outside(r)
			rec := r.Record()
			st := r.play(s)
			r.want(st, interpret.Changed, "")
			if got := fields(st); !slices.Equal(got, tt.fields) {
				t.Errorf("changes are %v, want %v", got, tt.fields)
			}
			if got := ops(rec); !slices.Equal(got, tt.ops) {
				t.Errorf("calls are %v, want %v", got, tt.ops)
			}
			o := read[file.Observed](t, r.settled(s))
			want := file.Observed{Present: true, Type: "regular", SHA256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03", // H60: echo hello | sha256sum
				Size: 6, Mode: "0644", Owner: "pi", Group: "pi", Links: 1}
			if o.SHA256 != want.SHA256 || o.Size != want.Size || o.Mode != want.Mode || o.Owner != want.Owner || o.Group != want.Group || !o.Present {
				t.Errorf("got %+v, want %+v", o, want)
			}
		})
	}
}

func TestFileObstacles(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(rig)
		code    topology.Code
		message string
	}{
		{"link (28)", func(r rig) { r.Symlink("/data/motd", motd) }, topology.CodeSymlink, "/etc/motd is a symbolic link to /data/motd; links are not followed"},
		{"pipe (33)", func(r rig) { r.Special(motd) }, topology.CodeNotRegular, "/etc/motd is a special, not a regular file"},
		{"directory", func(r rig) { r.Mkdir(motd) }, topology.CodeNotRegular, "/etc/motd is a directory, not a regular file"},
		{"mount point (24)", func(r rig) { r.Put(motd, "old"); r.SetMountPoint(motd, true) }, topology.CodeMountPoint, "mount point"},
		{"immutable (40)", func(r rig) { r.Put(motd, "old"); r.SetImmutable(motd, true) }, topology.CodeImmutable, "immutable flag"},
		{"full (43)", func(r rig) { r.Put(motd, "old"); r.SetFS("/etc", memory.FS{Full: true}) }, topology.CodeNoSpace, "no space"},
		{"read-only", func(r rig) { r.Put(motd, "old"); r.SetFS("/etc", memory.FS{ReadOnly: true}) }, topology.CodeReadOnly, "read-only"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			before := r.Identity(motd)
			for range 2 {
				st := r.play(score.File{Path: motd, Content: "new", Mode: 0o644})
				r.want(st, interpret.Failed, tt.code)
				if !strings.Contains(st.Message, tt.message) {
					t.Errorf("message is %q, want …%s…", st.Message, tt.message)
				}
			}
			if r.Identity(motd) != before || len(r.List("/etc")) != 1 {
				t.Errorf("something was touched: %v", r.List("/etc"))
			}
		})
	}
}

// TestFileStateBesideFault: what is in the way is in the typed state, too.
func TestFileStateBesideFault(t *testing.T) {
	r := newRig(t)
	r.Symlink("/data/motd", motd)
	o := read[file.Observed](t, r.play(score.File{Path: motd, Mode: 0o644}))
	if o.Type != "symlink" || o.Target != "/data/motd" || o.Present {
		t.Errorf("got %+v", o)
	}
}

func TestFileWithoutOwners(t *testing.T) { // cases 25
	r := newRig(t)
	r.SetFS("/boot", memory.FS{NoOwners: true})
	s := score.File{Path: "/boot/config.txt", Content: "x", Mode: 0o644, Owner: "pi"}
	for range 2 {
		r.want(r.play(s), interpret.Unsupported, topology.CodeNotSupported)
	}
}
