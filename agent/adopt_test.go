package agent_test

import (
	"slices"
	"strings"
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

// A volume that somebody else made is used, and never taken over: what a score says of a volume is only that it is there, our
// mark cannot be put on it, and whoever owned it could let its data be destroyed. Nothing owns it after an adoption that was asked
// for, it does not go with a manifest that named it, and no plan lets a person sign for that. Of networks the same is true.
func TestVolumesAreNotAdopted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.MakeVolumeByHand("cache")
		r.dev.MakeContainerNetworkByHand("lan")
		volume := score.Score{ID: "v", Spec: score.NamedVolume{Name: "cache"}}
		network := score.Score{ID: "n", Spec: score.ContainerNetwork{Name: "lan"}}
		offer(t, h, intent(1, manifest("m", volume, network, file("f", "/etc/f", "1"))))
		later(time.Second)
		for _, id := range []score.ID{"v", "n"} {
			got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{id}})
			if got.Result != interpret.ResultRefused || len(got.Actions) != 1 || got.Actions[0].Code != authority.CodeForeign || !strings.Contains(got.Actions[0].Message, "leave it out of the scores") {
				t.Errorf("%s: %+v", id, got)
			}
		}
		if e := r.store.ByManifest("m"); len(e) != 1 || e[0].Resource != "file:/etc/f" {
			t.Errorf("owned: %+v", e)
		}
		rec := r.dev.Record()
		volume.Decommission = true
		offer(t, h, intent(2, manifest("m", volume, file("f", "/etc/f", "1"))))
		later(time.Second)
		if got := decisions(f.plan(t, h)); got != "none m/v   refuse" {
			t.Errorf("the plan lets a person sign for %s", got)
		}
		offer(t, h, intent(3, manifest("m", file("f", "/etc/f", "1"))))
		later(time.Hour)
		if st, err := r.dev.Volumes().Volume(t.Context(), "cache"); err != nil || !st.Present || len(rec.Mutations()) > 0 {
			t.Errorf("the volume is %+v, %v; called %v", st, err, rec.Mutations())
		}
		r.want(f.last(), "m/f=unchanged")
	})
}
