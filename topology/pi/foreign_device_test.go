//go:build device

package pi

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// What somebody at a terminal asked for is done before anything else is ordered: his
// command succeeds, and then the unit becomes what is wanted (H25).
func TestOrdersOfOthersAreNotOvertaken(t *testing.T) {
	s := device(t).Services()
	const (
		stopsSlowly  = "[Service]\nExecStart=/bin/sleep 1d\nExecStop=/bin/sleep 1\n"
		startsSlowly = "[Service]\nExecStartPre=/bin/sleep 1\nExecStart=/bin/sleep 1d\n"
	)
	tests := []struct {
		name, text string
		running    bool // before
		by         string
		passes     string // what the unit passes through then
		ours       func(ctx context.Context, unit string) error
		active     string // in the end
		jobs       int    // in all
	}{
		{"stop, and we start", stopsSlowly, true, "stop", "deactivating",
			func(ctx context.Context, unit string) error { return s.Start(ctx, unit, false) }, "active", 2},
		{"stop, and we restart", stopsSlowly, true, "stop", "deactivating",
			func(ctx context.Context, unit string) error { return s.Restart(ctx, unit, false) }, "active", 2},
		{"stop, and so do we", stopsSlowly, true, "stop", "deactivating", s.Stop, "inactive", 1},
		{"stop, and we take it away", stopsSlowly, true, "stop", "deactivating", s.Undefine, "inactive", 0},
		{"start, and so do we", startsSlowly, false, "start", "activating",
			func(ctx context.Context, unit string) error { return s.Start(ctx, unit, false) }, "active", 1},
		{"start, and we stop", startsSlowly, false, "start", "activating", s.Stop, "inactive", 2},
		{"restart, and we start", stopsSlowly, true, "restart", "deactivating",
			func(ctx context.Context, unit string) error { return s.Start(ctx, unit, false) }, "active", 1},
		{"restart, and we stop", stopsSlowly, true, "restart", "deactivating", s.Stop, "inactive", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const unit = "ct-foreign.service"
			define(t, s, unit, tt.text)
			if tt.running {
				if err := s.Start(t.Context(), unit, false); err != nil {
					t.Fatal(err)
				}
			}
			state(t, s, unit) // loads the definition
			before := jobs(t)
			theirs := inBackground("systemctl", tt.by, unit)
			for state(t, s, unit).Active != tt.passes {
				runtime.Gosched()
			}
			if err := tt.ours(t.Context(), unit); err != nil {
				t.Error(err)
			}
			if err := <-theirs; err != nil {
				t.Errorf("their order: %v", err)
			}
			if st := state(t, s, unit); st.Active != tt.active {
				t.Errorf("in the end it is %+v", st)
			}
			if n := jobs(t) - before; tt.jobs != 0 && n != tt.jobs {
				t.Errorf("systemd had %d jobs, want %d", n, tt.jobs)
			}
		})
	}
}

// Whoever has no time to wait leaves the order of the other alone, too.
func TestOrderOfAnotherOutlastsUs(t *testing.T) {
	s := device(t).Services()
	const unit = "ct-outlasts.service"
	define(t, s, unit, "[Service]\nExecStart=/bin/sleep 1d\nExecStop=/bin/sleep 10\n")
	if err := s.Start(t.Context(), unit, false); err != nil {
		t.Fatal(err)
	}
	theirs := inBackground("systemctl", "stop", unit)
	for state(t, s, unit).Active != "deactivating" {
		runtime.Gosched()
	}
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	wantCode(t, s.Start(short, unit, false), topology.CodeTimeout, "list-jobs")
	if err := <-theirs; err != nil {
		t.Errorf("their order: %v", err)
	}
	if st := state(t, s, unit); st.Active != "inactive" {
		t.Errorf("%+v", st)
	}
}

// A start that somebody else asked for and that does not come to an end is broken off by
// a stop (case 51).
func TestEndlessStartOfAnotherIsStopped(t *testing.T) {
	s := device(t).Services()
	const unit = "ct-endless.service"
	define(t, s, unit, "[Service]\nType=oneshot\nExecStart=/bin/sleep 1d\n")
	state(t, s, unit)
	sh(t, "systemctl start --no-block "+unit)
	for state(t, s, unit).Active != "activating" {
		runtime.Gosched()
	}
	if err := s.Stop(t.Context(), unit); err != nil {
		t.Fatal(err)
	}
	if st := state(t, s, unit); st.Active != "inactive" {
		t.Errorf("%+v", st)
	}
}

func inBackground(program string, args ...string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := do(program, args...)
		done <- err
	}()
	return done
}

// jobs counts every job that systemd ever queued.
func jobs(t *testing.T) int {
	t.Helper()
	return number(t, sh(t, "systemctl show -P NInstalledJobs"))
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
