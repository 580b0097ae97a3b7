package standard_test

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// samples returns the sample of every registered kind.
func samples() (out []score.Spec) {
	for _, k := range score.Kinds() {
		out = append(out, k.Sample)
	}
	return out
}

// made are the samples of the kinds that are made true, and not only looked at.
func made(t *testing.T) []score.Spec {
	table := newRig(t).table
	return slices.DeleteFunc(samples(), func(s score.Spec) bool { return table.Looks(s.Kind()) })
}

// prepare puts on the device what a sample presupposes.
func prepare(r rig, s score.Spec) {
	if f, ok := s.(score.File); ok && f.Owner != "" {
		r.AddUser(f.Owner, 0)
		r.AddGroup(f.Group, 0)
	}
	if u, ok := s.(score.SecretUser); ok {
		for _, name := range u.SecretNames() {
			r.SetSecret(name, canary)
		}
	}
	if c, ok := s.(score.Container); ok && c.Registry != nil {
		r.SetSecret(c.Registry.Password.Secret, canary)
	}
	r.SetSecret("tls", "value") // what specs are changed to may name it
	if d, ok := s.(score.Directory); ok && d.Owner != "" {
		r.AddUser(d.Owner, 0)
		r.AddGroup(d.Group, 0)
	}
}

// TestEveryKind walks the registry: what is true of one kind is true of all (H23, H08, H54, cases 141).
func TestEveryKind(t *testing.T) {
	kinds := newRig(t).table.Kinds()
	for _, k := range score.Kinds() {
		t.Run(string(k.Kind), func(t *testing.T) {
			if !slices.Contains(kinds, k.Kind) {
				t.Fatalf("standard.Bind has no interpreter for %q", k.Kind)
			}
			if k.Doc == "" || len(k.Needs) == 0 {
				t.Errorf("doc is %q, needs are %v", k.Doc, k.Needs)
			}
			if _, err := os.Stat("../../examples/" + string(k.Kind) + ".yaml"); err != nil {
				t.Errorf("there is no example: %v", err)
			}
			if bad := notData(k.Type, k.Type.Name()); bad != "" {
				t.Errorf("the spec is not plain data: %s", bad)
			}
			if newRig(t).table.Looks(k.Kind) {
				lookedAt(t, k.Sample)
				return
			}
			before := encoded(t, k.Sample)

			r := newRig(t)
			prepare(r, k.Sample)
			wish := interpret.Wish{Score: score.Score{ID: "x", Spec: k.Sample}}
			rec := r.Record()
			for range 2 { // to look changes nothing, and says what would be done
				st := r.table.Observe(t.Context(), wish)
				if st.Outcome != interpret.Drifted || len(st.Changes) == 0 {
					t.Fatalf("got %s %s %v before it was played", st.Outcome, st.Message, st.Changes)
				}
				for _, c := range st.Changes {
					if c.Field == "" || c.Have == c.Want || interpret.Worst([]interpret.Change{c}) != c.Effect {
						t.Errorf("change %+v", c)
					}
				}
			}
			if m := rec.Mutations(); len(m) > 0 {
				t.Fatalf("Observe has changed the device: %v", m)
			}

			if st := r.table.Prefetch(t.Context(), wish.Score); st.Outcome != "" {
				t.Fatal(st.Message)
			}
			r.want(r.play(k.Sample), interpret.Changed, "")
			for range 10 { // cases 47, 161
				r.settled(k.Sample)
			}
			if st := r.table.Observe(t.Context(), wish); st.Outcome != interpret.Unchanged {
				t.Errorf("Observe says %s", st.Outcome)
			}
			if got := encoded(t, k.Sample); got != before {
				t.Errorf("the wish was changed from\n%s to\n%s", before, got)
			}
			for range 2 {
				st, err := r.table.Remove(t.Context(), wish.Score, interpret.CauseAbsent, &open{})
				if err != nil {
					t.Fatal(err)
				}
				r.want(st, interpret.Changed, "")
			}
		})
	}
}

// supply puts on the device what a kind only looks for, as whoever installs it does.
func supply(r rig, s score.Spec) {
	if t, ok := s.(score.Tool); ok {
		r.SetTool(t.Name, topology.ToolCopy{Path: t.Path, Version: "3.13.5", Works: true})
	}
}

// lookedAt: a kind that is only looked at says what differs, changes nothing whatever is allowed, and has nothing to remove.
func lookedAt(t *testing.T, sample score.Spec) {
	r := newRig(t)
	rec, g := r.Record(), &open{}
	for range 2 {
		st := r.with(sample, g, nil)
		r.want(st, interpret.Drifted, topology.Code(interpret.CodeObserved))
		if len(st.Changes) == 0 {
			t.Error("it says not what differs")
		}
	}
	supply(r, sample)
	for range 10 {
		r.settled(sample)
	}
	st, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: sample}, interpret.CauseAbsent, g)
	if err != nil {
		t.Fatal(err)
	}
	r.want(st, interpret.Changed, "")
	if m := rec.Mutations(); len(m) > 0 {
		t.Errorf("it was only looked at, and yet %v", m)
	}
	for _, a := range g.actions {
		if a.Effect != interpret.Nothing {
			t.Errorf("the gate was asked for %+v", a)
		}
	}
}

// TestEveryStateIsData: what a kind observes can be read back as its type, and has no field that
// could be anything (H11, H20, H49).
func TestEveryStateIsData(t *testing.T) {
	for _, s := range samples() {
		r := newRig(t)
		prepare(r, s)
		st := r.play(s)
		typ := r.table.Observed(s.Kind())
		if bad := notData(typ, string(s.Kind())); bad != "" {
			t.Errorf("the state is not plain data: %s", bad)
		}
		v := reflect.New(typ)
		if err := score.Decode(st.Observed, v.Interface()); err != nil {
			t.Errorf("%s: %v", s.Kind(), err)
			continue
		}
		if got := encoded(t, v.Interface()); got != string(st.Observed) {
			t.Errorf("%s: read back as\n%s, was\n%s", s.Kind(), got, st.Observed)
		}
	}
}

// TestDeadCapability: a capability that is dead is no failure of the score (H37).
func TestDeadCapability(t *testing.T) {
	for _, s := range samples() {
		r := newRig(t)
		r.Fail("", "", topology.Faultf(topology.CodeUnavailable, "it is not there"))
		r.want(r.play(s), interpret.Unsupported, topology.CodeUnavailable)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := score.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// notData names the first exported field below t that could hold anything, or behaviour.
func notData(t reflect.Type, at string) string {
	switch t.Kind() {
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Complex64, reflect.Complex128:
		return at + " is a " + t.Kind().String()
	case reflect.Slice, reflect.Array, reflect.Pointer:
		if t.Elem().Kind() == reflect.Uint8 {
			return at + " is a raw document"
		}
		return notData(t.Elem(), at+"[]")
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return at + " is a map with keys that are no text"
		}
		return notData(t.Elem(), at+"[]")
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return ""
		}
		for f := range t.Fields() {
			if f.IsExported() {
				if bad := notData(f.Type, at+"."+f.Name); bad != "" {
					return bad
				}
			}
		}
	}
	return ""
}
