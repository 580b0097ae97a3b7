package agent

import (
	"testing"
	"time"
)

// The clock of a device may be set while its agent is not running: that condemns no version, and gives none time without
// end (case 135).
func TestTrialWhileClockJumps(t *testing.T) {
	const deadline = 5 * time.Minute
	noted := time.Unix(1_800_000_000, 0)
	tests := []struct {
		name    string
		started time.Duration // after what was noted, by the clock
		anew    bool          // before
		left    time.Duration
		again   bool // after
	}{
		{"at once", 0, false, deadline, false},
		{"in time", 2 * time.Minute, false, 3 * time.Minute, false},
		{"set back by hours", -5 * time.Hour, false, deadline, false},
		{"set forward by hours", 5 * time.Hour, false, deadline, true},
		{"from the time of the build to that of now", 400 * 24 * time.Hour, false, deadline, true},
		{"the second time in time", 2 * time.Minute, true, 3 * time.Minute, true},
		{"the second time set forward", 5 * time.Hour, true, deadline - 5*time.Hour, true},
		{"the second time set back", -5 * time.Hour, true, deadline, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			was, ok := readTrial(trial{digest: "d", begun: noted, anew: tt.anew, order: 7}.String())
			if !ok || was.digest != "d" || was.order != 7 || was.anew != tt.anew || !was.begun.Equal(noted) {
				t.Fatalf("read back as %+v", was)
			}
			now := noted.Add(tt.started)
			got := was.resumed(now, deadline)
			if left := deadline - now.Sub(got.begun); left != tt.left || got.anew != tt.again {
				t.Errorf("%s are left, anew is %v", left, got.anew)
			}
		})
	}
}
