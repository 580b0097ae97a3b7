package agent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
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

// Drift that is ignored is said and does not count: the device has converged, what depends on it goes on, nothing is
// corrected, and the plan shows it. A new wish is applied all the same (X104).
func TestIgnoredDrift(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		v := func(n uint64, c string) agent.Intent {
			m := under(score.Policy{Preset: score.Converge, OnDrift: score.DriftIgnore},
				manifest("m", file("a", "/etc/a", c), service("s", "s.service"), file("after", "/etc/after", c, "a", "s")))
			m.Metadata.Generation = n
			return intent(n, m)
		}
		offer(t, h, v(1, "1"))
		later(time.Second)
		rec := r.dev.Record()
		r.dev.Delete("/etc/a")
		r.dev.StopUnit("s.service")
		later(time.Hour)
		st := f.last()
		s, _ := scoreOf(st, "m", "a")
		if !st.ConvergedAt(1) || s.Code != interpret.CodePolicy || len(s.Changes) != 1 || len(rec.Mutations()) > 0 {
			t.Errorf("%s %s, %+v, called %v", outcomes(st), st.State, s, rec.Mutations())
		}
		if got := decisions(f.plan(t, h)); got != "create m/a drift create report, change m/s drift disrupt report" && got != "create m/a drift create report, change m/s drift mutate report" {
			t.Errorf("plan: %s", got)
		}
		offer(t, h, v(2, "2"))
		later(time.Second)
		r.content("/etc/a", "2")
		r.content("/etc/after", "2")
	})
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

// What somebody else did and the device only tells of is ignored like what it could correct: it is said, and does not count. Who
// does not ignore drift hears of it as such.
func TestIgnoredSupervision(t *testing.T) {
	for how, want := range map[score.OnDrift]string{
		score.DriftIgnore:  "m/d=%s m/s=unchanged/supervision m/t=unchanged/observed_only m/z=unchanged",
		score.DriftReport:  "m/d=%s m/s=drifted/supervision m/t=drifted/observed_only m/z=unchanged",
		score.DriftCorrect: "m/d=%s m/s=drifted/supervision m/t=drifted/observed_only m/z=unchanged",
	} {
		r := newRig(t)
		r.dev.SetTool("podman", topology.ToolCopy{Path: "/usr/bin/podman", Version: "5.4.2", Works: true})
		tool := score.Score{ID: "t", After: []score.ID{"d"}, Spec: score.Tool{Name: "podman"}}
		s := service("s", "s.service")
		s.After = []score.ID{"d"}
		in := intent(1, under(score.Policy{Preset: score.Converge, OnDrift: how},
			manifest("m", file("d", "/etc/d", "1"), s, tool, file("z", "/etc/z", "1", "s", "t"))))
		r.want(r.apply(in), "m/d=changed m/s=changed m/t=unchanged m/z=changed")
		over := r.dev.DropIn("s.service", "90-admin", "[Service]\nExecStart=\nExecStart=/opt/other\n")
		r.dev.SetTool("podman")
		for _, need := range []string{"unchanged", "failed/not_regular"} { // nor does it wait for what it needs: nothing would be done then
			if need != "unchanged" {
				r.dev.Delete("/etc/d")
				r.dev.Mkdir("/etc/d")
			}
			st := r.apply(in)
			r.want(st, fmt.Sprintf(want, need))
			s := st.Manifests[0].Scores[1]
			if s.Code != interpret.CodeSupervision || len(s.Changes) != 1 || !strings.Contains(s.Message, over) || !strings.Contains(string(s.Observed), over) {
				t.Errorf("onDrift: %s: it is not said: %s %q, %+v", how, s.Code, s.Message, s.Changes)
			}
			if s := st.Manifests[0].Scores[2]; s.Code != interpret.CodeObserved || len(s.Changes) == 0 {
				t.Errorf("onDrift: %s: of the tool is not said: %+v", how, s)
			}
			if (st.State == interpret.StateConverged) != (how == score.DriftIgnore && need == "unchanged") {
				t.Errorf("onDrift: %s: the device is %s", how, st.State)
			}
		}
	}
}
