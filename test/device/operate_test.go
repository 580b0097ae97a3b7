//go:build device && linux

package device

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// ask asks the device for an operation and returns its receipt.
func (s *site) ask(op interpret.Operation) interpret.Receipt {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	op.ID, op.Device, op.Actor = fleet.NewOperationID(), s.id.ID, "device suite"
	s.must(s.fleet.Operate(ctx, op, fleet.OperateOptions{Signer: s.keys.Operator}))
	r, err := s.fleet.WaitReceipt(ctx, s.id, op.ID)
	s.must(err)
	return r
}

// confirm installs the plan of now.
func (s *site) confirm() interpret.Receipt {
	s.t.Helper()
	return s.ask(interpret.Operation{Verb: interpret.VerbInstall, Plan: s.ask(interpret.Operation{Verb: interpret.VerbPlan}).Plan.ID})
}

// A reviewed device, on a real one: nothing happens by itself, not at a boot either; a plan is made and confirmed, its receipt
// tells what was done, and what was there is put back from its copy (G26, G27, G37, G40, G42).
func TestReviewedDevice(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.sh("mkdir -p /etc/kiosk; echo theirs >/etc/kiosk/app.conf; sync -f /etc/kiosk")
	app := service("app", "app.service", sleeper)
	app.After = []score.ID{"conf"}
	g := s.publishUnder(score.Policy{Preset: score.Reviewed}, file("conf", "/etc/kiosk/app.conf", "right\n"), app)
	s.outcome(g, "conf", interpret.Conflict, "foreign")
	s.Crash()
	s.Up()
	s.outcome(g, "app", interpret.Waiting, interpret.CodeDependency)
	if got := s.sh("cat /etc/kiosk/app.conf; systemctl is-active app.service || true"); got != "theirs\ninactive" {
		t.Fatalf("without consent the device is:\n%s", got)
	}

	r := s.confirm()
	if r.Result != interpret.ResultDone || len(r.Actions) != 2 || r.Actions[0].Backup == "" || !strings.Contains(r.Actions[0].Diff, "-theirs") {
		t.Fatalf("%+v", r)
	}
	s.converged(g)
	s.sh("systemctl stop app.service; echo drift >/etc/kiosk/app.conf")
	s.outcome(g, "conf", interpret.Drifted, interpret.CodePolicy)
	if got := s.sh("cat /etc/kiosk/app.conf; systemctl is-active app.service || true"); got != "drift\ninactive" {
		t.Errorf("drift was corrected:\n%s", got)
	}
	if r := s.confirm(); r.Result != interpret.ResultDone {
		t.Errorf("%+v", r)
	}
	s.converged(g)
	if got := s.ask(interpret.Operation{Verb: interpret.VerbRestore, Backup: r.Actions[0].Backup}); got.Result != interpret.ResultDone {
		t.Errorf("%+v", got)
	}
	if got := s.sh("cat /etc/kiosk/app.conf"); got != "theirs" {
		t.Errorf("put back: %q", got)
	}
}

// A generation whose service does not come up is rolled back whole, also over a power cut, and is not tried again (G13, G41, X102).
func TestRolledBackDevice(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	version := func(content, unit string) uint64 {
		app := service("app", "app.service", unit)
		app.After = []score.ID{"conf"}
		return s.publishUnder(score.Policy{Preset: score.Converge, OnFailure: score.FailureRollBack, MinReady: score.Duration(2 * time.Second)},
			file("conf", "/etc/kiosk/app.conf", content), app)
	}
	s.converged(version("good\n", sleeper))
	bad := version("bad\n", strings.ReplaceAll(sleeper, "/bin/sleep infinity", "/bin/false"))
	back := func() {
		t.Helper()
		s.until("it is rolled back", func(st fleet.DeviceState) error {
			if st.Status.Generation < bad || st.Status.State != interpret.StateRolledBack {
				return fmt.Errorf("it is %s", st.Status.State)
			}
			return nil
		})
		if got := s.sh("cat /etc/kiosk/app.conf; systemctl is-active app.service"); got != "good\nactive" {
			t.Errorf("the device is:\n%s", got)
		}
	}
	back()
	s.Crash()
	s.Up()
	back()
}
