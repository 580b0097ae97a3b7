package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

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
		}, agent.CodeLast},
		{"books were lost", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(3)...)))
			r.runner.Uncertain = true
			return r.apply(intent(2, manifest("m", many(1)...)))
		}, interpret.CodeNotOwned},
		{"brake", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(40)...)))
			return r.apply(intent(2, manifest("m", many(1)...)))
		}, interpret.CodeBrake},
		{"no score at all", func(r *rig) interpret.DeviceStatus {
			r.apply(intent(1, manifest("m", many(3)...)))
			return r.apply(intent(2))
		}, interpret.CodeBrake},
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

// Guarded is what counts without a policy: it makes things true and corrects drift, and removes nothing. What it leaves is
// removed by a plan, or by an approval of just that (S04, S15, S37, S47, S49, X80).
func TestGuardedReportsWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, preset("", manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1")))))
		later(time.Second)
		r.dev.Put("/etc/a", "drift")
		later(time.Minute)
		r.content("/etc/a", "1")
		offer(t, h, intent(2, preset("", manifest("m", file("a", "/etc/a", "1")))))
		later(time.Minute)
		st := f.last()
		if len(st.Orphans) != 1 || st.Orphans[0].Code != interpret.CodeOrphaned {
			t.Fatalf("left: %+v", st.Orphans)
		}
		r.content("/etc/b", "1")

		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		if got := decisions(*plan); got != "remove m/b absent remove report" {
			t.Fatalf("plan: %s", got)
		}
		good := interpret.Approval{Manifest: "m", Score: "b", Action: interpret.ActionRemove, Effect: plan.Actions[0].Effect, Resources: plan.Actions[0].Resources, SpecDigest: plan.Actions[0].SpecDigest}
		for code, change := range map[interpret.Code]func(*interpret.Approval){
			"approval_action":       func(a *interpret.Approval) { a.Action = interpret.ActionChange },
			"approval_resource":     func(a *interpret.Approval) { a.Resources = []score.Resource{"file:/etc/a"} },
			"approval_parameters":   func(a *interpret.Approval) { a.SpecDigest = "of another" },
			agent.CodeWrongApproval: func(a *interpret.Approval) { a.Score = "a" },
		} {
			bad := good
			change(&bad)
			ref := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: []interpret.Approval{bad}})
			if ref.Result != interpret.ResultRefused || ref.Code != code {
				t.Errorf("%s: %+v", code, ref)
			}
		}
		r.content("/etc/b", "1")
		done := f.ask(t, h, interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID, Approvals: []interpret.Approval{good}})
		if _, there := r.dev.Read("/etc/b"); there || done.Result != interpret.ResultDone {
			t.Errorf("approved, and there is %v: %+v", there, done)
		}
		if a := done.Actions[0]; a.Kind != "file" || a.Cause != interpret.CauseAbsent || a.Authority != "signed:"+done.ID {
			t.Errorf("the receipt says %+v", a)
		}
	})
}
