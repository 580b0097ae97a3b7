package show

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// everyAction is a plan that has one of each thing that a plan can say.
var everyAction = interpret.Plan{
	ID: digest, Unchanged: 3, Truncated: 2,
	Actions: []interpret.PlannedAction{
		{Manifest: "kiosk", Score: "conf", Kind: "file", Action: interpret.ActionChange, Cause: interpret.CauseIntent, Effect: interpret.Mutate,
			Provenance: interpret.Foreign, Backup: true, Restarts: []score.ID{"web", "kiosk"}, Decision: interpret.DecideRefuse, Code: "foreign", Reason: "it was there before",
			Changes: []interpret.Change{{Field: "content", Have: strings.Repeat("a", 64), Want: strings.Repeat("b", 64)}, {Field: "mode", Have: "0600", Want: "0644"}}},
		{Manifest: "kiosk", Score: "web", Kind: "container", Action: interpret.ActionRestart, Cause: interpret.CauseDependency, Effect: interpret.Disrupt,
			Decision: interpret.DecideApply, Authority: "standing:guarded", Changes: []interpret.Change{{Field: "restartOn", Have: "conf", Want: "conf"}}},
		{Manifest: "old", Score: "db", Kind: "container", Action: interpret.ActionDecommission, Cause: interpret.CauseExplicit, Effect: interpret.Destroy,
			Resources: []score.Resource{"container:db", "unit:db.service"}, Decision: interpret.DecidePending, Code: interpret.CodeSignature},
		{Manifest: "kiosk", Score: "name", Kind: "hostname", Action: interpret.ActionNone, Decision: interpret.DecideReport, Code: "unsupported", Reason: "no host name\nhere"},
	},
}

// everything is a receipt that has one of each thing that a receipt can say.
var everything = interpret.Receipt{
	ID: "0f8fad5b-d9cb-469f-a165-70867728950e", Device: "pi-1", Verb: interpret.VerbInstall, Actor: "ann@desk", Reason: "ticket 7",
	Result: interpret.ResultFailed, Message: "some of it did not come true", Generation: 7, Truncated: 1,
	Finished: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	Actions: []interpret.ReceiptAction{
		{Manifest: "kiosk", Score: "conf", Kind: "file", Action: interpret.ActionChange, Outcome: interpret.Changed, Cause: interpret.CauseIntent, Authority: "plan:7",
			Changes: []interpret.Change{{Field: "content", Have: "", Want: "x"}}, Backup: "kiosk.conf.1", Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n\\ No newline\n"},
		{Manifest: "old", Score: "db", Action: interpret.ActionRemove, Outcome: interpret.Changed, Cause: interpret.CauseAbsent, Resources: []score.Resource{"container:db"}},
		{Manifest: "old", Score: "log", Kind: "file", Action: interpret.ActionRemove, Outcome: interpret.Drifted, Code: interpret.CodeNotOwned, Message: "it stays", Resources: []score.Resource{"file:/var/log/x"}},
		{Manifest: "kiosk", Score: "web", Kind: "container", Outcome: interpret.Failed, Code: "exited", Message: "it ended with 1\nsecond line"},
	},
	Plan: &everyAction,
}

func TestPlanAndReceipt(t *testing.T) {
	var out strings.Builder
	for _, p := range []interpret.Plan{everyAction, {ID: digest, Unchanged: 1}, {ID: digest}} {
		if err := Plan(&out, p); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	if err := Receipt(&out, everything); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	refused := interpret.Receipt{ID: "x", Verb: interpret.VerbInstall, Result: interpret.ResultRefused, Code: interpret.CodePlanChanged, Plan: &interpret.Plan{ID: digest}}
	if err := Receipt(&out, refused); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	if err := Receipts(&out, []interpret.Receipt{everything, refused, {ID: "pass-1", Verb: interpret.VerbPass, Result: interpret.ResultDone}}); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	for _, found := range [][]interpret.ReceiptAction{nil, {{Manifest: "m", Score: "web", Kind: "container", Outcome: interpret.Unchanged}},
		{{Manifest: "m", Outcome: interpret.Failed, Code: "no_rollback", Message: "none was good yet"}, {Manifest: "m", Score: "web", Outcome: interpret.Failed, Code: "image", Message: "the image web:1 is not on this device"}}} {
		if err := RollbackCheck(&out, found); err != nil {
			t.Fatal(err)
		}
	}
	golden.Check(t, "plan.txt", out.String())
}

// A device that was taken over cannot make a plan or a receipt a command to the operator's terminal, nor lines of its own.
func TestHostilePlanAndReceipt(t *testing.T) {
	const esc = "\x1b[31m\nplan " + digest + "\n"
	p := interpret.Plan{ID: esc, Device: esc, Actions: []interpret.PlannedAction{{
		Manifest: esc, Score: esc, Kind: esc, Action: esc, Cause: esc, Effect: esc, Provenance: interpret.Foreign, Decision: esc, Authority: esc, Code: esc, Reason: esc,
		Resources: []score.Resource{esc}, Restarts: []score.ID{esc}, Changes: []interpret.Change{{Field: esc, Have: esc, Want: esc}},
	}, {Action: interpret.ActionRemove, Resources: []score.Resource{esc}}}}
	r := interpret.Receipt{ID: esc, Device: esc, Verb: esc, Actor: esc, Reason: esc, Result: esc, Code: esc, Message: esc, Plan: &p, Actions: []interpret.ReceiptAction{{
		Manifest: esc, Score: esc, Kind: esc, Action: esc, Outcome: esc, Code: esc, Message: esc, Cause: esc, Authority: esc, Backup: esc, Diff: "+\x1b[2J\n",
		Changes: []interpret.Change{{Field: esc, Have: esc, Want: esc}}, Resources: []score.Resource{esc},
	}}}
	var out strings.Builder
	for _, err := range []error{Plan(&out, p), Receipt(&out, r), Receipts(&out, []interpret.Receipt{r}), RollbackCheck(&out, r.Actions)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "\x1b") || strings.HasPrefix(line, "plan "+digest) {
			t.Errorf("harmful: %q", line)
		}
	}
}
