package show

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func TestText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "kiosk.service", "kiosk.service"},
		{"other letters", "Küche →", "Küche →"},
		{"escape sequence", "\x1b[2Jgone", `"\x1b[2Jgone"`},
		{"line break", "a\nb", `"a\nb"`},
		{"right to left override", "a\u202eb", `"a\u202eb"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestValue(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", `""`},
		{"digest", strings.Repeat("0123456789abcdef", 4), "0123456789ab…"},
		{"long", strings.Repeat("ü", 61), strings.Repeat("ü", 60) + "…"},
		{"as long as may be", strings.Repeat("ü", 60), strings.Repeat("ü", 60)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := value(tt.in); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	tb := NewTable("A", "LONGER", "LAST")
	tb.Row("größer", "", "x y")
	tb.Note("a note as long as it likes")
	tb.Row("b", "c", "")
	var out strings.Builder
	if err := tb.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "A       LONGER  LAST\ngrößer          x y\n    a note as long as it likes\nb       c\n"
	if out.String() != want {
		t.Errorf("got\n%q, want\n%q", out.String(), want)
	}
}

// A device that was taken over cannot make its status a command to the operator's terminal.
func TestHostileStatus(t *testing.T) {
	const esc = "\x1b[31m\n"
	st := interpret.DeviceStatus{
		Generation: 1, State: esc, Phase: esc, Device: esc,
		Manifests: []interpret.ManifestStatus{{Name: esc, State: esc, Scores: []interpret.ScoreStatus{{
			ID: esc, Kind: esc, Outcome: esc, Code: esc, Message: esc, Cause: esc, Backup: esc, Changes: []interpret.Change{{Field: esc, Have: esc, Want: esc}},
		}, {ID: "b", Cause: esc, Changes: []interpret.Change{{}}}}}},
		Orphans:  []interpret.Orphan{{Resource: esc, Score: esc, Manifest: esc, Message: esc}},
		Problems: []interpret.Problem{{Code: esc, Message: esc}},
	}
	var out strings.Builder
	if err := Scores(&out, st); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("got %q", out.String())
	}
	if lines := strings.Count(out.String(), "\n"); lines != 9 {
		t.Errorf("%d lines:\n%s", lines, out.String())
	}
}

func TestReason(t *testing.T) {
	no := false
	tests := []struct {
		name string
		in   interpret.ScoreStatus
		want string
	}{
		{"nothing to say", interpret.ScoreStatus{Outcome: interpret.Unchanged}, ""},
		{"failed", interpret.ScoreStatus{Outcome: interpret.Failed, Code: "no_space", Message: "no space left\nstack"}, "no_space: no space left"},
		{"changed", interpret.ScoreStatus{Outcome: interpret.Changed, Cause: interpret.CauseDrift, Changes: []interpret.Change{{}}}, "drift"},
		{"after drift", interpret.ScoreStatus{Outcome: interpret.Unchanged, Cause: interpret.CauseDrift, Since: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)},
			"drift was undone, so since 2026-11-29T12:00:00Z"},
		{"backup", interpret.ScoreStatus{Outcome: interpret.Changed, Cause: interpret.CauseIntent, Changes: []interpret.Change{{}}, Backup: "b.1"}, "intent: what was there is kept as backup b.1"},
		{"not up", interpret.ScoreStatus{Outcome: interpret.Unchanged, Conditions: interpret.Conditions{Healthy: &no}}, "not up yet"},
		{"decommissioned", interpret.ScoreStatus{Outcome: interpret.Changed, Cause: interpret.CauseExplicit}, "decommission: it was removed"},
		{"hostile", interpret.ScoreStatus{Outcome: interpret.Failed, Code: "unknown", Message: "\x1b[2J"}, `unknown: "\x1b[2J"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := reason(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A document for programs holds the same in both forms, in the same order.
func TestFormats(t *testing.T) {
	st := interpret.DeviceStatus{APIVersion: score.APIVersion, Kind: interpret.StatusKind, Device: "0644", Phase: interpret.PhaseIdle,
		State: interpret.StateConverged, Time: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	var j, y strings.Builder
	if done, err := JSON.Write(&j, st); !done || err != nil {
		t.Fatal(err)
	}
	if done, err := YAML.Write(&y, st); !done || err != nil {
		t.Fatal(err)
	}
	if want := "{\n  \"apiVersion\": \"continuo/v1\",\n  \"kind\": \"Status\",\n  \"device\": \"0644\",\n"; !strings.HasPrefix(j.String(), want) {
		t.Errorf("JSON: %s", j.String())
	}
	if want := "apiVersion: continuo/v1\nkind: Status\ndevice: \"0644\"\nphase: idle\nstate: converged\n"; !strings.HasPrefix(y.String(), want) {
		t.Errorf("YAML: %s", y.String())
	}
	if done, err := Format("").Write(&j, st); done || err != nil {
		t.Errorf("for people: %v, %v", done, err)
	}
}

// Why a manifest that is ready has not converged yet is said.
func TestGoodAt(t *testing.T) {
	st := interpret.DeviceStatus{Generation: 3, Manifests: []interpret.ManifestStatus{
		{Name: "m", Generation: 2, State: interpret.StateConverging, GoodAt: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)},
	}}
	var out strings.Builder
	if err := Scores(&out, st); err != nil || !strings.HasPrefix(out.String(), "manifest m, generation 2: converging, and good from 2026-11-29T12:00:00Z if nothing fails before\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}

// What nobody manages is one line, and says how that can change (X92).
func TestUnmanaged(t *testing.T) {
	var out strings.Builder
	if err := Scores(&out, interpret.DeviceStatus{Unmanaged: []score.Resource{"container:db", "container:a\x1b[2J"}, UnmanagedMore: 3}); err != nil {
		t.Fatal(err)
	}
	want := "not managed here, and left alone: container db, \"container a\\x1b[2J\" and 3 more; " +
		"to manage one, remove it by hand and name it in a manifest: a container cannot be taken over as it is\n"
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
}
