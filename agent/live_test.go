package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Somebody changes a file between the look and the write, at the last moment: that is not overwritten, whatever allowed the
// write, and what it is now is a new question (G37, K14).
func TestLiveChange(t *testing.T) {
	for name, tt := range map[string]struct {
		before string // that is there, and foreign; empty: nothing
		owned  bool
		then   string // what becomes of it later
	}{
		"a file appears":      {"", false, "m/a=conflict/foreign"},
		"a foreign file":      {"theirs", false, "m/a=conflict/foreign"},
		"one that is our own": {"", true, "m/a=unchanged"},
	} {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			_, f, h, _ := r.running()
			if tt.before != "" {
				r.dev.Put("/etc/a", tt.before)
			}
			if tt.owned {
				offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"))))
				later(time.Second)
			}
			put, found := false, "just now" // found is what the next write would overwrite
			r.dev.Before(func(_ context.Context, c memory.Call) error {
				if c.Op == memory.OpWriteFile && put {
					found, _ = r.dev.Read("/etc/a")
				}
				if c.Op == memory.OpWriteFile && !put {
					put = true
					r.dev.Put("/etc/a", "just now")
				}
				return nil
			})
			m := manifest("m", file("a", "/etc/a", "2"))
			m.Metadata.Generation = 2
			offer(t, h, intent(2, m))
			later(500 * time.Millisecond)
			if tt.before != "" {
				got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
				if got.Result != interpret.ResultFailed || got.Actions[0].Code != interpret.Code(topology.CodeChanged) {
					t.Errorf("%s: %+v", name, got)
				}
			}
			if !put || found != "just now" {
				t.Errorf("%s: written: %v, over %q", name, put, found)
			}
			if !tt.owned { // ours is looked at again, and corrected, as soon as the event of the change comes
				r.content("/etc/a", "just now")
			}
			if e, owned := r.store.Owner("file:/etc/a"); owned != tt.owned || tt.owned && e.Provenance != store.Created {
				t.Errorf("%s: in the books: %v %+v", name, owned, e)
			}
			r.dev.Before(nil)
			later(time.Minute)
			r.want(f.last(), tt.then)
		})
	}
}

// What could not be made is not owned: what somebody else puts there meanwhile is foreign.
func TestFailedCreationOwnsNothing(t *testing.T) {
	r := newRig(t)
	r.dev.Fail(memory.OpWriteFile, "file:/etc/a", topology.Faultf(topology.CodeNoSpace, "no space left"))
	in := intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")))
	r.apply(in)
	r.dev.Heal()
	r.dev.Put("/etc/a", "theirs")
	r.restart()
	r.want(r.apply(in), "m/a=conflict/foreign m/b=unchanged")
	r.content("/etc/a", "theirs")
}
