package standard_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// TestExamplesPlay: what the examples ask for can be had, once, and is then left alone (cases 161).
func TestExamplesPlay(t *testing.T) {
	paths, err := filepath.Glob("../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range score.Kinds() {
		if want := "../../examples/" + string(k.Kind) + ".yaml"; !slices.Contains(paths, want) {
			t.Errorf("there is no %s, and every kind has an example", want[len("../../"):])
		}
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m, problems := source.Manifest(path, data)
			if len(problems) > 0 {
				t.Fatalf("problems: %v", problems)
			}
			kind := score.Kind(strings.TrimSuffix(filepath.Base(path), ".yaml"))
			if _, is := score.Lookup(kind); is && !slices.ContainsFunc(m.Spec.Scores, func(s score.Score) bool { return s.Spec.Kind() == kind }) {
				t.Errorf("the example of %q has none", kind)
			}
			r := newRig(t)
			there := slices.DeleteFunc(score.Order(m.Spec.Scores), func(s score.Score) bool { return s.Decommission })
			for _, s := range there {
				if r.table.Looks(s.Spec.Kind()) {
					continue // it is as it is
				}
				prepare(r, s.Spec)
				r.want(r.play(s.Spec), interpret.Changed, "")
			}
			for range 20 {
				for _, s := range there {
					r.settled(s.Spec)
				}
			}
		})
	}
}
