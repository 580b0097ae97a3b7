package fleet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// recorded waits until the audit has what is looked for.
func (r *rig) recorded(o fleet.AuditOptions, what string, enough func([]fleet.Recorded) bool) []fleet.Recorded {
	r.t.Helper()
	for late := time.After(time.Minute); ; {
		all, err := r.Audit(r.t.Context(), o)
		if err != nil {
			r.t.Fatal(err)
		}
		if enough(all) {
			return all
		}
		select {
		case <-late:
			r.t.Fatalf("the audit never had %s: %s", what, told(all))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// told writes entries as "writer what verb answer; …".
func told(all []fleet.Recorded) string {
	var out []string
	for _, r := range all {
		e := r.Entry
		if e == nil {
			out = append(out, r.Writer+" unreadable")
			continue
		}
		by, _, _ := strings.Cut(r.Writer, ".")
		parts := []string{by, string(e.What), e.Verb, string(e.Score), string(e.Decision), string(e.Result), string(e.Code)}
		out = append(out, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
	}
	return strings.Join(out, "; ")
}

func has(text string) func([]fleet.Recorded) bool {
	return func(all []fleet.Recorded) bool { return strings.Contains(told(all), text) }
}

func (r *rig) breaches() string {
	r.t.Helper()
	_, all, err := r.VerifyAudit(r.t.Context(), fleet.AuditOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, b := range all {
		out = append(out, string(b.Kind))
	}
	return strings.Join(out, " ")
}

// What a person does is in the audit before it is done, and what the device says about it after; one id joins both. A device
// that is away, and starts again, sends what it has kept, and all of it holds together (G90, S19, H65).
func TestAudit(t *testing.T) {
	r := newRig(t, pi1)
	dev, disk := memory.New(), store.NewMem()
	d := r.deviceOn(pi1, dev, disk)
	o := r.options()
	o.Actor, o.Reason = "me@here", "it is new"
	m := manifest("m", "pi-1", file("f", "/etc/f", "1"))
	m.Spec.Policy = score.Policy{Preset: score.Reviewed}
	if _, err := r.Publish(t.Context(), []score.Manifest{m}, o); err != nil {
		t.Fatal(err)
	}
	all := r.recorded(fleet.AuditOptions{Device: pi1}, "the decision", has("main decision f pending"))
	if text := told(all); !strings.Contains(text, "main begin first") || !strings.Contains(text, "control verb publish") {
		t.Errorf("the audit has %s", text)
	}
	for _, e := range all {
		if e.Entry.Verb == "publish" && (!e.Signed || e.Entry.Actor != "me@here" || e.Entry.Reason != "it is new" || e.Entry.Device != "main.pi-1" || e.Entry.Digest == "" || e.Entry.Generation != 1) {
			t.Errorf("published: %+v", e.Entry)
		}
	}
	plan, err := r.Plan(t.Context(), pi1, "me", fleet.OperateOptions{Signer: r.keys.Operator})
	if err != nil {
		t.Fatal(err)
	}
	op := interpret.Operation{ID: fleet.NewOperationID(), Device: "pi-1", Verb: interpret.VerbInstall, Plan: plan.ID, Actor: "me"}
	if err := r.Operate(t.Context(), op, fleet.OperateOptions{Signer: r.keys.Operator}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.WaitReceipt(t.Context(), pi1, op.ID); err != nil {
		t.Fatal(err)
	}
	joined := r.recorded(fleet.AuditOptions{Operation: op.ID}, "the end of the operation", has("main operation install done"))
	if got, want := told(joined), "control verb install; main decision f apply; main operation install done"; got != want {
		t.Errorf("of the operation: %s, want %s", got, want)
	}
	for _, e := range joined {
		if e.Entry.Request == "" && e.Entry.What != interpret.AuditDecision {
			t.Errorf("%s names no request", e.Entry.What)
		}
	}
	if got := r.breaches(); got != "" {
		t.Errorf("what was written holds not: %s", got)
	}

	d.stop() // away, and its power goes
	r.srv.Stop()
	dev.Put("/etc/f", "by hand")
	r.deviceOn(pi1, dev, disk.Crash(store.LoseAll))
	r.srv.Restart()
	r.recorded(fleet.AuditOptions{Device: pi1}, "what came while it was away", func(all []fleet.Recorded) bool {
		return strings.Count(told(all), "main decision f") > 2
	})
	if got := r.breaches(); got != "" {
		t.Errorf("after it was away: %s", got)
	}
	if late, err := r.Audit(t.Context(), fleet.AuditOptions{Since: time.Now().Add(time.Hour)}); err != nil || len(late) > 0 {
		t.Errorf("since tomorrow: %s, %v", told(late), err)
	}
}

// Somebody with every right on the server takes nothing away, and what he writes in the name of others shows. Where nothing
// can be written down, nothing is done.
func TestAuditUnderAttack(t *testing.T) {
	r := newRig(t, pi1)
	dev, disk := memory.New(), store.NewMem()
	d := r.deviceOn(pi1, dev, disk)
	r.publish(manifest("m", "pi-1", file("f", "/etc/f", "1")))
	r.recorded(fleet.AuditOptions{Device: pi1}, "the decision", has("main decision f apply"))
	s, err := r.js().Stream(t.Context(), wire.StreamAudit)
	if err != nil {
		t.Fatal(err)
	}
	if s.Purge(t.Context()) == nil || s.DeleteMsg(t.Context(), 1) == nil {
		t.Fatal("an entry was taken away")
	}
	public, err := r.keys.Operator.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	subject, err := wire.ControlAuditSubject(public)
	if err != nil {
		t.Fatal(err)
	}
	foreign := `{"apiVersion":"continuo/v1","kind":"AuditEntry","chain":"x","sequence":1,"time":"2026-01-01T00:00:00Z","what":"verb","verb":"publish","actor":"the operator"}`
	if _, err := r.js().PublishMsg(t.Context(), &nats.Msg{Subject: subject, Data: []byte(foreign)}); err != nil {
		t.Fatal(err)
	}
	if got := r.breaches(); got != "unsigned" {
		t.Errorf("in the name of the operator: %q", got)
	}
	r.publish(manifest("m", "pi-1", file("f", "/etc/f", "2"))) // goes on all the same
	r.wait(pi1, 2)

	// In the place of the device, with an entry that fits: the next one of the device has the same number.
	d.stop()
	all := r.recorded(fleet.AuditOptions{Device: pi1}, "something", has("main decision"))
	last := all[0].Entry
	for _, e := range all {
		if e.Writer == pi1.String() {
			last = e.Entry
		}
	}
	forged := strings.Replace(strings.Replace(foreign, `"chain":"x","sequence":1`, `"chain":"`+last.Chain+`","sequence":`+fmt.Sprint(last.Sequence+1), 1), `"what":"verb"`, `"what":"decision"`, 1)
	if err := r.srv.ConnectDevice(pi1).Publish(wire.AuditSubject(pi1), []byte(forged)); err != nil {
		t.Fatal(err)
	}
	r.recorded(fleet.AuditOptions{Device: pi1}, "the forged entry", has("main decision publish"))
	r.deviceOn(pi1, dev, disk.Crash(store.LoseAll))
	r.publish(manifest("m", "pi-1", file("g", "/etc/g", "2")))
	r.recorded(fleet.AuditOptions{Device: pi1}, "another decision", has("main decision g apply"))
	if got := r.breaches(); !strings.Contains(got, "forked") {
		t.Errorf("in the place of a device: %q", got)
	}

	if err := r.js().DeleteStream(t.Context(), wire.StreamAudit); err != nil {
		t.Fatal(err)
	}
	before := r.revision(pi1)
	if _, err := r.Publish(t.Context(), []score.Manifest{manifest("m", "pi-1", file("g", "/etc/g", "3"))}, r.options()); err == nil || !strings.Contains(err.Error(), "continuo setup") {
		t.Errorf("without an audit: %v", err)
	}
	if now := r.revision(pi1); now != before {
		t.Error("it was published without being written down")
	}
	if err := r.Operate(t.Context(), interpret.Operation{ID: "x", Device: "pi-1", Verb: interpret.VerbPlan}, fleet.OperateOptions{Signer: r.keys.Operator}); err == nil || !strings.Contains(err.Error(), "cannot write down") {
		t.Errorf("an operation without an audit: %v", err)
	}
}
