package agent_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// A path may be longer than the name of a note: what is at one is given up, and taken back, as anything else.
func TestLongPathIsGivenUp(t *testing.T) {
	r := newRig(t)
	path := "/srv/" + strings.Repeat(strings.Repeat("d", 250)+"/", 15) + "x"
	pol := score.Policy{Preset: score.Converge, OnAbsent: score.AbsentRelease}
	long := file("x", path, "1")
	r.want(r.apply(intent(1, under(pol, manifest("m", long, file("a", "/etc/a", "1"))))), "m/a=changed m/x=changed")
	r.want(r.apply(intent(2, under(pol, manifest("m", file("a", "/etc/a", "1"))))), "m/a=unchanged")
	if _, owned := r.store.Owner("file:" + path); owned {
		t.Error("it is owned still")
	}
	r.content(path, "1")
	r.dev.Put(path, "2")
	again := intent(3, under(pol, manifest("m", long, file("a", "/etc/a", "1"))))
	r.want(r.apply(again), "m/a=unchanged m/x=conflict/foreign")
	r.want(r.confirm(again), "m/a=unchanged m/x=changed")
	r.want(r.apply(again), "m/a=unchanged m/x=unchanged")
}
