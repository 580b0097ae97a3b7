package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// decisions writes a plan as "action manifest/score cause effect decision …".
func decisions(p interpret.Plan) string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, strings.Join([]string{string(a.Action), a.Manifest + "/" + string(a.Score), string(a.Cause), string(a.Effect), string(a.Decision)}, " "))
	}
	return strings.Join(out, ", ")
}

// A plan names everything that is restarted, link by link, and its installation restarts all of it (G41).
func TestPlanNamesChainsOfRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		m := func(n uint64, conf string) score.Manifest {
			m := preset(score.Reviewed, manifest("m", file("a", "/etc/a", conf), service("b", "b.service", "a"), service("c", "c.service", "b"), service("d", "d.service")))
			m.Metadata.Generation = n
			return m
		}
		for n, conf := range []string{"1", "2"} {
			offer(t, h, intent(uint64(n+1), m(uint64(n+1), conf)))
			later(time.Second)
			plan := f.plan(t, h)
			if got := fmt.Sprint(plan.Actions[0].Restarts); got != "[b c]" {
				t.Errorf("restarts %s", got)
			}
			rec := r.dev.Record()
			if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID}); got.Result != interpret.ResultDone {
				t.Errorf("%+v", got)
			}
			if st := f.last(); !st.ConvergedAt(uint64(n + 1)) {
				t.Errorf("%s", outcomes(st))
			}
			if n == 1 && count(rec, memory.OpRestart, "unit:c.service") != 1 {
				t.Errorf("called %v", rec.Mutations())
			}
		}
	})
}

// A plan makes no mutating call and names every field (H54).
func TestPlanChangesNothing(t *testing.T) {
	r := newRig(t)
	rec := r.dev.Record()
	st, err := r.runner.Observe(t.Context(), intent(1, manifest("m", file("a", "/etc/a", "1"), service("s", "s.service", "a"))))
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
