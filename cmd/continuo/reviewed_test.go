package main

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// document decodes what a command writes with -o json, as strictly as everything that is read.
func document[T any](b *bench, want int, args ...string) (v T) {
	b.t.Helper()
	code, out, errs := b.run(append(args, "-o", "json")...)
	if err := score.Decode([]byte(out), &v); err != nil || code != want {
		b.t.Fatalf("%v: exit %d, want %d: %v: %s%s", args, code, want, err, out, errs)
	}
	return v
}

// Under reviewed nothing happens before somebody has confirmed a plan, not even to correct drift, and then exactly that
// happens. Every document is one for programs, too: G10, G26, G27, G42.
func TestReviewed(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	pi := b.device("pi-1")
	manifest := b.write("m.yaml", strings.Replace(guarded, "preset: guarded", "preset: reviewed", 1))
	code, out, errs := b.run("publish", manifest, "--confirm", "--wait")
	if code != 1 || !strings.Contains(out, "pi-1    pending") || !strings.Contains(out, "pending_confirm") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if got := pi.mem.List("/etc"); len(got) > 0 {
		t.Fatalf("without consent it made %v", got)
	}

	plan := document[interpret.Plan](b, 1, "plan", "pi-1")
	if len(plan.Actions) != 2 || plan.Actions[0].Decision != interpret.DecidePending || plan.Actions[0].Code != interpret.CodeConfirm {
		t.Errorf("got %+v", plan)
	}
	if _, _, errs := b.run("plan", "pi-1"); !strings.Contains(errs, "to confirm it: continuo install pi-1 --plan "+plan.ID+" --confirm") {
		t.Errorf("it does not say how: %s", errs)
	}
	asked := document[preview](b, 0, "install", "pi-1", "--plan", plan.ID, "--reason", "r", "--actor", "a@b", "--expires", "5m")
	if op := asked.Operation; op.Plan != plan.ID || op.Verb != interpret.VerbInstall || op.Reason != "r" || op.Actor != "a@b" || asked.Plan == nil || asked.Plan.ID != plan.ID {
		t.Errorf("got %+v", asked)
	}
	receipt := document[interpret.Receipt](b, 0, "install", "pi-1", "--plan", plan.ID, "--confirm")
	if receipt.Result != interpret.ResultDone || len(receipt.Actions) != 2 || receipt.Request == "" {
		t.Errorf("got %+v", receipt)
	}
	if code, out, _ := b.run("status", "pi-1", "--wait"); code != 0 || !strings.Contains(out, "plan:"+receipt.ID) {
		t.Errorf("exit %d: %s", code, out)
	}

	pi.mem.Put("/etc/motd", "mine\n")
	drift := document[interpret.Plan](b, 1, "plan", "pi-1")
	if len(drift.Actions) != 1 || drift.Actions[0].Cause != interpret.CauseDrift || drift.Actions[0].Decision != interpret.DecideReport {
		t.Errorf("got %+v", drift)
	}
	if got, _ := pi.mem.Read("/etc/motd"); got != "mine\n" {
		t.Errorf("drift was corrected by itself: %q", got)
	}
	document[interpret.Receipt](b, 0, "install", "pi-1", "--plan", drift.ID, "--confirm")
	if got, _ := pi.mem.Read("/etc/motd"); got != "Managed.\n" {
		t.Errorf("after install it is %q", got)
	}

	all := document[[]interpret.Receipt](b, 0, "history", "pi-1")
	if len(all) == 0 || all[0].Verb != interpret.VerbInstall {
		t.Errorf("got %+v", all)
	}
	for _, r := range all {
		if r.Verb == interpret.VerbPass {
			t.Errorf("it did something by itself: %+v", r)
		}
	}
	if got := document[[]interpret.Receipt](b, 0, "receipts", "pi-1", "--limit", "1"); len(got) != 1 || got[0].ID != all[0].ID {
		t.Errorf("got %+v", got)
	}
	gone := document[withdrawal](b, 0, "unpublish", "pi-1", "kiosk")
	if gone.Device != (fleet.Device{Site: "main", ID: "pi-1"}) || len(gone.Scores) != 2 || gone.Scores[0].OnAbsent != score.AbsentReport {
		t.Errorf("got %+v", gone)
	}
}

// What becomes of the scores of a manifest that is taken away is said by its policy, and by who claims the same.
func TestWithdrawn(t *testing.T) {
	manifest := func(name string, policy score.Policy, scores ...score.Score) score.Manifest {
		return score.Manifest{Metadata: score.Metadata{Name: name}, Spec: score.ManifestSpec{Policy: policy, Scores: scores}}
	}
	at := func(id score.ID, path string, policy *score.Policy) score.Score {
		return score.Score{ID: id, Policy: policy, Spec: score.File{Path: path, Mode: 0o644}}
	}
	as := score.Assignment{Spec: score.AssignmentSpec{Manifests: []score.Manifest{
		manifest("m", score.Policy{Preset: score.Converge}, at("a", "/etc/a", nil), at("b", "/etc/b", &score.Policy{OnAbsent: score.AbsentReport}), at("c", "/etc/c", nil)),
		manifest("n", score.Policy{OnAbsent: score.AbsentRestore}, at("c", "/etc/c", nil)),
		manifest("o", score.Policy{OnAbsent: score.AbsentRelease}, at("d", "/etc/d", nil)),
	}}}
	tests := []struct{ manifest, want string }{
		{"m", "a (file, file:/etc/a): the device removes what it made for it\nb (file, file:/etc/b): it stays, and is reported as left over\nc (file, file:/etc/c): it goes over to manifest n"},
		{"n", "c (file, file:/etc/c): it goes over to manifest m"},
		{"o", "d (file, file:/etc/d): it stays, and is the device's own from then on"},
	}
	for _, tt := range tests {
		fates, err := withdrawn(as, tt.manifest)
		var got []string
		for _, f := range fates {
			got = append(got, f.String())
		}
		if err != nil || strings.Join(got, "\n") != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.manifest, err, strings.Join(got, "\n"), tt.want)
		}
	}
	as.Spec.Manifests = as.Spec.Manifests[1:2]
	if fates, err := withdrawn(as, "n"); err != nil || fates[0].String() != "c (file, file:/etc/c): the device removes what it made for it, and puts back what was there before" {
		t.Errorf("%v: %v", err, fates)
	}
	if _, err := withdrawn(as, "nn"); err == nil || err.Error() != `no manifest "nn", did you mean "n"?` {
		t.Errorf("got %v", err)
	}
}
