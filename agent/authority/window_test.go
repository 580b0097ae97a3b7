package authority

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/continuo-fleet/continuo/score"
)

func berlin(t testing.TB) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func window(cron string, d time.Duration) score.Window {
	return score.Window{Cron: cron, Duration: score.Duration(d)}
}

func TestOpen(t *testing.T) { // X103
	loc := berlin(t)
	night, late := window("0 2 * * *", 2*time.Hour), window("30 23 * * *", 90*time.Minute)
	half := window("30 2 * * *", 2*time.Hour)
	tests := []struct {
		name    string
		windows []score.Window
		now     string
		open    bool
		changes string // empty: never
	}{
		{"no window", nil, "2026-11-29T12:00:00+01:00", true, ""},
		{"before", []score.Window{night}, "2026-11-29T01:59:59+01:00", false, "2026-11-29T02:00:00+01:00"},
		{"opens", []score.Window{night}, "2026-11-29T02:00:00+01:00", true, "2026-11-29T04:00:00+01:00"},
		{"last moment", []score.Window{night}, "2026-11-29T03:59:59.999+01:00", true, "2026-11-29T04:00:00+01:00"},
		{"closes", []score.Window{night}, "2026-11-29T04:00:00+01:00", false, "2026-11-30T02:00:00+01:00"},
		{"across midnight, before", []score.Window{late}, "2026-11-29T23:45:00+01:00", true, "2026-11-30T01:00:00+01:00"},
		{"across midnight, after", []score.Window{late}, "2026-11-30T00:59:00+01:00", true, "2026-11-30T01:00:00+01:00"},
		{"across midnight, over", []score.Window{late}, "2026-11-30T01:00:00+01:00", false, "2026-11-30T23:30:00+01:00"},
		{"spring: what the clock leaves out is not missed", []score.Window{half}, "2026-03-29T01:59:00+01:00", false, "2026-03-29T03:00:00+02:00"},
		{"spring: it closes when the clock says so", []score.Window{half}, "2026-03-29T03:00:00+02:00", true, "2026-03-29T04:30:00+02:00"},
		{"autumn: opens", []score.Window{night}, "2026-10-25T01:00:00+02:00", false, "2026-10-25T02:00:00+02:00"},
		{"autumn: the hour that comes twice is in it twice", []score.Window{night}, "2026-10-25T02:30:00+02:00", true, "2026-10-25T04:00:00+01:00"},
		{"autumn: half of that hour", []score.Window{half}, "2026-10-25T02:45:00+02:00", true, "2026-10-25T02:00:00+01:00"},
		{"autumn: the other half", []score.Window{half}, "2026-10-25T02:10:00+01:00", false, "2026-10-25T02:30:00+01:00"},
		{"longer than its period", []score.Window{window("0 * * * *", 61*time.Minute)}, "2026-11-29T12:30:00+01:00", true, "2026-12-02T05:01:00+01:00"},
		{"weekends", []score.Window{window("0 0 * * sat", 48*time.Hour)}, "2026-11-29T12:30:00+01:00", true, "2026-11-30T00:00:00+01:00"},
		{"all must be open", []score.Window{night, window("0 3 * * *", 4*time.Hour)}, "2026-11-29T02:30:00+01:00", false, "2026-11-29T03:00:00+01:00"},
		{"and the first to close counts", []score.Window{night, window("0 3 * * *", 4*time.Hour)}, "2026-11-29T03:30:00+01:00", true, "2026-11-29T04:00:00+01:00"},
		{"closed until both are open again", []score.Window{night, window("0 3 * * sat", 4*time.Hour)}, "2026-11-29T04:30:00+01:00", false, "2026-12-05T03:00:00+01:00"},
		{"no such day", []score.Window{window("0 0 30 2 *", time.Hour)}, "2026-11-29T02:30:00+01:00", false, ""},
		{"no such day, and one that comes", []score.Window{window("0 0 30 2 *", time.Hour), night}, "2026-11-29T02:30:00+01:00", false, "?"},
		{"no length", []score.Window{window("0 2 * * *", 0)}, "2026-11-29T02:00:00+01:00", false, ""},
		{"no cron", []score.Window{{Duration: score.Duration(time.Hour)}}, "2026-11-29T02:00:00+01:00", false, ""},
		{"a zone", []score.Window{window("TZ=UTC 0 2 * * *", time.Hour)}, "2026-11-29T02:00:00+01:00", false, ""},
		{"half a zone", []score.Window{window("TZ=UTC", time.Hour)}, "2026-11-29T02:00:00+01:00", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			open, changes := Open(tt.windows, now.In(loc))
			got := ""
			if !changes.IsZero() {
				got = changes.Format(time.RFC3339)
			}
			if open != tt.open || got != tt.changes && tt.changes != "?" {
				t.Errorf("got %t until %s, want %t until %s", open, got, tt.open, tt.changes)
			}
		})
	}
}

// The nearest comes first, and all count.
func TestWindows(t *testing.T) {
	a, b, c := window("1 * * * *", time.Minute), window("2 * * * *", time.Minute), window("3 * * * *", time.Minute)
	ceiling, manifest, of := &score.Policy{Window: &a}, score.Policy{Window: &b}, &score.Policy{Window: &c}
	if got := Windows(ceiling, manifest, of); len(got) != 3 || got[0] != c || got[1] != b || got[2] != a {
		t.Errorf("got %v", got)
	}
	if p := Effective(ceiling, manifest, nil); *p.Window != b {
		t.Errorf("got %v", p.Window)
	}
	if p := Effective(ceiling, score.Policy{}, nil); *p.Window != a {
		t.Errorf("got %v", p.Window)
	}
	if got := Windows(nil, score.Policy{}, nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

// Whatever somebody writes: nothing panics, and what is said about the time until
// changes is true on every minute of it, also when the clock is put forward or back.
func FuzzOpen(f *testing.F) {
	for _, cron := range []string{"0 2 * * *", "30 2 * * sun", "*/20 1-3 * 3,10 *", "TZ=", "TZ=x", "@daily", "0 0 30 2 *", "? ? ? ? ?", "59 23 31 12 6", "* * * * *"} {
		for _, at := range []int64{1774742400, 1792886400, 1796000000} { // before both changes of the clock, and between
			f.Add(cron, int64(2*time.Hour), at)
			f.Add(cron, int64(25*time.Hour), at)
		}
	}
	loc := berlin(f)
	f.Fuzz(func(t *testing.T, cron string, length, at int64) {
		now := time.Unix(at%4e9, at%1e9).In(loc)
		w := score.Window{Cron: cron, Duration: score.Duration(length)}
		open, changes := Open([]score.Window{w}, now)
		if changes.IsZero() {
			return
		}
		if !changes.After(now) {
			t.Fatalf("%q for %s: at %s it changes at %s", cron, w.Duration, now, changes)
		}
		step := max(time.Minute, changes.Sub(now)/200)
		for at := now; at.Before(changes); at = at.Add(step) {
			if is, _ := Open([]score.Window{w}, at); is != open {
				t.Fatalf("%q for %s: at %s it is %t until %s, and at %s it is not", cron, w.Duration, now, open, changes, at)
			}
		}
	})
}
