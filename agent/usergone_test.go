package agent_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// What a score brought for a user who is gone goes without him, however it is asked for; what ran is gone with him.
func TestUnitOfAUserWhoIsGone(t *testing.T) {
	const text = "[Service]\nExecStart=/usr/bin/kiosk\n[Install]\nWantedBy=default.target\n"
	specs := map[string]score.Service{
		"unit":      {Unit: "kiosk.service", User: "bob", UnitFile: text, Enabled: new(true), State: score.Running, DropIns: map[string]string{"10-a": "[Service]\nNice=1\n"}},
		"lingering": {Unit: "kiosk.service", User: "bob", UnitFile: text, Linger: new(true), State: score.Running},
		"drop-in":   {Unit: "pipewire.service", User: "bob", DropIns: map[string]string{"10-a": "[Service]\nNice=1\n"}},
		"mask":      {Unit: "tracker.service", User: "bob", Masked: new(true)},
	}
	rest := file("f", "/etc/f", "x")
	for name, spec := range specs {
		for _, how := range []string{"collected", "decommissioned"} {
			t.Run(name+" "+how, func(t *testing.T) {
				r := newRig(t)
				r.dev.AddUser("bob", 1002)
				if spec.Linger == nil {
					r.dev.SetLingering("bob", true)
				}
				for _, unit := range []string{"pipewire.service", "tracker.service"} {
					r.dev.Put("/usr/lib/systemd/user/"+unit, "[Service]\nExecStart=/usr/bin/x\n")
				}
				r.apply(intent(1, manifest("m", rest, score.Score{ID: "s", Spec: spec})))
				r.want(r.apply(intent(1, manifest("m", rest, score.Score{ID: "s", Spec: spec}))), "m/f=unchanged m/s=unchanged")
				r.dev.RemoveUser("bob")
				st := r.apply(intent(1, manifest("m", rest, score.Score{ID: "s", Spec: spec})))
				r.want(st, "m/f=unchanged m/s=failed/"+string(topology.CodeNoAccount))

				m := manifest("m", rest)
				if how == "decommissioned" {
					m = manifest("m", rest, score.Score{ID: "s", Spec: spec, Decommission: true})
				}
				m.Metadata.Generation = 2
				st = r.apply(intent(2, m))
				if len(st.Orphans) > 0 || st.State != interpret.StateConverged {
					t.Errorf("%s: %s, orphans are %+v", st.State, outcomes(st), st.Orphans)
				}
				for _, p := range []string{"kiosk.service", "kiosk.service.d/10-a.conf", "pipewire.service.d/10-a.conf", "tracker.service"} {
					if f, err := r.dev.Files().File(t.Context(), "/etc/systemd/user/"+p); err != nil || f.Type != topology.Absent {
						t.Errorf("%s is a %s: %v", p, f.Type, err)
					}
				}
				if len(r.store.ByManifest("m")) != 1 {
					t.Errorf("the books have %+v", r.store.ByManifest("m"))
				}
			})
		}
	}
}
