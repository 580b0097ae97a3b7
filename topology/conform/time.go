package conform

import (
	"context"
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A TimeBench is a clock to test. It is set back when the test is over.
type TimeBench struct {
	Time   topology.Time
	Events topology.Events
	Hands  TimeHands
}

// TimeHands are an administrator.
type TimeHands interface {
	// Edit adds a line to our choice of servers that we never write.
	Edit() error
	// Delete removes it.
	Delete() error
	// Restarts tells one run of whoever sets the clock from another.
	Restarts() (string, error)
}

// Time is the suite of a clock.
func Time(t *testing.T, bench func(*testing.T) TimeBench) {
	suite(t, func(t *testing.T) TimeBench {
		b := bench(t)
		before := b.state(t)
		after(t, func(ctx context.Context) {
			for _, err := range []error{b.Time.SetTimezone(ctx, before.Timezone), b.Time.RemoveTimeServers(ctx), b.Time.SetTimeSync(ctx, before.Enabled)} {
				if err != nil {
					t.Errorf("cannot set it back: %v", err)
				}
			}
		})
		return b
	}, timeTests)
}

func (b TimeBench) state(t *testing.T) topology.TimeState {
	t.Helper()
	st, err := b.Time.Time(t.Context())
	ok(t, err)
	return st
}

// follows wants the servers to be on disk, and in force if it is on.
func (b TimeBench) follows(t *testing.T, want topology.TimeServers, on bool) {
	t.Helper()
	st := b.state(t)
	if !st.Written || st.Altered || st.Choice.Mark != want.Mark || !slices.Equal(st.Choice.Servers, want.Servers) || !slices.Equal(st.Choice.Fallback, want.Fallback) {
		t.Fatalf("on disk is %+v, want %+v", st, want)
	}
	if st.Active != on || on && !slices.Equal(st.Servers, want.Servers) || on && len(want.Fallback) > 0 && !slices.Equal(st.Fallback, want.Fallback) {
		t.Fatalf("in force is %+v, want %+v", st, want)
	}
}

func (b TimeBench) run(t *testing.T) string {
	t.Helper()
	r, err := b.Hands.Restarts()
	hands(t, err)
	return r
}

var timeTests = []test[TimeBench]{
	{"time zone", func(t *testing.T, b TimeBench) {
		for _, zone := range []string{"Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "Etc/UTC", "UTC", "Europe/Berlin"} {
			for range 2 {
				ok(t, b.Time.SetTimezone(t.Context(), zone))
				equal(t, "time zone", b.state(t).Timezone, zone)
			}
		}
		for _, zone := range []string{"Mars/Olympus", "Europe/Berlin/", "../etc/passwd", "/usr/share/zoneinfo/UTC", "Europe/Ber lin"} {
			fails(t, b.Time.SetTimezone(t.Context(), zone), topology.CodeInvalid)
			equal(t, "time zone", b.state(t).Timezone, "Europe/Berlin")
		}
	}},
	{"servers", func(t *testing.T, b TimeBench) {
		ok(t, b.Time.SetTimeSync(t.Context(), true))
		first := topology.TimeServers{Servers: []string{"192.0.2.123", "ntp.example.org"}, Mark: "m/time"}
		for _, want := range []topology.TimeServers{
			first,
			{Servers: []string{"2001:db8::123"}, Fallback: []string{"198.51.100.1", "198.51.100.2"}, Mark: "m/other"},
			{Fallback: []string{"192.0.2.9"}},
			first,
		} {
			ok(t, b.Time.SetTimeServers(t.Context(), want))
			b.follows(t, want, true)
		}
		for range 2 {
			ok(t, b.Time.RemoveTimeServers(t.Context()))
			if st := b.state(t); st.Written || len(st.Servers) > 0 || len(st.Fallback) == 0 || st.Choice.Mark != "" {
				t.Fatalf("removed: %+v", st)
			}
		}
	}},
	{"to look starts nothing (47)", func(t *testing.T, b TimeBench) {
		ok(t, b.Time.SetTimeSync(t.Context(), true))
		ok(t, b.Time.SetTimeServers(t.Context(), topology.TimeServers{Servers: []string{"192.0.2.123"}, Mark: "m/time"}))
		before := b.run(t)
		for range 10 {
			b.state(t)
		}
		equal(t, "run", b.run(t), before)
		ok(t, b.Time.SetTimeSync(t.Context(), false))
		for range 10 {
			if st := b.state(t); st.Active || st.Enabled {
				t.Fatalf("switched off: %+v", st)
			}
		}
	}},
	{"on and off", func(t *testing.T, b TimeBench) {
		want := topology.TimeServers{Servers: []string{"192.0.2.123"}, Mark: "m/time"}
		for range 2 {
			ok(t, b.Time.SetTimeSync(t.Context(), false))
			st := b.state(t)
			if st.Enabled || st.Active || len(st.Servers) > 0 || st.Server != "" {
				t.Fatalf("off: %+v", st)
			}
		}
		ok(t, b.Time.SetTimeServers(t.Context(), want)) // what is off stays off
		b.follows(t, want, false)
		for range 2 {
			ok(t, b.Time.SetTimeSync(t.Context(), true))
			b.follows(t, want, true)
			if !b.state(t).Enabled {
				t.Fatal("it is on, and not enabled")
			}
		}
	}},
	{"edited by hand", func(t *testing.T, b TimeBench) {
		want := topology.TimeServers{Servers: []string{"192.0.2.123"}, Mark: "m/time"}
		ok(t, b.Time.SetTimeServers(t.Context(), want))
		hands(t, b.Hands.Edit())
		if st := b.state(t); !st.Altered {
			t.Fatalf("it was edited: %+v", st)
		}
		ok(t, b.Time.SetTimeServers(t.Context(), want))
		hands(t, b.Hands.Delete())
		if st := b.state(t); st.Written || st.Choice.Mark != "" {
			t.Fatalf("it was deleted: %+v", st)
		}
	}},
	{"changed, and seen at once (H25)", func(t *testing.T, b TimeBench) {
		ok(t, b.Time.SetTimeSync(t.Context(), true))
		ok(t, b.Time.SetTimeServers(t.Context(), topology.TimeServers{Servers: []string{"192.0.2.123"}, Mark: "m/time"}))
		seen := EventBench{Events: b.Events}.watch(t, "timeSync")
		told(t, seen, "timeSync", b.Hands.Edit)
		quiet(seen)
		zones := []string{"Europe/Berlin", "Europe/Paris"}
		told(t, seen, "timeSync", func() error {
			slices.Reverse(zones)
			return b.Time.SetTimezone(t.Context(), zones[0])
		})
		quiet(seen)
		told(t, seen, "timeSync", func() error { return b.Time.SetTimeSync(t.Context(), false) })
	}},
	{"canceled", func(t *testing.T, b TimeBench) {
		before := b.state(t)
		ctx := canceled(t)
		fails(t, b.Time.SetTimezone(ctx, "Europe/Berlin"), topology.CodeCanceled)
		fails(t, b.Time.SetTimeServers(ctx, topology.TimeServers{Servers: []string{"192.0.2.123"}}), topology.CodeCanceled)
		fails(t, b.Time.SetTimeSync(ctx, !before.Enabled), topology.CodeCanceled)
		if now := b.state(t); now.Timezone != before.Timezone || now.Written != before.Written || now.Enabled != before.Enabled {
			t.Errorf("it is %+v, was %+v", now, before)
		}
	}},
}
