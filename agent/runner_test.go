package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A manifest of all kinds converges, and a second run changes nothing (H08, H09, cases 47, 161).
func TestConvergeThenUnchanged(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("kiosk", file("conf", "/etc/kiosk.conf", "a=1\n"), service("kiosk", "kiosk.service", "conf"),
		container("web", "web"), score.Score{ID: "name", Spec: score.Hostname{Name: "kiosk-7"}}))
	st := r.apply(in)
	r.want(st, "kiosk/conf=changed kiosk/kiosk=changed kiosk/name=changed kiosk/web=changed")
	if st.State != interpret.StateConverged {
		t.Errorf("state is %s", st.State)
	}
	for range 10 {
		rec := r.dev.Record()
		written := r.disk.Stats()
		r.want(r.apply(in), "kiosk/conf=unchanged kiosk/kiosk=unchanged kiosk/name=unchanged kiosk/web=unchanged")
		if m := rec.Mutations(); len(m) > 0 {
			t.Fatalf("a run over a converged device called %v", m)
		}
		if r.disk.Stats() != written {
			t.Fatalf("a run over a converged device wrote books: %+v, before %+v", r.disk.Stats(), written)
		}
	}
}

// One score that fails does not stop the others, except those that need it (H69, H13).
func TestOneFailureAmongMany(t *testing.T) {
	r := newRig(t)
	r.dev.Fail(memory.OpWriteFile, "file:/etc/b", topology.Faultf(topology.CodeNoSpace, "no space left"))
	st := r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), file("c", "/etc/c", "1", "b"), file("d", "/etc/d", "1", "a"))))
	r.want(st, "m/a=changed m/b=failed/no_space m/c=waiting/dependency m/d=changed")
	if st.State != interpret.StatePartial {
		t.Errorf("state is %s, want partial", st.State)
	}
}

// Only what changed is played again (H70).
func TestGenerationTouchesOnlyWhatChanged(t *testing.T) {
	r := newRig(t)
	m := manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))
	m.Metadata.Generation = 7
	r.apply(intent(7, m))
	m = manifest("m", file("a", "/etc/a", "2"), file("b", "/etc/b", "1"))
	m.Metadata.Generation = 8
	st := r.apply(intent(8, m))
	r.want(st, "m/a=changed m/b=unchanged")
	a, b := st.Manifests[0].Scores[0], st.Manifests[0].Scores[1]
	if a.LastChangedGeneration != 8 || b.LastChangedGeneration != 7 || b.ObservedGeneration != 8 || a.Cause != interpret.CauseIntent {
		t.Errorf("got a %d %s, b %d observed %d", a.LastChangedGeneration, a.Cause, b.LastChangedGeneration, b.ObservedGeneration)
	}
}

// Drift is corrected, and named as drift (H56 under converge).
func TestDriftIsCorrected(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("m", file("a", "/etc/a", "wish")))
	r.apply(in)
	r.dev.Put("/etc/a", "by hand")
	st := r.apply(in)
	r.want(st, "m/a=changed")
	if s := st.Manifests[0].Scores[0]; s.Cause != interpret.CauseDrift || s.Authority != "standing:converge" || s.Changes[0].Field != "content" {
		t.Errorf("got cause %s, authority %s, changes %v", s.Cause, s.Authority, s.Changes)
	}
	if c, _ := r.dev.Read("/etc/a"); c != "wish" {
		t.Errorf("content is %q", c)
	}
}

// A change of a score restarts what asks for it, once, and also when the agent is
// killed between the change and the restart (G15).
func TestRestartOn(t *testing.T) {
	starts := func(r *rig) string {
		st, err := r.dev.Services().Service(t.Context(), "app.service")
		if err != nil {
			t.Fatal(err)
		}
		return st.Invocation
	}
	conf := func(content string) agent.Intent {
		return intent(1, manifest("m", file("conf", "/etc/app.conf", content), service("app", "app.service", "conf")))
	}
	t.Run("once per change", func(t *testing.T) {
		r := newRig(t)
		r.apply(conf("1"))
		first := starts(r)
		r.want(r.apply(conf("1")), "m/app=unchanged m/conf=unchanged")
		if starts(r) != first {
			t.Fatal("restarted without a change")
		}
		st := r.apply(conf("2"))
		r.want(st, "m/app=changed m/conf=changed")
		if s := st.Manifests[0].Scores[0]; s.Cause != interpret.CauseDependency {
			t.Errorf("cause is %s", s.Cause)
		}
		second := starts(r)
		if second == first {
			t.Fatal("not restarted after a change")
		}
		r.want(r.apply(conf("2")), "m/app=unchanged m/conf=unchanged")
		if starts(r) != second {
			t.Fatal("restarted twice for one change")
		}
	})
	t.Run("killed before the restart", func(t *testing.T) {
		r := newRig(t)
		r.apply(conf("1"))
		first := starts(r)
		r.dev.FailOnce(memory.OpRestart, "unit:app.service", topology.Faultf(topology.CodeCanceled, "killed"))
		r.want(r.apply(conf("2")), "m/app=failed/canceled m/conf=changed")
		r.restart()
		r.want(r.apply(conf("2")), "m/app=changed m/conf=unchanged")
		if starts(r) == first {
			t.Error("the restart was lost")
		}
	})
	t.Run("its own definition, killed before the restart", func(t *testing.T) {
		for _, crash := range []bool{true, false} {
			r := newRig(t)
			one := intent(1, manifest("m", service("app", "app.service")))
			r.apply(one)
			first := starts(r)
			s := service("app", "app.service")
			spec := s.Spec.(score.Service)
			spec.UnitFile += "# second\n"
			s.Spec = spec
			two := intent(2, manifest("m", s))
			if crash { // the process ends between the two
				r.dev.Before(func(_ context.Context, c memory.Call) error {
					if c.Op == memory.OpRestart {
						r.disk = r.disk.Crash(store.LoseNothing)
						return errKilled
					}
					return nil
				})
				_, _ = r.runner.Apply(t.Context(), two)
				r.dev.Heal()
				r.start()
			} else { // the restart fails, and the agent lives on
				r.dev.FailOnce(memory.OpRestart, "unit:app.service", topology.Faultf(topology.CodeTimeout, "no answer"))
				r.want(r.apply(two), "m/app=failed/timeout")
				r.restart()
			}
			r.want(r.apply(two), "m/app=changed")
			if starts(r) == first {
				t.Errorf("crash %v: it still runs by its old definition", crash)
			}
			r.want(r.apply(two), "m/app=unchanged")
		}
	})
	t.Run("a service that ran before", func(t *testing.T) {
		r := newRig(t)
		r.dev.Install("app.service", "[Service]\nExecStart=/usr/bin/app\n")
		r.dev.StartUnit("app.service")
		first := starts(r)
		in := intent(1, manifest("m", file("conf", "/etc/app.conf", "1"),
			score.Score{ID: "app", Spec: score.Service{Unit: "app.service", State: score.Running, RestartOn: []score.ID{"conf"}}}))
		r.want(r.apply(in), "m/app=changed m/conf=changed")
		if starts(r) == first {
			t.Error("it still runs with the configuration of before")
		}
		r.want(r.apply(in), "m/app=unchanged m/conf=unchanged")
	})
}

// Two manifests that claim one thing: one of them wins, always the same, and nothing flaps (H53, cases 128).
func TestTwoManifestsClaimOnePath(t *testing.T) {
	r := newRig(t)
	both := intent(2, manifest("b", file("x", "/etc/motd", "b")), manifest("a", file("y", "/etc/motd", "a"), file("z", "/etc/z", "a")))
	st := r.apply(both)
	r.want(st, "a/y=changed a/z=changed b/x=conflict/owned_by")
	if msg := st.Manifests[1].Scores[0].Message; !strings.Contains(msg, `"a"`) || !strings.Contains(msg, "/etc/motd") {
		t.Errorf("message is %q", msg)
	}
	r2 := newRig(t)
	r2.apply(intent(1, manifest("b", file("x", "/etc/motd", "b"))))
	r2.want(r2.apply(both), "a/y=conflict/owned_by a/z=changed b/x=unchanged")
	if c, _ := r2.dev.Read("/etc/motd"); c != "b" {
		t.Errorf("the owner lost: %q", c)
	}
}

// A foreign file is overwritten only with a durable copy, a foreign container never (cases 83, K14).
func TestForeign(t *testing.T) {
	r := newRig(t)
	r.dev.Put("/etc/motd", "precious")
	r.dev.RunByHand("web", "localhost/other:1")
	st := r.apply(intent(1, manifest("m", file("motd", "/etc/motd", "ours"), container("web", "web"))))
	r.want(st, "m/motd=changed m/web=conflict/foreign")
	name := st.Manifests[0].Scores[0].Backup
	_, content, err := r.store.ReadBackup(name)
	if err != nil || string(content) != "precious" {
		t.Errorf("backup %q holds %q, %v", name, content, err)
	}
}

// What a manifest no longer names is collected, last made first; what others made stays (H55).
func TestCollect(t *testing.T) {
	r := newRig(t)
	r.dev.Put("/etc/app/foreign", "x")
	r.apply(intent(1, manifest("m", file("a", "/etc/app/a", "1"), file("b", "/etc/app/b", "1"), service("s", "s.service"))))
	st := r.apply(intent(2, manifest("m", file("a", "/etc/app/a", "1"))))
	r.want(st, "m/a=unchanged")
	if len(st.Orphans) > 0 {
		t.Errorf("left: %+v", st.Orphans)
	}
	for path, want := range map[string]bool{"/etc/app/a": true, "/etc/app/b": false, "/etc/app/foreign": true, "/etc/systemd/system/s.service": false} {
		if _, ok := r.dev.Read(path); ok != want {
			t.Errorf("%s is there: %v, want %v", path, ok, want)
		}
	}
	if left := r.store.Entries(); len(left) != 1 {
		t.Errorf("the ledger still holds %+v", left)
	}
}

// A renamed score, or one that moves to another manifest, is neither removed nor made again (cases 126).
func TestRenameMovesOwnership(t *testing.T) {
	r := newRig(t)
	r.apply(intent(1, manifest("app", file("conf", "/etc/c", "1"), container("web", "web"))))
	rec := r.dev.Record()
	st := r.apply(intent(2, manifest("web", file("config", "/etc/c", "1"), container("www", "web"))))
	r.want(st, "web/config=unchanged web/www=unchanged")
	if m := rec.Mutations(); len(m) > 0 || len(st.Orphans) > 0 {
		t.Errorf("renaming called %v and left %v", m, st.Orphans)
	}
	for _, e := range r.store.Entries() {
		if e.Manifest != "web" {
			t.Errorf("%s still belongs to %s", e.Resource, e.Manifest)
		}
	}
}

// Absence never destroys by accident: an incomplete assignment, a pass with a failure, lost
// books, an adopted thing and too many removals at once all remove nothing (S13, S14, S23, cases 123, 124).
func TestNothingIsCollected(t *testing.T) {
	many := func(n int) []score.Score {
		var out []score.Score
		for i := range n {
			id := score.ID("f" + string(rune('a'+i/26)) + string(rune('a'+i%26)))
			out = append(out, file(id, "/srv/"+string(id), "x"))
		}
		return out
	}
	tests := []struct {
		name string
		do   func(r *rig) interpret.DeviceStatus
		code interpret.Code
	}{
		{"incomplete", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(3)...)))
			in := intent(2, manifest("m", many(1)...))
			in.Assignment.Spec.Complete = false
			return r.apply(in)
		}, interpret.CodeNotOwned},
		{"another score fails", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(3)...)))
			r.dev.Fail(memory.OpFile, "file:/etc/x", topology.Faultf(topology.CodeIO, "io"))
			return r.apply(intent(2, manifest("m", file("x", "/etc/x", "x"))))
		}, interpret.CodeNotOwned},
		{"books were lost", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(3)...)))
			r.runner.Uncertain = true
			return r.apply(intent(2, manifest("m", many(1)...)))
		}, interpret.CodeNotOwned},
		{"brake", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(40)...)))
			return r.apply(intent(2, manifest("m", many(1)...)))
		}, agent.CodeBrake},
		{"no score at all", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(3)...)))
			return r.apply(intent(2))
		}, agent.CodeBrake},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			before := 0
			st := tt.do(r)
			if len(st.Orphans) == 0 {
				t.Fatal("nothing is reported as orphaned")
			}
			for _, o := range st.Orphans {
				before++
				if o.Code != tt.code {
					t.Errorf("%s: code %s, want %s", o.Resource, o.Code, tt.code)
				}
				if _, ok := r.dev.Read(strings.TrimPrefix(string(o.Resource), "file:")); !ok {
					t.Errorf("%s is gone", o.Resource)
				}
			}
		})
	}
}

// A plan makes no mutating call and names every field (H54).
func TestPlanChangesNothing(t *testing.T) {
	r := newRig(t)
	rec := r.dev.Record()
	st, err := r.runner.Plan(t.Context(), intent(1, manifest("m", file("a", "/etc/a", "1"), service("s", "s.service", "a"))))
	if err != nil {
		t.Fatal(err)
	}
	r.want(st, "m/a=drifted m/s=drifted")
	if m := rec.Mutations(); len(m) > 0 {
		t.Errorf("planning called %v", m)
	}
	if len(r.store.Entries()) > 0 {
		t.Error("planning wrote books")
	}
	if c := st.Manifests[0].Scores[0].Changes; len(c) != 1 || c[0].Effect != interpret.Create {
		t.Errorf("changes of a: %+v", c)
	}
}

// Unreadable and unsupported scores are named, the rest goes on (H37, S30, X29, cases 22).
func TestUnsupported(t *testing.T) {
	r := newRig(t)
	r.dev.Unavailable(memory.Containers, "podman is missing")
	st := r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"), container("web", "web"),
		score.Score{ID: "new", Spec: score.Opaque{Of: "hologram", Raw: []byte(`{}`)}},
		score.Score{ID: "later", Spec: score.Opaque{Of: "file", Raw: []byte(`{"acl":1}`), Why: `unknown field "acl"`, Path: "/acl"}})))
	r.want(st, "m/a=changed m/later=unsupported/unreadable_spec m/new=unsupported/unknown_kind m/web=unsupported/unavailable")
	if st.State != interpret.StateUnsupported {
		t.Errorf("state is %s", st.State)
	}
}

// The order of scores in a document means nothing (H26).
func TestOrderMeansNothing(t *testing.T) {
	scores := []score.Score{file("a", "/etc/a", "1", "b"), file("b", "/etc/b", "1", "c"), file("c", "/etc/c", "1"), service("s", "s.service", "a")}
	var want string
	for i, perm := range permutations(scores) {
		r := newRig(t)
		r.runner.Parallel = 1
		rec := r.dev.Record()
		st := r.apply(intent(1, manifest("m", perm...)))
		got := outcomes(st)
		for _, c := range rec.Mutations() {
			got += string(c.Op) + " " + string(c.Resource) + "\n"
		}
		if i == 0 {
			want = got
		} else if got != want {
			t.Fatalf("permutation %d:\n%s\nwant\n%s", i, got, want)
		}
	}
}

func permutations(s []score.Score) [][]score.Score {
	if len(s) <= 1 {
		return [][]score.Score{append([]score.Score(nil), s...)}
	}
	var out [][]score.Score
	for i := range s {
		rest := append(append([]score.Score(nil), s[:i]...), s[i+1:]...)
		for _, p := range permutations(rest) {
			out = append(out, append([]score.Score{s[i]}, p...))
		}
	}
	return out
}

// With the books gone, what carries our mark is ours again, and nothing is made twice (cases 85, 122).
func TestLostBooksAreMadeAgain(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("m", file("a", "/etc/a", "1"), container("web", "web"), service("s", "s.service")))
	r.apply(in)
	r.loseBooks()
	rec := r.dev.Record()
	r.want(r.apply(in), "m/a=unchanged m/s=unchanged m/web=unchanged")
	if m := rec.Mutations(); len(m) > 0 {
		t.Errorf("called %v", m)
	}
	if n := len(r.store.ByManifest("m")); n < 3 {
		t.Errorf("the ledger holds %d entries", n)
	}
}

// A broken unit that hit its start limit is left alone until the wish changes (cases 54).
func TestStartLimitWaitsForANewWish(t *testing.T) {
	r := newRig(t)
	r.dev.Fail(memory.OpStart, "unit:s.service", topology.Faultf(topology.CodeStartLimit, "start limit hit"))
	in := intent(1, manifest("m", service("s", "s.service")))
	r.want(r.apply(in), "m/s=failed/start_limit")
	rec := r.dev.Record()
	r.want(r.apply(in), "m/s=failed/start_limit") // held back by its pace
	if m := rec.Mutations(); len(m) > 0 {
		t.Errorf("tried again at once: %v", m)
	}
	r.dev.Heal()
	s := service("s", "s.service")
	spec := s.Spec.(score.Service)
	spec.UnitFile += "# mended\n"
	s.Spec = spec
	r.want(r.apply(intent(2, manifest("m", s))), "m/s=changed")
}

// Ports overlap without being equal: all addresses and one of them (cases 73).
func TestTwoManifestsClaimOnePort(t *testing.T) {
	web := func(name, ip string) score.Score {
		return score.Score{ID: score.ID(name), Spec: score.Container{Name: name, Image: "localhost/app:1", Ports: []score.Port{{IP: ip, Host: 80, Container: 80}}}}
	}
	r := newRig(t)
	r.want(r.apply(intent(1, manifest("a", web("one", "")), manifest("b", web("two", "127.0.0.1")))), "a/one=changed b/two=conflict/owned_by")
	r = newRig(t)
	r.want(r.apply(intent(1, manifest("a", web("one", "127.0.0.2")), manifest("b", web("two", "127.0.0.1")))), "a/one=changed b/two=changed")
}
