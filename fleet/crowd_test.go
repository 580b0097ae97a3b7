package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// What each heartbeat is answered, for who reports in which order (case 134). "A1" is the first start of an agent on board
// A, "-1" one on a board without a serial number, and "…" is longer than a device counts as alive.
func TestConflict(t *testing.T) {
	const none, other, hold = "", wire.ConflictOther, wire.ConflictHold
	tests := []struct {
		name, enrolled string
		beats          string
		want           []string
	}{
		{"one device", "", "A1 A1 A1", []string{none, none, none}},
		{"a restart", "", "A1 A2 A2", []string{none, none, none}},
		{"restarts all the time", "", "A1 A2 A3 A4 A5 A6 A7 A8 A9 A10", []string{none, none, none, none, none, none, none, none, none, none}},
		{"one that was overtaken on the way", "", "A1 A2 A1 A2 A2", []string{none, none, none, none, none}},
		{"two agents in turn", "", "A1 A2 A1 A2 A1 A2", []string{none, none, none, none, hold, hold}},
		{"three agents in turn", "", "A1 A2 A3 A1 A2 A3 A1 A2 A3", []string{none, none, none, none, none, none, hold, hold, hold}},
		{"two boards", "", "A1 B2 A1 B2", []string{none, none, hold, hold}},
		{"the other one is gone", "", "A1 B2 A1 B2 … B2 B2", []string{none, none, hold, hold, none, none}},
		{"the card is in another board", "", "A1 A1 … B2 B2", []string{none, none, none, none}},
		{"two without a number", "", "-1 -2 -1 -2 -1", []string{none, none, none, none, hold}},
		{"the one that was enrolled goes on", "A", "A1 B2 A1 B2 A1", []string{none, hold, other, hold, other}},
		{"its restart meanwhile", "A", "A1 B2 A1 A3 B2 A3", []string{none, hold, other, other, hold, other}},
		{"two on the board that was enrolled", "A", "A1 A2 A1 A2 A1", []string{none, none, none, none, hold}},
		{"nobody but another board", "A", "B1 B1", []string{hold, hold}},
		{"its board cannot tell its number", "A", "-1 -1", []string{none, none}},
		{"one beside it that tells none", "A", "A1 -2 A1 -2 A1 -2", []string{none, none, none, none, other, hold}},
		{"two boards beside one that tells none", "", "-1 A2 B3 A2", []string{none, none, none, hold}},
		{"it is alone again", "A", "A1 B2 A1 … A1", []string{none, hold, other, none}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c crowd
			var got []string
			now := time.Unix(1_800_000_000, 0)
			for _, b := range strings.Fields(tt.beats) {
				now = now.Add(5 * time.Second)
				if b == "…" {
					now = now.Add(2 * wire.AliveTTL)
					continue
				}
				got = append(got, c.hear(identity{strings.Trim(b[:1], "-"), b}, tt.enrolled, now))
			}
			if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			if len(c.all) > maxSightings {
				t.Errorf("%d are remembered", len(c.all))
			}
		})
	}
}
