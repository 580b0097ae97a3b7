package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// First contact with what is there: it stays, until it is adopted; then it is corrected as anything else, and given up again
// it is foreign, although it carries our mark (K14, X92).
func TestAdoptAndRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Put("/etc/motd", "theirs")
		in := intent(1, manifest("m", file("motd", "/etc/motd", "ours")))
		offer(t, h, in)
		later(time.Hour)
		r.want(f.last(), "m/motd=conflict/foreign")
		r.content("/etc/motd", "theirs")

		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m"})
		if got.Result != interpret.ResultDone || len(got.Actions) != 1 || got.Actions[0].Backup == "" {
			t.Fatalf("%+v", got)
		}
		later(time.Second)
		r.content("/etc/motd", "ours")
		r.want(f.last(), "m/motd=unchanged")

		back := f.ask(t, h, interpret.Operation{Verb: interpret.VerbRestore, Backup: got.Actions[0].Backup})
		if back.Result != interpret.ResultDone {
			t.Fatalf("%+v", back)
		}
		if a := back.Actions[0]; a.Manifest != "m" || a.Score != "motd" || a.Kind != "file" || !slices.Equal(a.Resources, []score.Resource{"file:/etc/motd"}) {
			t.Errorf("the receipt says %+v", a)
		}
		later(time.Hour)
		r.content("/etc/motd", "ours") // it is drift, and the policy corrects it

		f.ask(t, h, interpret.Operation{Verb: interpret.VerbRelease, Manifest: "m"})
		r.dev.Put("/etc/motd", "theirs again")
		later(time.Hour)
		r.want(f.last(), "m/motd=conflict/foreign")
		r.content("/etc/motd", "theirs again")
	})
}

// Nothing is adopted that is not there, or is another's; what cannot be taken over is told. What differs afterwards is
// corrected as the policy says (X92, G31).
func TestAdoptOnlyWhatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		adopt := func(ids ...score.ID) interpret.Receipt {
			return f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m", Scores: ids})
		}
		r.dev.Put("/etc/theirs", "theirs")
		r.dev.Put("/etc/same", "1")
		r.dev.Mkdir("/etc/dir")
		r.dev.RunByHand("web", "localhost/app:1")
		pol := score.Policy{Preset: score.Converge, Window: &score.Window{Cron: "0 2 * * *", Duration: score.Duration(time.Minute)}}
		offer(t, h, intent(1, manifest("l", file("mine", "/etc/mine", "l")), under(pol, manifest("m", file("theirs", "/etc/theirs", "ours"), file("same", "/etc/same", "1"),
			file("dir", "/etc/dir", "1"), file("none", "/etc/none", "1"), file("mine", "/etc/mine", "m"), container("web", "web")))))
		later(time.Second)
		for id, code := range map[score.ID]interpret.Code{"none": agent.CodeNothingToDo, "dir": "not_regular", "mine": interpret.CodeOwnedBy, "web": authority.CodeForeign} {
			got := adopt(id)
			if got.Result != interpret.ResultRefused || len(got.Actions) != 1 || got.Actions[0].Code != code {
				t.Errorf("%s: %+v", id, got)
			}
		}
		if e, owned := r.store.Owner("file:/etc/none"); owned {
			t.Errorf("%+v", e)
		}
		if got := adopt("theirs", "none"); got.Result != interpret.ResultFailed {
			t.Errorf("%+v", got)
		}
		if got := adopt(); got.Result != interpret.ResultDone {
			t.Errorf("%+v", got)
		}
		for res, backup := range map[string]bool{"file:/etc/theirs": true, "file:/etc/same": true} {
			if e, owned := r.store.Owner(res); !owned || e.Provenance != "adopted" || (e.Backup != "") != backup {
				t.Errorf("%s: %+v", res, e)
			}
		}
		r.content("/etc/theirs", "theirs")
	})
}

// What is given up is foreign, also if it carries the mark of the manifest that it came from (X97).
func TestReleaseOfWhatMoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("old", file("a", "/etc/a", "1"))))
		later(time.Second)
		m := manifest("new", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))
		offer(t, h, intent(2, m)) // it carries the mark of old still
		later(time.Second)
		if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbRelease, Manifest: "new", Scores: []score.ID{"a"}}); got.Result != interpret.ResultDone || len(got.Actions) != 1 {
			t.Fatalf("%+v", got)
		}
		r.dev.Put("/etc/a", "theirs")
		r.dev.SetMark("/etc/a", "old/a")
		r.dev.Put("/etc/b", "drift")
		later(time.Minute)
		r.content("/etc/a", "theirs")
		r.content("/etc/b", "1")
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: f.plan(t, h).ID})
		r.content("/etc/a", "1")
		r.dev.Put("/etc/a", "drift")
		later(time.Minute)
		r.content("/etc/a", "1") // it is owned again
	})
}

// What was there before is not removed, only reported; once somebody else has removed it, nobody speaks of it any more.
func TestAdoptedThingsStay(t *testing.T) {
	r := newRig(t)
	r.dev.Put("/etc/motd", "precious")
	r.confirm(intent(1, manifest("m", file("motd", "/etc/motd", "ours"), file("b", "/etc/b", "1"))))
	two := intent(2, manifest("m", file("b", "/etc/b", "1")))
	for range 2 {
		st := r.apply(two)
		if c, ok := r.dev.Read("/etc/motd"); !ok || c != "ours" || len(st.Orphans) != 1 || st.Orphans[0].Code != interpret.CodeNotOwned {
			t.Fatalf("content %q, %v, left %+v", c, ok, st.Orphans)
		}
	}
	r.dev.Delete("/etc/motd")
	if st := r.apply(two); len(st.Orphans) > 0 || len(r.store.Entries()) != 1 {
		t.Errorf("left %+v, books %v", st.Orphans, r.store.Entries())
	}
}
