package store

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A clock that is set by hours, in either direction, costs no receipt and no backup, and the newest one stays the
// newest (case 135).
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-26 * time.Hour, 26 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			m, now := NewMem(), clock
			s, _, err := Open(m, Options{Now: func() time.Time { return now }})
			must(t, err)
			const before, keep = 10, 5
			save := func(i int) string {
				t.Helper()
				now = now.Add(time.Minute)
				must(t, s.SaveReceipt(ReceiptFile{fmt.Sprint(i), now, []byte("r")}))
				b, err := s.SaveBackup(Backup{Path: "/etc/a", Mode: 0o644}, fmt.Append(nil, i))
				must(t, err)
				return b.Name
			}
			for i := range before {
				save(i)
			}
			now = now.Add(jump)
			last := save(before)
			if got := receiptIDs(t, s); got != "0 1 2 3 4 5 6 7 8 9 10" {
				t.Errorf("receipts %s", got)
			}
			_, err = s.PruneBackups(keep, 90*day)
			must(t, err)
			left, err := s.Backups()
			must(t, err)
			if len(left) != keep || !slices.ContainsFunc(left, func(b Backup) bool { return b.Name == last }) {
				t.Errorf("the newest backup is %s, left are %v", last, left)
			}
		})
	}
}
