package standard_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/directory"
	"github.com/continuo-fleet/continuo/interpret/symlink"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// gateFunc lets everything through, after something else has happened.
type gateFunc func()

func (g gateFunc) Admit(context.Context, interpret.Action) (interpret.Verdict, error) {
	g()
	return interpret.Verdict{Allow: true, Mark: mark, Authority: "test"}, nil
}
func (gateFunc) Done(context.Context, interpret.Action, interpret.ScoreStatus) error { return nil }
func (gateFunc) Holds(context.Context, score.Score, topology.Mark) error             { return nil }

func TestDirectoryChanges(t *testing.T) {
	s := score.Directory{Path: "/srv/app", Mode: 0o2750, Owner: "pi", Group: "1000"}
	tests := []struct {
		name    string
		outside func(rig)
		fields  []string
	}{
		{"from nothing", func(r rig) { r.Delete("/srv/app") }, []string{"present create"}},
		{"mode", func(r rig) { r.Chmod("/srv/app", 0o777) }, []string{"mode mutate"}},
		{"owner", func(r rig) { r.Chown("/srv/app", 0, 1000) }, []string{"owner mutate"}},
		{"group", func(r rig) { r.Chown("/srv/app", 1000, 0) }, []string{"group mutate"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.play(s)
			r.Put("/srv/app/f", "stays")
			tt.outside(r)
			rec := r.Record()
			st := r.play(s)
			r.want(st, interpret.Changed, "")
			if got := fields(st); !slices.Equal(got, tt.fields) || !slices.Equal(ops(rec), []memory.Op{memory.OpMakeDirectory}) {
				t.Errorf("changes are %v, calls %v", got, ops(rec))
			}
			o := read[directory.Observed](t, r.settled(s))
			if !o.Present || o.Mode != "2750" || o.Owner != "pi" || o.Group != "pi" {
				t.Errorf("got %+v", o)
			}
		})
	}
}

// TestExclusiveDirectory: what does not belong there is told, by name and in bounds, and stays.
func TestExclusiveDirectory(t *testing.T) {
	r := newRig(t)
	s := score.Directory{Path: "/etc/app.d", Mode: 0o755, Exclusive: true, Entries: []string{"ours.conf", "not-yet"}}
	r.want(r.play(s), interpret.Changed, "")
	r.Put("/etc/app.d/ours.conf", "x")
	r.settled(s)
	r.Put("/etc/app.d/foreign.conf", "x")
	r.Put("/etc/app.d/sub/deep", "x")
	for range 2 {
		rec := r.Record()
		g := &open{}
		st := r.with(s, g, nil)
		r.want(st, interpret.Drifted, topology.Code(interpret.CodeObserved))
		if c := st.Changes[0]; c.Field != "exclusive" || c.Have != "foreign.conf, sub" || c.Effect != interpret.Nothing || len(rec.Mutations()) > 0 || len(g.actions) > 0 {
			t.Errorf("got %+v, %v", st.Changes, rec.Mutations())
		}
		if st.Converged() || g.holds != 1 {
			t.Errorf("it counts as converged, or the books were not told: %d", g.holds)
		}
	}
	// What can be made so is made so beside it.
	r.Chmod("/etc/app.d", 0o700)
	st := r.play(s)
	r.want(st, interpret.Changed, "")
	if got := fields(st); !slices.Equal(got, []string{"mode mutate", "exclusive none"}) {
		t.Errorf("changes are %v", got)
	}
	r.want(r.play(s), interpret.Drifted, topology.Code(interpret.CodeObserved))
	if _, there := r.Read("/etc/app.d/foreign.conf"); !there {
		t.Error("what is foreign was removed")
	}
	for i := range 200 {
		r.Put(fmt.Sprintf("/etc/app.d/%s-%03d", strings.Repeat("long", 50), i), "x")
	}
	st = r.play(s)
	o := read[directory.Observed](t, st)
	if len(o.Foreign) != 20 || o.ForeignMore != 182 || len(st.Changes[0].Have) > 1100 || len(st.Message) > 1100 {
		t.Errorf("%d are told, %d more, in %d bytes", len(o.Foreign), o.ForeignMore, len(st.Changes[0].Have))
	}
}

func TestDirectoryAbsent(t *testing.T) {
	r := newRig(t)
	s := score.Directory{Path: "/srv/app", State: score.Absent}
	r.settled(s)
	r.Put("/srv/app/f", "data")
	st := r.play(s)
	r.want(st, interpret.Conflict, topology.CodeForeign)
	if !strings.Contains(st.Message, "/srv/app is not empty, and only an empty directory is removed: it holds f") {
		t.Errorf("got %s", st.Message)
	}
	gone := score.Score{ID: "x", Spec: score.Directory{Path: "/srv/app", Mode: 0o755}}
	if st, err := r.table.Remove(t.Context(), gone, interpret.CauseAbsent, &open{}); err != nil || st.Outcome != interpret.Conflict {
		t.Errorf("removed with data in it: %s %v", st.Outcome, err)
	}
	if _, there := r.Read("/srv/app/f"); !there {
		t.Fatal("data was removed")
	}
	r.Delete("/srv/app/f")
	r.want(r.play(s), interpret.Changed, "")
	r.settled(s)
}

func TestDirectoryAndLinkObstacles(t *testing.T) { // cases 25, 28, 30, 33, 40
	const p = "/srv/x"
	dir, link := score.Directory{Path: p, Mode: 0o755}, score.Symlink{Path: p, Target: "/srv/to"}
	tests := []struct {
		name    string
		spec    score.Spec
		prepare func(rig)
		outcome interpret.Outcome
		code    topology.Code
		message string
	}{
		{"link for a directory (28)", dir, func(r rig) { r.Symlink("/data", p) }, interpret.Failed, topology.CodeSymlink, "/srv/x is a symbolic link to /data"},
		{"file for a directory", dir, func(r rig) { r.Put(p, "x") }, interpret.Failed, topology.CodeNotRegular, "/srv/x is a regular, not a directory"},
		{"pipe for a directory (33)", dir, func(r rig) { r.Special(p) }, interpret.Failed, topology.CodeNotRegular, "not a directory"},
		{"immutable directory (40)", dir, func(r rig) { r.Mkdir(p); r.Chmod(p, 0o700); r.SetImmutable(p, true) }, interpret.Failed, topology.CodeImmutable, "immutable"},
		{"no owners (25)", dir, func(r rig) { r.SetFS("/srv", memory.FS{NoOwners: true}); r.Mkdir(p); r.Chmod(p, 0o700) }, interpret.Changed, "", ""},
		{"no owners, another mode (25)", score.Directory{Path: p, Mode: 0o700}, func(r rig) { r.SetFS("/srv", memory.FS{NoOwners: true}) }, interpret.Unsupported, topology.CodeNotSupported, "neither owners nor modes"},
		{"full (43)", dir, func(r rig) { r.SetFS("/srv", memory.FS{Full: true}) }, interpret.Failed, topology.CodeNoSpace, "no space"},
		{"file for a link", link, func(r rig) { r.Put(p, "x") }, interpret.Failed, topology.CodeNotRegular, "only a link is replaced by one"},
		{"directory for a link", link, func(r rig) { r.Mkdir(p) }, interpret.Failed, topology.CodeNotRegular, "only a link is replaced by one"},
		{"pipe for a link (33)", link, func(r rig) { r.Special(p) }, interpret.Failed, topology.CodeNotRegular, "not a symbolic link"},
		{"no links (25)", link, func(r rig) { r.SetFS("/srv", memory.FS{NoOwners: true}) }, interpret.Unsupported, topology.CodeNotSupported, "holds no symbolic links"},
		{"link on the way (146)", score.Directory{Path: "/srv/way/x", Mode: 0o755}, func(r rig) { r.Symlink("/etc", "/srv/way") }, interpret.Failed, topology.CodeSymlink, "symbolic link"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			before := r.Identity(p)
			st := r.play(tt.spec)
			r.want(st, tt.outcome, tt.code)
			if !strings.Contains(st.Message, tt.message) {
				t.Errorf("message is %q, want …%s…", st.Message, tt.message)
			}
			if tt.outcome != interpret.Changed && r.Identity(p) != before {
				t.Error("something was touched")
			}
		})
	}
}

func TestSymlink(t *testing.T) {
	r := newRig(t)
	s := score.Symlink{Path: "/etc/localtime", Target: "/usr/share/zoneinfo/UTC"}
	r.want(r.play(s), interpret.Changed, "")
	if o := read[symlink.Observed](t, r.settled(s)); !o.Present || o.Target != s.Target {
		t.Errorf("got %+v", o)
	}
	r.Delete(s.Path)
	r.Symlink("../elsewhere", s.Path)
	g := &open{}
	st := r.with(s, g, nil)
	r.want(st, interpret.Changed, "")
	if c := st.Changes[0]; c.Field != "target" || c.Have != "../elsewhere" || c.Want != s.Target || c.Effect != interpret.Mutate || !c.Replaces {
		t.Errorf("got %+v", c)
	}
	// Somebody else changes it just then.
	r.Delete(s.Path)
	r.Symlink("/a", s.Path)
	r.want(r.with(s, gateFunc(func() { r.Delete(s.Path); r.Symlink("/b", s.Path) }), nil), interpret.Failed, topology.CodeChanged)
	s.State = score.Absent
	r.want(r.play(s), interpret.Changed, "")
	r.settled(s)
	if l := r.List("/etc"); len(l) > 0 {
		t.Errorf("left is %v", l)
	}
}
