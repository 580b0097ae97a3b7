package agent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// spoilt does one thing to the device that nobody asked for.
func (r *rig) spoilt(rnd *rand.Rand) {
	switch rnd.IntN(7) {
	case 0, 1:
		r.dev.Put(fmt.Sprintf("/etc/%c", 'a'+rnd.IntN(3)), fmt.Sprint("by hand ", rnd.Int()))
	case 2:
		if path := fmt.Sprintf("/etc/%c", 'a'+rnd.IntN(3)); len(r.dev.List(path)) > 0 {
			r.dev.Delete(path)
		}
	case 3:
		r.dev.StopUnit("app.service")
	case 4:
		r.dev.StartUnit("app.service")
	case 5:
		r.dev.StopUnit("web.service")
	case 6:
		r.dev.FailOnce([]memory.Op{memory.OpFile, memory.OpService, memory.OpContainer, memory.OpImage}[rnd.IntN(4)], "", topology.Faultf(topology.CodeIO, "io"))
	}
}

// Under reviewed nothing is done by itself: not for 10,000 passes between which things drift, go, come back and fail, new
// generations are published that change, drop and decommission scores, and the agent starts again (G10, G27, G42).
func TestTenThousandPassesWithoutConsent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 11))
	r := newRig(t)
	wish := func(g uint64) (in []score.Score) {
		gone := rnd.IntN(6)
		for i, s := range []score.Score{file("a", "/etc/a", fmt.Sprint(g)), file("b", "/etc/b", fmt.Sprint(g), "a"), file("c", "/etc/c", "c"),
			service("app", "app.service", "c"), container("web", "web")} {
			if i != gone {
				s.Decommission = g > 1 && s.ID == "c" && rnd.IntN(3) == 0
				in = append(in, s)
			}
		}
		return in
	}
	in := intent(1, preset(score.Reviewed, manifest("m", wish(1)...)))
	if st := r.confirm(in); !st.ConvergedAt(1) {
		t.Fatalf("confirmed: %s", outcomes(st))
	}
	rec := r.dev.Record()
	pending, drifted := 0, 0
	for n := range 10_000 {
		switch rnd.IntN(50) {
		case 0:
			g := in.Generation + 1
			m := preset(score.Reviewed, manifest("m", wish(g)...))
			m.Metadata.Generation = g
			in = intent(g, m)
		case 1:
			r.restart()
		default:
			r.spoilt(rnd)
		}
		st := r.apply(in)
		for _, s := range st.Manifests[0].Scores {
			switch s.Outcome {
			case interpret.Pending:
				pending++
			case interpret.Drifted:
				drifted++
			case interpret.Changed:
				t.Fatalf("pass %d: %s", n, outcomes(st))
			}
		}
		if m := rec.Mutations(); len(m) > 0 {
			t.Fatalf("pass %d called %v", n, m)
		}
		rec.Reset()
	}
	if pending < 1000 || drifted < 1000 {
		t.Errorf("%d times pending, %d times drifted: nothing was there to be done", pending, drifted)
	}
}

// Where drift is to be reported, a thousand drifts are reported, and nothing is done (G11).
func TestAThousandDriftsAreReported(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 9))
	r := newRig(t)
	in := intent(1, under(score.Policy{Preset: score.Converge, OnDrift: score.DriftReport},
		manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), file("c", "/etc/c", "1"))))
	r.apply(in)
	rec := r.dev.Record()
	for n := range 1000 {
		path := fmt.Sprintf("/etc/%c", 'a'+n%3)
		if rnd.IntN(4) == 0 && len(r.dev.List(path)) > 0 {
			r.dev.Delete(path)
		} else {
			r.dev.Put(path, fmt.Sprint("by hand ", n))
		}
		st := r.apply(in)
		if s := st.Manifests[0].Scores[n%3]; s.Outcome != interpret.Drifted || s.Code != interpret.CodePolicy || st.State != interpret.StateDrifted {
			t.Fatalf("drift %d: %s", n, outcomes(st))
		}
	}
	if m := rec.Mutations(); len(m) > 0 {
		t.Errorf("called %v", m)
	}
}

// Drift is told as what it is: what is there, what is wanted, since when, and that the wish is the same (H56).
func TestDriftIsTold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		m := under(score.Policy{Preset: score.Converge, OnDrift: score.DriftReport}, manifest("m", file("a", "/etc/a", "1")))
		m.Metadata.Generation = 3
		offer(t, h, intent(5, m))
		later(time.Hour)
		good, _ := scoreOf(f.last(), "m", "a")
		r.dev.Put("/etc/a", "by hand")
		at := time.Now()
		later(time.Second)
		st := f.last()
		s, _ := scoreOf(st, "m", "a")
		if s.Outcome != interpret.Drifted || len(s.Changes) != 1 || s.Changes[0].Field != "content" || s.Changes[0].Have == s.Changes[0].Want ||
			len(s.Changes[0].Have) != 64 || len(s.Changes[0].Want) != 64 || !strings.Contains(string(s.Observed), s.Changes[0].Have) {
			t.Errorf("got %+v", s)
		}
		if s.ObservedGeneration != 3 || s.LastChangedGeneration != 3 || s.SpecDigest != good.SpecDigest || s.Since.Sub(at).Abs() > time.Second || st.State != interpret.StateDrifted {
			t.Errorf("since %s, which is %s off; %+v", s.Since, s.Since.Sub(at), s)
		}
		for range 20 { // a later drift on top of it is no new beginning
			later(10 * time.Minute)
			r.dev.Put("/etc/a", "by hand, later")
		}
		later(time.Minute)
		if now, _ := scoreOf(f.last(), "m", "a"); !now.Since.Equal(s.Since) || now.Outcome != interpret.Drifted {
			t.Errorf("since %s, was %s", now.Since, s.Since)
		}
	})
}

// A decommission beside an ordinary change: the plan has just one action for it, the change is made and the decommission
// waits, which is no failure, for a signature; with it the thing goes, once (S13, S15, S17, S18, S37, S38, S47, S49).
func TestDecommissionWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log, lines := recorded()
		a, f, h, _ := r.running(withLog(log))
		m := func(g uint64, content string, end bool) score.Manifest {
			b := file("b", "/etc/b", "1")
			b.Decommission = end
			v := preset(score.Guarded, manifest("m", file("a", "/etc/a", content), b))
			v.Metadata.Generation = g
			return v
		}
		offer(t, h, intent(1, m(1, "1", false)))
		later(time.Minute)
		lines.Reset()
		offer(t, h, intent(2, m(2, "2", true)))
		later(time.Minute)
		st := f.last()
		r.want(st, "m/a=unchanged m/b=pending/pending_signature") // it was changed a minute ago
		r.content("/etc/a", "2")
		r.content("/etc/b", "1")
		if p := a.Pulse(); st.State != interpret.StatePending || p.Pending != 1 {
			t.Errorf("state %s, pulse %+v", st.State, p)
		}
		if s := lines.String(); strings.Contains(s, "level=error") || strings.Contains(s, "level=warn") || !strings.Contains(s, "outcome=pending") {
			t.Errorf("logged:\n%s", s)
		}
		for len(f.receipts) > 0 {
			if rc := <-f.receipts; rc.Result != interpret.ResultDone {
				t.Errorf("what waits counts as failed: %+v", rc)
			}
		}

		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		if got := decisions(*plan); got != "decommission m/b explicit remove pending" {
			t.Fatalf("plan: %s", got)
		}
		// Who confirms the plan has not signed for it.
		f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
		r.content("/etc/b", "1")
		x := plan.Actions[0]
		approve := interpret.Operation{ID: "one", Verb: interpret.VerbApprove, Plan: plan.ID,
			Approvals: []interpret.Approval{{Manifest: "m", Score: "b", Action: x.Action, Resources: x.Resources, SpecDigest: x.SpecDigest}}}
		done := f.ask(t, h, approve)
		if _, there := r.dev.Read("/etc/b"); there || done.Result != interpret.ResultDone {
			t.Fatalf("approved, and there is %v: %+v", there, done)
		}
		if st := f.last(); !st.ConvergedAt(2) || a.Pulse().Pending != 0 {
			t.Errorf("after it: %s, state %s, pulse %+v, %+v", outcomes(st), st.State, a.Pulse(), st.Manifests[0].Scores[1].Conditions)
		}
		r.dev.Put("/etc/b", "somebody else's")
		f.ask(t, h, approve)
		later(time.Hour)
		r.content("/etc/b", "somebody else's")
	})
}

// What a device does not accept it refuses, whoever signed for it, and keeps the receipt (G31).
func TestRefusedVerbsAndPaths(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.runner.Ceiling = authority.Ceiling{Adopt: []string{"/srv"}, Verbs: []interpret.Verb{interpret.VerbPlan, interpret.VerbAdopt}}
		_, f, h, _ := r.running()
		r.dev.Put("/etc/ssh/sshd_config", "theirs")
		r.dev.Put("/srv/x", "theirs")
		offer(t, h, intent(1, manifest("m", file("ssh", "/etc/ssh/sshd_config", "ours"), file("x", "/srv/x", "ours"))))
		later(time.Second)
		plan := f.ask(t, h, interpret.Operation{Verb: interpret.VerbPlan}).Plan
		for _, tt := range []struct {
			op   interpret.Operation
			code interpret.Code
		}{
			{interpret.Operation{ID: "ssh", Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"ssh"}}, authority.CodePath},
			{interpret.Operation{ID: "all", Verb: interpret.VerbAdopt, Manifest: "m"}, authority.CodePath},
			{interpret.Operation{ID: "install", Verb: interpret.VerbInstall, Plan: plan.ID}, authority.CodeVerb},
		} {
			got := f.ask(t, h, tt.op)
			if got.Result != interpret.ResultRefused || got.Code != tt.code {
				t.Errorf("%s: %+v", tt.op.ID, got)
			}
			if body, kept, err := r.store.Receipt(tt.op.ID); err != nil || !kept || !strings.Contains(string(body), string(tt.code)) {
				t.Errorf("%s: kept %v, %s, %v", tt.op.ID, kept, body, err)
			}
		}
		r.content("/etc/ssh/sshd_config", "theirs")
		r.content("/srv/x", "theirs")
		if got := f.ask(t, h, interpret.Operation{ID: "x", Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"x"}}); got.Result != interpret.ResultDone {
			t.Errorf("what is allowed: %+v", got)
		}
	})
}
