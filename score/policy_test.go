package score_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

const (
	second = score.Duration(time.Second)
	minute = score.Duration(time.Minute)
)

// TestPolicyProblems is the table of what is said about the policy of a manifest: every sentence is here once.
func TestPolicyProblems(t *testing.T) {
	window := func(cron string, d score.Duration) score.Policy {
		return score.Policy{Window: &score.Window{Cron: cron, Duration: d}}
	}
	const five = `minute, hour, day of month, month and day of week`
	tests := []struct {
		in   score.Policy
		want []string
	}{
		{score.Policy{}, nil},
		{score.Policy{Preset: score.Converge, OnIntent: score.IntentConfirm, OnDrift: score.DriftIgnore, OnAbsent: score.AbsentRestore,
			OnDestroy: score.DestroyNever, OnFailure: score.FailureRollBack, Deadline: 3 * minute,
			Brake:  &score.Brake{MaxRemovals: new(0), MaxFraction: new(1.0)},
			Window: &score.Window{Cron: "*/5,7 2-4 * jan-mar,12 mon-fri", Duration: 4 * minute}}, nil},
		{score.Policy{Preset: "Converge"}, []string{`/preset: unknown preset "Converge", did you mean "converge"?`}},
		{score.Policy{Preset: "strict"}, []string{`/preset: unknown preset "strict"`}},
		{score.Policy{OnIntent: "aply"}, []string{`/onIntent: unknown onIntent "aply", did you mean "apply"?`}},
		{score.Policy{OnDrift: "corect"}, []string{`/onDrift: unknown onDrift "corect", did you mean "correct"?`}},
		{score.Policy{OnAbsent: "collects"}, []string{`/onAbsent: unknown onAbsent "collects", did you mean "collect"?`}},
		{score.Policy{OnDestroy: "signatur"}, []string{`/onDestroy: unknown onDestroy "signatur", did you mean "signature"?`}},
		{score.Policy{OnFailure: "roll_back"}, []string{`/onFailure: unknown onFailure "roll_back", did you mean "rollBack"?`}},
		{score.Policy{Deadline: -second}, []string{`/deadline: deadline -1s must be more than nothing`}},
		{score.Policy{OnFailure: score.FailureRollBack, Deadline: 1}, []string{`/deadline: deadline 1ns is less than a second`}},
		{score.Policy{Deadline: minute}, []string{`warning /deadline: deadline has no effect without onFailure: rollBack`}},
		{score.Policy{Brake: &score.Brake{MaxRemovals: new(-1)}}, []string{`/brake/maxRemovals: maxRemovals -1 must be 0 or more`}},
		{score.Policy{Brake: &score.Brake{MaxFraction: new(1.1)}}, []string{`/brake/maxFraction: maxFraction 1.1 must be from 0 to 1`}},
		{score.Policy{Brake: &score.Brake{MaxFraction: new(math.NaN())}}, []string{`/brake/maxFraction: maxFraction NaN must be from 0 to 1`}},

		{window("30 2 * * *", 60*minute), nil},
		{window("0 0 29 feb *", 60*minute), nil},
		{window("@daily", minute), []string{`/window/cron: cron "@daily" must be five fields, such as "30 2 * * sat": ` + five}},
		{window("@every 1h", minute), []string{`/window/cron: cron "@every 1h" must be five fields, such as "30 2 * * sat": ` + five}},
		{window("TZ=Europe/Berlin 0 2 * * *", minute), []string{`/window/cron: cron "TZ=Europe/Berlin 0 2 * * *" names a time zone; a window is in the time zone of the device`}},
		{window("CRON_TZ=UTC 0 2 * * *", minute), []string{`/window/cron: cron "CRON_TZ=UTC 0 2 * * *" names a time zone; a window is in the time zone of the device`}},
		{window("TZ=", minute), []string{`/window/cron: cron "TZ=" names a time zone; a window is in the time zone of the device`}},
		{window("", minute), []string{`/window/cron: cron "" must be five fields, such as "30 2 * * sat": ` + five}},
		{window("0 0 2 * * *", minute), []string{`/window/cron: cron "0 0 2 * * *" must be five fields, such as "30 2 * * sat": ` + five}},
		{window("60 2 * * *", minute), []string{cronField("60 2 * * *", "minute", "60", "0 to 59")}},
		{window("0 24 * * *", minute), []string{cronField("0 24 * * *", "hour", "24", "0 to 23")}},
		{window("0 2 0 * *", minute), []string{cronField("0 2 0 * *", "day of month", "0", "1 to 31")}},
		{window("0 2 * jun-may *", minute), []string{cronField("0 2 * jun-may *", "month", "jun-may", "1 to 12, or jan to dec")}},
		{window("0 2 * * 7", minute), []string{cronField("0 2 * * 7", "day of week", "7", "0 to 6 with sunday as 0, or sun to sat")}},
		{window("0 2 * * tues", minute), []string{cronField("0 2 * * tues", "day of week", "tues", "0 to 6 with sunday as 0, or sun to sat")}},
		// What the parser alone takes, and readers of cron disagree on.
		{window("0 2 ? * *", minute), []string{cronField("0 2 ? * *", "day of month", "?", "1 to 31")}},
		{window("*-5 2 * * *", minute), []string{cronField("*-5 2 * * *", "minute", "*-5", "0 to 59")}},
		{window(", 2 * * *", minute), []string{cronField(", 2 * * *", "minute", ",", "0 to 59")}},
		{window("+1 2 * * *", minute), []string{cronField("+1 2 * * *", "minute", "+1", "0 to 59")}},
		{window("*/0 2 * * *", minute), []string{cronField("*/0 2 * * *", "minute", "*/0", "0 to 59")}},
		{window("0 2 30 2 *", minute), []string{`/window/cron: cron "0 2 30 2 *" never comes: there is no such day`}},
		{window("0 2 * * *", 0), []string{`/window/duration: duration is 0s, and a window must be open for a minute at least`}},
		{window("0 2 * * *", -minute), []string{`/window/duration: duration is -1m, and a window must be open for a minute at least`}},
		{window("* * * * *", minute), []string{`/window/duration: a window of 1m that opens at "* * * * *" never closes: leave the window out, or make it shorter`}},
		{window("0 2 * * *", 24*60*minute), []string{`/window/duration: a window of 24h that opens at "0 2 * * *" never closes: leave the window out, or make it shorter`}},
		{window("* 0-22 * * *", minute), nil},
	}
	for _, tt := range tests {
		m := manifest(name("a", "/etc/a"))
		m.Spec.Policy = tt.in
		want := slices.Clone(tt.want)
		for i, w := range want {
			want[i] = strings.Replace(w, "/", "/spec/policy/", 1)
		}
		if got := problems(m.Validate()); !slices.Equal(got, want) {
			t.Errorf("%+v:\ngot  %q\nwant %q", tt.in, got, want)
		}
	}
}

func cronField(cron, field, text, values string) string {
	return fmt.Sprintf(`/window/cron: cron %q has the %s %q, which is not of %s, nor a range, list or step of them`, cron, field, text, values)
}

// TestScorePolicy: a score can only restrict. What it says beyond that is told to have no effect.
func TestScorePolicy(t *testing.T) {
	loose := func(field, looser, stricter string) string {
		return fmt.Sprintf("warning /spec/scores/0/policy/%s: %s: %s has no effect: the policy of the manifest is stricter, %s", field, field, looser, stricter)
	}
	tests := []struct {
		manifest, of score.Policy
		want         []string
	}{
		{score.Policy{}, score.Policy{}, nil},
		{score.Policy{}, score.Policy{Preset: score.Reviewed, OnDestroy: score.DestroyNever}, nil},
		{score.Policy{}, score.Policy{Preset: score.Guarded, OnIntent: score.IntentApply, OnDrift: score.DriftCorrect, OnAbsent: score.AbsentReport}, nil}, // the same
		{score.Policy{}, score.Policy{OnAbsent: score.AbsentCollect}, []string{loose("onAbsent", "collect", "report")}},
		{score.Policy{Preset: score.Converge, OnAbsent: score.AbsentRestore}, score.Policy{OnAbsent: score.AbsentCollect}, []string{loose("onAbsent", "collect", "restore")}},
		{score.Policy{Preset: score.Converge}, score.Policy{OnAbsent: score.AbsentRelease}, nil},
		{score.Policy{Preset: score.Reviewed}, score.Policy{OnIntent: score.IntentApply, OnDrift: score.DriftCorrect},
			[]string{loose("onIntent", "apply", "confirm"), loose("onDrift", "correct", "report")}},
		{score.Policy{OnDrift: score.DriftIgnore}, score.Policy{OnDrift: score.DriftReport}, []string{loose("onDrift", "report", "ignore")}},
		{score.Policy{OnDestroy: score.DestroyNever}, score.Policy{OnDestroy: score.DestroySignature}, []string{loose("onDestroy", "signature", "never")}},
		{score.Policy{}, score.Policy{Preset: score.Converge}, []string{loose("preset", "converge", "guarded")}},
		// The preset is looser, and still takes collecting away.
		{score.Policy{Preset: score.Reviewed, OnIntent: score.IntentApply, OnAbsent: score.AbsentCollect}, score.Policy{Preset: score.Guarded}, nil},
		{score.Policy{}, score.Policy{Preset: "convrge"}, []string{`/spec/scores/0/policy/preset: unknown preset "convrge", did you mean "converge"?`}},
		{score.Policy{}, score.Policy{Brake: &score.Brake{}}, []string{`/spec/scores/0/policy/brake: only the policy of a manifest has a brake: it counts the scores of a device`}},
		{score.Policy{}, score.Policy{Window: &score.Window{Cron: "0 2 * * *"}}, []string{`/spec/scores/0/policy/window/duration: duration is 0s, and a window must be open for a minute at least`}},
		{score.Policy{}, score.Policy{Deadline: minute}, []string{`warning /spec/scores/0/policy/deadline: deadline has no effect here: that of the manifest counts for its whole generation`}},
		{score.Policy{OnFailure: score.FailureRollBack}, score.Policy{OnFailure: score.FailureRollBack}, nil},
		{score.Policy{OnFailure: score.FailureRollBack}, score.Policy{OnFailure: score.FailureHold}, nil},
		{score.Policy{}, score.Policy{OnFailure: score.FailureRollBack}, []string{`warning /spec/scores/0/policy/onFailure: onFailure: rollBack has no effect here: it is a manifest that is rolled back, as a whole`}},
	}
	for _, tt := range tests {
		m := manifest(name("a", "/etc/a"))
		m.Spec.Policy, m.Spec.Scores[0].Policy = tt.manifest, &tt.of
		if got := problems(m.Validate()); !slices.Equal(got, tt.want) {
			t.Errorf("%+v under %+v:\ngot  %q\nwant %q", tt.of, tt.manifest, got, tt.want)
		}
	}
}

func TestStricter(t *testing.T) {
	order := []score.OnAbsent{"", score.AbsentCollect, score.AbsentRestore, score.AbsentRelease, score.AbsentReport, "incinerate"}
	for i, a := range order {
		for j, b := range order {
			if got := score.Stricter(a, b); got != order[max(i, j)] {
				t.Errorf("of %q and %q, the stricter is %q", a, b, got)
			}
		}
	}
}

func TestFilled(t *testing.T) {
	const rest = " signature hold 10m"
	for in, want := range map[score.Policy]string{
		{}:                       "guarded apply correct report" + rest,
		{Preset: score.Converge}: "converge apply correct collect" + rest,
		{Preset: score.Reviewed}: "reviewed confirm report report" + rest,
		{Preset: "strange"}:      "strange confirm report report" + rest,
		{OnIntent: "a", OnDrift: "b", OnAbsent: "c", OnDestroy: "d", OnFailure: "e", Deadline: minute}: "guarded a b c d e 1m",
	} {
		p := in.Filled()
		if got := fmt.Sprint(p.Preset, " ", p.OnIntent, " ", p.OnDrift, " ", p.OnAbsent, " ", p.OnDestroy, " ", p.OnFailure, " ", p.Deadline); got != want {
			t.Errorf("%+v is %s, want %s", in, got, want)
		}
	}
}

// TestWindow: a window opens on the clock of the place.
func TestWindow(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const nightly = "30 2 * * *"
	for _, tt := range []struct {
		cron string
		at   time.Time
		next string
	}{
		{nightly, time.Date(2026, 3, 1, 2, 29, 59, 0, berlin), "Mar 1 02:30"},
		{nightly, time.Date(2026, 3, 1, 2, 30, 0, 0, berlin), "Mar 2 02:30"},
		{nightly, time.Date(2026, 3, 1, 1, 45, 0, 0, time.UTC), "Mar 1 02:30"}, // it is open in Berlin then
		{"0 22 * * fri", time.Date(2026, 11, 28, 5, 0, 0, 0, berlin), "Dec 4 22:00"},
		// What Validate refuses never opens.
		{"@every 1s", time.Date(2026, 3, 1, 2, 0, 0, 0, berlin), "Jan 1 00:00"},
		{"CRON_TZ=UTC * * * * *", time.Date(2026, 3, 1, 2, 0, 0, 0, berlin), "Jan 1 00:00"},
		{"TZ=", time.Date(2026, 3, 1, 2, 0, 0, 0, berlin), "Jan 1 00:00"},
		{"0 0 30 2 *", time.Date(2026, 3, 1, 2, 0, 0, 0, berlin), "Jan 1 00:00"},
		{"* * * * * *", time.Date(2026, 3, 1, 2, 0, 0, 0, berlin), "Jan 1 00:00"},
		{"* * * *", time.Date(2026, 3, 1, 2, 0, 0, 0, berlin), "Jan 1 00:00"},
	} {
		if got := (score.Window{Cron: tt.cron}).Next(tt.at).Format("Jan 2 15:04"); got != tt.next {
			t.Errorf("%q after %s: next is %s, want %s", tt.cron, tt.at, got, tt.next)
		}
	}
}

// FuzzWindow: no text makes the parser crash or run for ever, and what is valid opens.
func FuzzWindow(f *testing.F) {
	for _, s := range []string{"30 2 * * sat", "TZ=", "@every 1h", "*/5,7 2-4 * jan-mar *", "0 0 30 2 *", "* * * * *"} {
		f.Add(s, int64(time.Hour))
	}
	f.Fuzz(func(t *testing.T, cron string, d int64) {
		m := manifest(name("a", "/etc/a"))
		w := score.Window{Cron: cron, Duration: score.Duration(d)}
		m.Spec.Policy.Window = &w
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if len(m.Validate()) > 0 {
			return
		}
		if opens := w.Next(start); !opens.After(start) {
			t.Errorf("%q is valid, and opens at %s", cron, opens)
		}
	})
}
