package standard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/hosts"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const foreignHosts = "127.0.0.1\tlocalhost\r\n\n::1 localhost ip6-localhost\n# a comment \xff\n127.0.1.1\traspberrypi"

func names() score.Hosts {
	return score.Hosts{Entries: []score.HostEntry{
		{Address: "192.0.2.10", Names: []string{"broker.example.org", "broker"}},
		{Address: "2001:db8::10", Names: []string{"broker"}},
	}}
}

const block = "# continuo begin test/score (written by continuo: edit the manifest, and not these lines)\n192.0.2.10\tbroker.example.org broker\n2001:db8::10\tbroker\n# continuo end\n"

func TestHosts(t *testing.T) {
	r := newRig(t)
	r.Put("/etc/hosts", foreignHosts)
	r.Chmod("/etc/hosts", 0o600)
	rec := r.Record()
	st := r.play(names())
	r.want(st, interpret.Changed, "")
	if got, _ := r.Read("/etc/hosts"); got != foreignHosts+"\n"+block {
		t.Errorf("the file is %q", got)
	}
	if got := fields(st); !slices.Equal(got, []string{"present create"}) || !slices.Equal(ops(rec), []memory.Op{memory.OpWriteFile}) {
		t.Errorf("changes are %v, calls %v", got, ops(rec))
	}
	o := read[hosts.Observed](t, r.settled(names()))
	if !o.Present || len(o.Entries) != 2 || o.Entries[0].Names[1] != "broker" || len(o.Duplicates) > 0 {
		t.Errorf("got %+v", o)
	}

	// Lines of others, before and behind, stay byte for byte.
	behind := "198.51.100.1 other\n\tbroker is no line\n"
	r.Put("/etc/hosts", foreignHosts+"\n"+strings.Replace(block, "192.0.2.10", "192.0.2.99", 1)+behind)
	st = r.play(names())
	r.want(st, interpret.Changed, "")
	if got, _ := r.Read("/etc/hosts"); got != foreignHosts+"\n"+block+behind {
		t.Errorf("the file is %q", got)
	}
	if c := st.Changes[0]; c.Field != "entries.broker" || c.Have != "192.0.2.99 2001:db8::10" || c.Want != "192.0.2.10 2001:db8::10" {
		t.Errorf("got %+v", st.Changes)
	}
	r.settled(names())

	st, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: names()}, interpret.CauseAbsent, &open{})
	if err != nil {
		t.Fatal(err)
	}
	r.want(st, interpret.Changed, "")
	if got, _ := r.Read("/etc/hosts"); got != foreignHosts+"\n"+behind {
		t.Errorf("the file is %q", got)
	}
	r.Delete("/etc/hosts")
	r.want(r.play(names()), interpret.Changed, "")
	if got, _ := r.Read("/etc/hosts"); got != block {
		t.Errorf("the file is %q", got)
	}
	r.settled(names())
}

// TestHostsDuplicates: names of ours in lines of others are told; where those come first, ours are not in force.
func TestHostsDuplicates(t *testing.T) {
	r := newRig(t)
	for lines, effective := range map[string]bool{
		"192.0.2.10 Broker\n": true, "2001:db8::10 x broker # comment\n": true, "2001:db8::11 broker.example.org\n": true,
		"192.0.2.77 BROKER\n": false, "2001:db8::77 broker\n": false,
	} {
		r.Put("/etc/hosts", lines+block)
		st := r.play(names())
		r.want(st, interpret.Unchanged, "")
		o := read[hosts.Observed](t, st)
		if len(o.Duplicates) != 1 || *st.Conditions.Effective != effective {
			t.Errorf("%q: got %v, effective is %v", lines, o.Duplicates, *st.Conditions.Effective)
		}
		r.Put("/etc/hosts", block+lines)
		if st := r.play(names()); !st.Converged() || len(read[hosts.Observed](t, st).Duplicates) != 1 {
			t.Errorf("%q behind the block: %s, %s", lines, st.Outcome, st.Observed)
		}
	}
	r.Put("/etc/hosts", strings.Repeat("192.0.2.10 broker\n", 500)+block)
	if o := read[hosts.Observed](t, r.play(names())); len(o.Duplicates) != 20 || o.DuplicatesMore != 480 {
		t.Errorf("%d are told, and %d more", len(o.Duplicates), o.DuplicatesMore)
	}
}

func TestHostsObstacles(t *testing.T) {
	begin, end := block[:strings.Index(block, "\n")+1], "# continuo end\n"
	tests := []struct {
		name    string
		prepare func(rig)
		outcome interpret.Outcome
		code    topology.Code
	}{
		{"mount point (24)", func(r rig) { r.Put("/etc/hosts", "x\n"); r.SetMountPoint("/etc/hosts", true) }, interpret.Failed, topology.CodeMountPoint},
		{"link (28)", func(r rig) { r.Symlink("/data/hosts", "/etc/hosts") }, interpret.Failed, topology.CodeSymlink},
		{"pipe (33)", func(r rig) { r.Special("/etc/hosts") }, interpret.Failed, topology.CodeNotRegular},
		{"immutable (40)", func(r rig) { r.Put("/etc/hosts", "x\n"); r.SetImmutable("/etc/hosts", true) }, interpret.Failed, topology.CodeImmutable},
		{"full (43)", func(r rig) { r.Put("/etc/hosts", "x\n"); r.SetFS("/etc", memory.FS{Full: true}) }, interpret.Failed, topology.CodeNoSpace},
		{"begin without end", func(r rig) { r.Put("/etc/hosts", begin+"192.0.2.1 a\n") }, interpret.Conflict, topology.CodeForeign},
		{"end without begin", func(r rig) { r.Put("/etc/hosts", "192.0.2.1 a\n"+end) }, interpret.Conflict, topology.CodeForeign},
		{"two blocks", func(r rig) { r.Put("/etc/hosts", block+block) }, interpret.Conflict, topology.CodeForeign},
		{"begin twice", func(r rig) { r.Put("/etc/hosts", begin+begin+end) }, interpret.Conflict, topology.CodeForeign},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			before := r.Identity("/etc/hosts")
			for range 2 {
				r.want(r.play(names()), tt.outcome, tt.code)
			}
			if r.Identity("/etc/hosts") != before {
				t.Error("something was touched")
			}
		})
	}
}

// Somebody else who writes the file just then loses nothing.
func TestHostsChangedMeanwhile(t *testing.T) { // G37
	r := newRig(t)
	r.Put("/etc/hosts", "192.0.2.1 a\n")
	r.Before(nil)
	st := r.with(names(), gateFunc(func() { r.Put("/etc/hosts", "192.0.2.2 b\n") }), nil)
	r.want(st, interpret.Changed, "")
	if got, _ := r.Read("/etc/hosts"); got != "192.0.2.2 b\n"+block {
		t.Errorf("the file is %q", got)
	}
}
