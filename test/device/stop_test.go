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

// slow is a service that takes its time to come up, and says each time that it began to.
const slow = `[Service]
ExecStartPre=/bin/sh -c 'echo begun >>/srv/begun; sleep 8'
ExecStart=/bin/sh -c 'echo up >>/srv/up; exec sleep infinity'

[Install]
WantedBy=multi-user.target
`

// slowly is a file, a service that is slow to come up, and a file after that.
func slowly() []score.Score {
	app, late := service("app", "slow.service", slow), file("late", "/etc/kiosk/late.conf", "late\n")
	app.After, late.After = []score.ID{"conf"}, []score.ID{"app"}
	return []score.Score{file("conf", "/etc/kiosk/app.conf", "right\n"), app, late}
}

// stopped stops the agent, as an administrator does, while slow.service comes up, and tells how long that took.
func (s *site) stopped() time.Duration {
	s.t.Helper()
	box.Until(s.t, patience, "the service comes up", func() error {
		out, err := s.Exec(s.t.Context(), "systemctl", "show", "-P", "ActiveState", "slow.service")
		if err != nil || out != "activating" {
			return fmt.Errorf("it is %q, %v", out, err)
		}
		return nil
	})
	begun := time.Now()
	s.run("systemctl", "stop", agentUnit)
	took := time.Since(begun)
	if took > 30*time.Second {
		s.t.Errorf("stopping took %s", took)
	}
	if got := s.run("systemctl", "show", "-P", "Result,ExecMainStatus,ActiveState", agentUnit); strings.Join(strings.Fields(got), " ") != "inactive success 0" &&
		strings.Join(strings.Fields(got), " ") != "success 0 inactive" {
		s.t.Errorf("it did not stop by itself: %q\n%s", got, s.journal())
	}
	return took
}

// whole checks that everything is there, and only once.
func (s *site) whole() {
	s.t.Helper()
	if got := s.sh("cat /etc/kiosk/app.conf /etc/kiosk/late.conf; systemctl is-active slow.service; systemctl is-enabled slow.service; ls /etc/systemd/system/slow.service*; pgrep -cx sleep"); got !=
		"right\nlate\nactive\nenabled\n/etc/systemd/system/slow.service\n1" {
		s.t.Errorf("the device is:\n%s", got)
	}
	if left := s.temporary(); left != "" {
		s.t.Errorf("left behind:\n%s", left)
	}
	if st := s.state(); len(st.Status.Problems)+len(st.Status.Orphans) > 0 {
		s.t.Errorf("problems %v, orphans %v", st.Status.Problems, st.Status.Orphans)
	}
	s.t.Logf("number: the service was begun %s times, and came up %s times", s.sh("wc -l </srv/begun"), s.sh("wc -l </srv/up"))
}

// An agent that is told to stop in the middle of a change stops at once, and long before it would be killed; what it had
// begun, and the rest, is done by the next one (X58).
func TestStopInTheMiddleOfAnApply(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	g := s.publish(slowly()...)
	t.Logf("number: the agent stopped in %s in the middle of a change", s.stopped())
	if got := s.sh("cat /etc/kiosk/app.conf; test ! -e /etc/kiosk/late.conf"); got != "right" {
		t.Errorf("the device is:\n%s", got)
	}
	// Without an agent the books tell how far it is.
	out, err := s.Exec(t.Context(), "continuo-agent", "status")
	if err == nil || !strings.Contains(out, "late") {
		t.Errorf("status: %v\n%s", err, out)
	}
	t.Logf("status:\n%s", out)
	s.run("systemctl", "start", agentUnit)
	s.converged(g)
	s.quiet()
	s.whole()
}

// The same in the middle of an operation: it is answered, and says what became of it (X58, X56).
func TestStopInTheMiddleOfAnOperation(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	g := s.publishUnder(score.Policy{Preset: score.Reviewed}, slowly()...)
	s.outcome(g, "late", interpret.Waiting, interpret.CodeDependency)
	op := interpret.Operation{ID: fleet.NewOperationID(), Device: s.id.ID, Actor: "device suite", Verb: interpret.VerbInstall,
		Plan: s.ask(interpret.Operation{Verb: interpret.VerbPlan}).Plan.ID}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.must(s.fleet.Operate(ctx, op, fleet.OperateOptions{Signer: s.keys.Operator}))
	t.Logf("number: the agent stopped in %s in the middle of an operation", s.stopped())
	s.run("systemctl", "start", agentUnit)
	r, err := s.fleet.WaitReceipt(ctx, s.id, op.ID)
	s.must(err)
	if r.Result != interpret.ResultInterrupted || r.Code != "operation_interrupted" {
		t.Errorf("%+v", r)
	}
	// What was begun is finished, and nothing else is done without another consent.
	s.until("the service is up", func(st fleet.DeviceState) error {
		if sc, _ := st.Score(manifestName, "app"); !sc.Converged() {
			return fmt.Errorf("it is %s: %s", sc.Outcome, sc.Message)
		}
		return nil
	})
	s.outcome(g, "late", interpret.Pending, interpret.CodeConfirm)
	if r := s.confirm(); r.Result != interpret.ResultDone {
		t.Errorf("%+v", r)
	}
	s.converged(g)
	s.quiet()
	s.whole()
}
