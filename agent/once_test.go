package agent_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/agent"
)

// One manifest by itself says nothing about the others: what they own stays theirs, with
// the books and, by its mark, without.
func TestOnceLeavesOtherManifestsAlone(t *testing.T) {
	r := newRig(t)
	r.apply(agent.Once(manifest("a", file("x", "/etc/x", "a"))))
	other := agent.Once(manifest("b", file("y", "/etc/x", "b"), file("z", "/etc/z", "b")))
	r.want(r.apply(other), "b/y=conflict/owned_by b/z=changed")
	st, err := r.runner.Observe(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	r.want(st, "b/y=conflict/owned_by b/z=unchanged")
	r.loseBooks()
	r.want(r.apply(other), "b/y=conflict/owned_by b/z=unchanged")
	if got, _ := r.dev.Read("/etc/x"); got != "a" {
		t.Errorf("/etc/x is %q", got)
	}
}
