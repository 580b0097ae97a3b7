package agent_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A secret that got another value is a change that its owner made, and no drift: a policy that only reports drift lets it into
// what uses it, one that asks about changes asks about it, and that is told with the cause (G59).
func TestRotatedSecretIsNoDrift(t *testing.T) {
	app := score.Score{ID: "x", Spec: score.File{Path: "/etc/x", Mode: 0o600, Template: &score.Template{Text: "KEY={{ secret \"key\" }}\n"}}}
	web := score.Score{ID: "w", Spec: score.Container{Name: "web", Image: "registry.example.org/web:1", Env: map[string]score.Value{"KEY": {Secret: "key"}}}}
	scores := func(st interpret.DeviceStatus) [2]interpret.ScoreStatus {
		t.Helper()
		x, _ := scoreOf(st, "m", "x")
		w, _ := scoreOf(st, "m", "w")
		return [2]interpret.ScoreStatus{x, w}
	}
	start := func(t *testing.T) *rig {
		r := newRig(t)
		r.dev.SetSecret("key", "one")
		r.dev.Publish("registry.example.org/web:1", memory.Image{})
		return r
	}
	in := func(p score.Policy) agent.Intent {
		m := under(p, manifest("m", app, web))
		m.Metadata.Generation = 1
		return intent(1, m)
	}
	t.Run("applied where drift is reported", func(t *testing.T) {
		r, in := start(t), in(score.Policy{Preset: score.Converge, OnDrift: score.DriftReport})
		r.want(r.apply(in), "m/w=changed m/x=changed")
		r.want(r.apply(in), "m/w=unchanged m/x=unchanged")
		r.restart()
		r.dev.SetSecret("key", "two")
		p, err := r.runner.Plan(t.Context(), in)
		if err != nil || len(p.Actions) != 2 || p.Actions[0].Cause != interpret.CauseSecret || p.Actions[0].Decision != interpret.DecideApply {
			t.Errorf("planned is %+v, %v", p.Actions, err)
		}
		st := r.apply(in)
		r.want(st, "m/w=changed m/x=changed")
		for _, s := range scores(st) {
			if s.Cause != interpret.CauseSecret || s.Authority != "standing:converge" {
				t.Errorf("%+v", s)
			}
		}
		r.content("/etc/x", "KEY=two\n")
		rec := r.dev.Record()
		r.want(r.apply(in), "m/w=unchanged m/x=unchanged")
		if m := rec.Mutations(); len(m) > 0 {
			t.Errorf("called %v", m)
		}
		r.dev.Put("/etc/x", "by hand") // is drift as before
		if s := scores(r.apply(in))[0]; s.Outcome != interpret.Drifted || s.Cause != interpret.CauseDrift {
			t.Errorf("%+v", s)
		}
	})
	t.Run("asked about where changes are", func(t *testing.T) {
		r, in := start(t), in(score.Policy{Preset: score.Reviewed})
		r.confirm(in)
		r.dev.SetSecret("key", "two")
		for range 2 { // it stays the cause while it waits
			for _, s := range scores(r.apply(in)) {
				if s.Outcome != interpret.Pending || s.Cause != interpret.CauseSecret || s.Code != interpret.CodeConfirm {
					t.Errorf("%+v", s)
				}
			}
		}
		r.confirm(in)
		r.want(r.apply(in), "m/w=unchanged m/x=unchanged")
	})
	t.Run("tried again when it failed", func(t *testing.T) {
		r, in := start(t), in(score.Policy{Preset: score.Converge, OnDrift: score.DriftReport})
		r.want(r.apply(in), "m/w=changed m/x=changed")
		r.dev.SetSecret("key", "two")
		r.dev.Fail(memory.OpWriteFile, "file:/etc/x", topology.Faultf(topology.CodeIO, "bad sector"))
		r.dev.Fail(memory.OpRun, "container:web", topology.Faultf(topology.CodeIO, "bad sector"))
		r.want(r.apply(in), "m/w=failed/io_error m/x=failed/io_error")
		r.dev.Heal()
		r.restart() // which forgets how long to wait
		st := r.apply(in)
		r.want(st, "m/w=changed m/x=changed")
		for _, s := range scores(st) {
			if s.Cause != interpret.CauseSecret {
				t.Errorf("%+v", s)
			}
		}
	})
	t.Run("unavailable meanwhile", func(t *testing.T) {
		r, in := start(t), in(score.Policy{Preset: score.Converge})
		r.want(r.apply(in), "m/w=changed m/x=changed")
		r.dev.ExposeSecret("key")
		r.want(r.apply(in), "m/w=failed/secret_unavailable m/x=failed/secret_unavailable")
		r.dev.SetSecret("key", "two")
		r.restart()
		for _, s := range scores(r.apply(in)) {
			if s.Outcome != interpret.Changed || s.Cause != interpret.CauseSecret {
				t.Errorf("%+v", s)
			}
		}
	})
	t.Run("books that do not say", func(t *testing.T) { // as those of an older agent
		r, in := start(t), in(score.Policy{Preset: score.Converge})
		r.want(r.apply(in), "m/w=changed m/x=changed")
		for _, e := range r.store.Entries() {
			e.Triggers = ""
			if err := r.store.Record(store.Action{Entry: e, Take: true}); err != nil {
				t.Fatal(err)
			}
		}
		r.dev.SetSecret("key", "two")
		if s := scores(r.apply(in))[0]; s.Outcome != interpret.Changed || s.Cause != interpret.CauseDrift {
			t.Errorf("%+v", s)
		}
		r.dev.SetSecret("key", "three")
		if s := scores(r.apply(in))[0]; s.Outcome != interpret.Changed || s.Cause != interpret.CauseSecret {
			t.Errorf("%+v", s)
		}
	})
}
