package fleet_test

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// The whole way of an operation, with a real agent: what is foreign stops a manifest, the plan says so, and installing
// exactly this plan overwrites it, once. The receipts of it all stay with the fleet (G29, G30, G33, G38).
func TestPlanAndInstall(t *testing.T) {
	r := newRig(t, pi1)
	r.serve(fleet.ServeOptions{Interval: 5 * time.Second})
	dev, disk := memory.New(), store.NewMem()
	dev.Put("/etc/kiosk.conf", "theirs\n")
	dv := r.deviceOn(pi1, dev, disk)
	m := manifest("kiosk", "pi-1", file("conf", "/etc/kiosk.conf", "ours\n"))
	m.Spec.Policy = score.Policy{Preset: score.Guarded}
	r.publish(m)
	r.until(pi1, "in conflict", func(s fleet.DeviceState) bool {
		sc, ok := s.Score("kiosk", "conf")
		return ok && sc.Outcome == interpret.Conflict
	})
	p, err := r.Plan(r.within(), pi1, "eva", r.asking())
	if err != nil || len(p.Actions) != 1 || p.Actions[0].Score != "conf" || p.Generation != 1 || p.ID == "" {
		t.Fatalf("got %+v, %v", p, err)
	}
	if content, _ := dev.Read("/etc/kiosk.conf"); content != "theirs\n" {
		t.Fatalf("a plan wrote %q", content)
	}
	install := interpret.Operation{ID: fleet.NewOperationID(), Device: "pi-1", Verb: interpret.VerbInstall, Plan: p.ID, Actor: "eva", Expires: time.Now().Add(time.Hour)}
	if err := r.Operate(t.Context(), install, r.asking()); err != nil {
		t.Fatal(err)
	}
	done, err := r.WaitReceipt(r.within(), pi1, install.ID)
	if err != nil || done.Result != interpret.ResultDone || done.Actor != "eva" {
		t.Fatalf("got %+v, %v", done, err)
	}
	if content, _ := dev.Read("/etc/kiosk.conf"); content != "ours\n" {
		t.Errorf("the device has %q", content)
	}
	// Once more, over a restart, and with a device that is away when it is asked.
	dv.stop()
	if err := r.Operate(t.Context(), install, r.asking()); err != nil {
		t.Fatal(err)
	}
	late := interpret.Operation{ID: fleet.NewOperationID(), Device: "pi-1", Verb: interpret.VerbPlan}
	r.deviceOn(pi1, dev, disk.Crash(store.LoseAll))
	if again, err := r.WaitReceipt(r.within(), pi1, install.ID); err != nil || again.Result != interpret.ResultDone || !again.Started.Equal(done.Started) {
		t.Errorf("again: %+v, %v", again, err)
	}
	if err := r.Operate(t.Context(), late, r.asking()); err != nil {
		t.Fatal(err)
	}
	if rc, err := r.WaitReceipt(r.within(), pi1, late.ID); err != nil || rc.Plan == nil || rc.Plan.Differs() {
		t.Errorf("afterwards: %+v, %v", rc, err)
	}
	all, err := r.Receipts(t.Context(), pi1, 0)
	if err != nil || len(all) != 3 || all[0].ID != late.ID || all[1].ID != install.ID {
		t.Errorf("receipts: %+v, %v", all, err)
	}
}
