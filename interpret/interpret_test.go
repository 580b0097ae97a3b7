package interpret_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// TestNoToolIsNamed is the swap test (H21): a capability that names a tool cannot be had
// from another. It reads all declared names of topology, and of the suite.
func TestNoToolIsNamed(t *testing.T) {
	tools := []string{"systemd", "systemctl", "podman", "docker", "dbus", "quadlet", "openrc", "hostnamectl", "journald"}
	names := 0
	for _, dir := range []string{"../topology", "../topology/conform"} {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("cannot list %s: %v", dir, err)
		}
		for _, path := range files {
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					names++
					for _, tool := range tools {
						if strings.Contains(strings.ToLower(id.Name), tool) {
							t.Errorf("%s: the name %s is a tool's", path, id.Name)
						}
					}
				}
				return true
			})
		}
	}
	if names < 100 {
		t.Errorf("saw %d names only", names)
	}
}

func TestBindTwicePanics(t *testing.T) {
	defer func() {
		if p := recover(); p != `interpret: kind "file" bound twice` {
			t.Errorf("got %v", p)
		}
	}()
	interpret.Bind(memory.New(), file.Kind, file.Kind)
}

func TestWorst(t *testing.T) {
	tests := []struct {
		effects []interpret.Effect
		want    interpret.Effect
	}{
		{nil, interpret.Create},
		{[]interpret.Effect{interpret.Create}, interpret.Create},
		{[]interpret.Effect{interpret.Mutate, interpret.Create}, interpret.Mutate},
		{[]interpret.Effect{interpret.Create, interpret.Disrupt, interpret.Mutate}, interpret.Disrupt},
		{[]interpret.Effect{interpret.Remove, interpret.Disrupt}, interpret.Remove},
		{[]interpret.Effect{"", interpret.Mutate}, interpret.Destroy},         // not declared
		{[]interpret.Effect{"reformat", interpret.Remove}, interpret.Destroy}, // not known
	}
	for _, tt := range tests {
		var changes []interpret.Change
		for _, e := range tt.effects {
			changes = append(changes, interpret.Change{Effect: e})
		}
		if got := interpret.Worst(changes); got != tt.want {
			t.Errorf("Worst(%q) = %s, want %s", tt.effects, got, tt.want)
		}
	}
}

func TestFold(t *testing.T) { // H12, H45, H69
	no := false
	well := interpret.ScoreStatus{Outcome: interpret.Unchanged}
	ill := interpret.ScoreStatus{Outcome: interpret.Changed, Conditions: interpret.Conditions{Healthy: &no}}
	of := func(o interpret.Outcome) interpret.ScoreStatus { return interpret.ScoreStatus{Outcome: o} }
	tests := []struct {
		name   string
		scores []interpret.ScoreStatus
		want   interpret.State
	}{
		{"none", nil, interpret.StateConverged},
		{"all well", []interpret.ScoreStatus{well, of(interpret.Changed)}, interpret.StateConverged},
		{"one ill", []interpret.ScoreStatus{well, ill}, interpret.StateConverging},
		{"one waits", []interpret.ScoreStatus{well, of(interpret.Waiting)}, interpret.StateConverging},
		{"one pending", []interpret.ScoreStatus{well, of(interpret.Pending), ill}, interpret.StatePending},
		{"one drifted", []interpret.ScoreStatus{well, of(interpret.Drifted), of(interpret.Pending)}, interpret.StateDrifted},
		{"one unsupported", []interpret.ScoreStatus{well, of(interpret.Unsupported), of(interpret.Drifted)}, interpret.StateUnsupported},
		{"one failed", []interpret.ScoreStatus{well, of(interpret.Failed), of(interpret.Unsupported)}, interpret.StatePartial},
		{"conflict and refused count as failed", []interpret.ScoreStatus{of(interpret.Conflict), of(interpret.Refused)}, interpret.StateFailed},
		{"what was undone is no failure, and not converged", []interpret.ScoreStatus{of(interpret.Unchanged), of(interpret.RolledBack), of(interpret.Drifted)}, interpret.StateRolledBack},
	}
	for _, tt := range tests {
		if got := interpret.Fold(tt.scores); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestDeviceStatus(t *testing.T) { // H45, H75
	d := interpret.DeviceStatus{Generation: 7, Phase: interpret.PhaseIdle, Manifests: []interpret.ManifestStatus{
		{Name: "a", Scores: []interpret.ScoreStatus{{ID: "broker/conf", Outcome: interpret.Unchanged}, {ID: "broker/unit", Outcome: interpret.Changed}}},
		{Name: "b", Scores: []interpret.ScoreStatus{{ID: "x", Outcome: interpret.Unchanged}}},
	}}
	d.FoldDevice()
	if d.State != interpret.StateConverged || !d.ConvergedAt(7) || !d.ConvergedAt(6) || d.ConvergedAt(8) {
		t.Errorf("got %s", d.State)
	}
	if s, ok := d.Manifests[0].Composite("broker"); !ok || s != interpret.StateConverged {
		t.Errorf("composite is %s, %v", s, ok)
	}
	if _, ok := d.Manifests[0].Composite("brok"); ok {
		t.Error("half a name is a composite")
	}
	d.Orphans = []interpret.Orphan{{Resource: "file:/a", Code: interpret.CodeOrphaned}, {Resource: "file:/b", Code: interpret.CodeNotOwned}}
	if d.FoldDevice(); d.State != interpret.StateConverged {
		t.Errorf("what is only reported makes it %s", d.State)
	}
	d.Orphans[1].Code = interpret.CodeBrake
	if d.FoldDevice(); d.State != interpret.StatePending {
		t.Errorf("with a removal that waits it is %s", d.State)
	}
	d.Manifests[0].Scores[1].Outcome = interpret.Failed
	d.FoldDevice()
	if d.State != interpret.StatePartial || d.Manifests[0].State != interpret.StatePartial || d.Manifests[1].State != interpret.StateConverged || d.ConvergedAt(7) {
		t.Errorf("got %s, %+v", d.State, d.Manifests)
	}
	if s, _ := d.Manifests[0].Composite("broker"); s != interpret.StatePartial {
		t.Errorf("composite is %s", s)
	}
	running := interpret.DeviceStatus{Generation: 7, Phase: interpret.PhaseRunning}
	running.FoldDevice()
	if running.ConvergedAt(7) {
		t.Error("a pass that is under way has converged (H42)")
	}
	var fresh interpret.DeviceStatus
	if fresh.FoldDevice(); fresh.State != interpret.StateNoIntent {
		t.Errorf("a device that was told nothing is %s", fresh.State)
	}
}

// One score that is not as it should be, in whatever way, and nothing has converged; nor has what is older than asked for, or not over (H45, H42).
func TestConvergedAt(t *testing.T) {
	yes, no := true, false
	status := func(st interpret.ScoreStatus) interpret.DeviceStatus {
		good := interpret.ScoreStatus{ID: "a", Outcome: interpret.Unchanged, Conditions: interpret.Conditions{Written: &yes, Loaded: &yes, Effective: &yes, Healthy: &yes}}
		d := interpret.DeviceStatus{Generation: 5, Phase: interpret.PhaseIdle, Manifests: []interpret.ManifestStatus{
			{Name: "m", Scores: []interpret.ScoreStatus{good}}, {Name: "n", Scores: []interpret.ScoreStatus{good, st}}}}
		d.FoldDevice()
		return d
	}
	for outcome, want := range map[interpret.Outcome]bool{
		interpret.Unchanged: true, interpret.Changed: true, interpret.Drifted: false, interpret.Pending: false, interpret.Waiting: false, interpret.Conflict: false,
		interpret.Refused: false, interpret.Unsupported: false, interpret.RolledBack: false, interpret.Failed: false, "": false, "marvellous": false,
	} {
		for i, c := range []interpret.Conditions{{}, {Written: &yes}, {Written: &no}, {Loaded: &no}, {Effective: &no}, {Healthy: &no}} {
			d := status(interpret.ScoreStatus{ID: "b", Outcome: outcome, Conditions: c})
			if got := d.ConvergedAt(5); got != (want && i < 2) {
				t.Errorf("%q with conditions %d: %v", outcome, i, got)
			}
			running := d
			running.Phase = interpret.PhaseRunning
			if d.ConvergedAt(6) || running.ConvergedAt(5) || d.ConvergedAt(4) != d.ConvergedAt(5) {
				t.Errorf("%q with conditions %d: a generation too new, or a pass that runs, has converged", outcome, i)
			}
		}
	}
}

func TestBrief(t *testing.T) {
	long := strings.Repeat("é", 2000)
	for in, want := range map[string]string{"": "", "short": "short", "a\xffb": "a?b", long: strings.Repeat("é", 500) + "…", "x" + long: "x" + strings.Repeat("é", 499) + "…"} {
		if got := interpret.Brief(in); got != want {
			t.Errorf("%.20q (%d bytes) becomes %d bytes", in, len(in), len(got))
		}
	}
}

func TestRead(t *testing.T) { // H11
	table := interpret.Bind(memory.New(), file.Kind)
	st := table.Observe(t.Context(), interpret.Wish{Score: score.Score{ID: "f", Spec: score.File{Path: "/etc/f"}}})
	o, err := interpret.Read[file.Observed](st)
	if err != nil || o.Present || o.Type != "absent" {
		t.Errorf("got %+v, %v", o, err)
	}
	for _, st := range []interpret.ScoreStatus{{ID: "f", Kind: "file"}, {ID: "f", Kind: "hostname", Observed: []byte(`{"static":"x","transient":"x"}`)}} {
		if _, err := interpret.Read[file.Observed](st); err == nil || !strings.Contains(err.Error(), `cannot read the state of `+string(st.Kind)+` "f"`) {
			t.Errorf("got %v", err)
		}
	}
}
