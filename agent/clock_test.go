package agent

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
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

// The clock of a running agent is set by hours: ids of operations that were used are known all the same, as those of
// an agent are that is started later (case 135, K13).
func TestUsedIDsWhileClockJumps(t *testing.T) {
	s, _, err := store.Open(store.NewMem(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{Runner: &Runner{Store: s}})
	for _, jump := range []time.Duration{-26 * time.Hour, 0, 26 * time.Hour} { // since it was noted
		till := time.Now().Add(-jump).Add(rememberOperations)
		if err := s.SetNotes(map[string]string{noteOperation + "at" + jump.String(): burnt{request: "d", till: till}.String()}); err != nil {
			t.Fatal(err)
		}
	}
	old := burnt{request: "d", till: time.Now().Add(-time.Hour)}.String()
	if err := s.SetNotes(map[string]string{noteOperation + "old": old}); err != nil {
		t.Fatal(err)
	}
	notes, room := a.burn(interpret.Operation{ID: "new", Expires: time.Now().Add(time.Hour)}, "d")
	if text, forgotten := notes[noteOperation+"old"]; !room || len(notes) != 2 || !forgotten || text != "" || notes[noteOperation+"new"] == "" {
		t.Errorf("room %v, notes %q", room, notes)
	}
}
