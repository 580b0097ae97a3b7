package health

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

const second = score.Duration(time.Second)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func TestJudge(t *testing.T) { // H63, cases 50, 138
	three := score.Probe{Period: 10 * second, FailureThreshold: 3, SuccessThreshold: 2}
	tests := []struct {
		name  string
		probe score.Probe
		looks string // . succeeded, x failed, ? unseen
		want  string // the verdict after each: u unknown, h healthy, s unhealthy (sick)
	}{
		{"defaults", score.Probe{}, ".xx.xxx.", "hhhhhhsh"},
		{"unhealthy at exactly the threshold, and back", three, "..xxx.x..", "uhhhssssh"},
		{"a failure in between starts the successes again", three, ".x.x..", "uuuuuh"},
		{"a success in between starts the failures again", three, "..xx.xx.xxx", "uhhhhhhhhhs"},
		{"never healthy", three, "xxxxx", "uusss"},
		{"unseen counts for nothing", three, "?.?.?x??xx", "uuuhhhhhhs"},
		{"unseen only", three, "?????", "uuuuu"},
		{"one is enough", score.Probe{FailureThreshold: 1}, ".x.x", "hshs"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := NewJudge(tt.probe, start)
			was := Unknown
			var got strings.Builder
			for i, look := range tt.looks {
				at := start.Add(time.Duration(i) * time.Minute)
				changed := j.Record(at, map[rune]Result{'.': Succeeded, 'x': Failed, '?': Unseen}[look], "why")
				verdict, since := j.Verdict()
				got.WriteByte(map[Verdict]byte{Unknown: 'u', Healthy: 'h', Unhealthy: 's'}[verdict])
				if changed != (verdict != was) || changed && !since.Equal(at) {
					t.Errorf("look %d: %s since %s, changed %t; it was %s", i, verdict, since, changed, was)
				}
				was = verdict
			}
			if got.String() != tt.want {
				t.Errorf("got %s, want %s", &got, tt.want)
			}
		})
	}
}

func TestJudgeSaysWhenToLook(t *testing.T) {
	tests := []struct {
		name            string
		probe           score.Probe
		first, then     time.Duration
		timeout, period time.Duration
	}{
		{"defaults", score.Probe{}, 0, 10 * time.Second, time.Second, 10 * time.Second},
		{"given", score.Probe{Delay: 60 * second, Period: 2 * second, Timeout: 5 * second}, time.Minute, 2 * time.Second, 5 * time.Second, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := NewJudge(tt.probe, start)
			if got := j.Next().Sub(start); got != tt.first {
				t.Errorf("the first look is after %s, want %s", got, tt.first)
			}
			at := start.Add(time.Hour)
			j.Record(at, Failed, "")
			if got := j.Next().Sub(at); got != tt.then {
				t.Errorf("the next look is after %s, want %s", got, tt.then)
			}
			if j.timeout() != tt.timeout {
				t.Errorf("a look takes %s at most, want %s", j.timeout(), tt.timeout)
			}
		})
	}
}

func TestBudget(t *testing.T) { // H64
	var b Budget
	var got []time.Duration
	for range 12 {
		got = append(got, b.Hangs()/time.Second)
		b.Restarted()
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("pauses are %v s, want %v", got, want)
		}
	}
	if b.Restarts() != 12 {
		t.Errorf("%d restarts, want 12", b.Restarts())
	}
	for range 1000 {
		b.Restarted()
	}
	if got := b.Hangs(); got != 5*time.Minute {
		t.Errorf("after many restarts the pause is %s", got)
	}
}

func TestBudgetIsEarnedBack(t *testing.T) { // H64
	tests := []struct {
		name     string
		restarts int
		alive    []time.Duration // since the last restart; negative: it hangs then
		want     int             // restarts in a row
	}{
		{"alive for less than twice the pause", 3, []time.Duration{10, 12, 17}, 3},
		{"alive for twice the pause", 3, []time.Duration{10, 12, 18}, 0},
		{"one look is no time", 3, []time.Duration{1000}, 3},
		{"it hung meanwhile", 3, []time.Duration{10, 15, -16, 18, 25}, 3},
		{"the longest pause", 20, []time.Duration{0, 599}, 20},
		{"the longest pause, twice", 20, []time.Duration{0, 600}, 0},
		{"no restart yet", 0, []time.Duration{0, 600}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b Budget
			for range tt.restarts {
				b.Restarted()
			}
			for _, at := range tt.alive {
				if at < 0 {
					b.Hangs()
					continue
				}
				b.Alive(start.Add(at * time.Second))
			}
			if b.Restarts() != tt.want {
				t.Errorf("%d restarts in a row, want %d", b.Restarts(), tt.want)
			}
		})
	}
}
