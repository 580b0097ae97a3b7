package authority

import (
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// Windows returns every window that changes of a score wait for, the nearest first. All
// of them must be open.
func Windows(ceiling *score.Policy, manifest score.Policy, of *score.Policy) []score.Window {
	var all []score.Window
	for _, p := range []*score.Policy{of, &manifest, ceiling} {
		if p != nil && p.Window != nil {
			all = append(all, *p.Window)
		}
	}
	return all
}

// Open reports whether all windows are open at now, and that this stays so until changes,
// when it is to be asked again; a zero time means for ever. If there is none, it is always
// open. A window that cannot be read is never open.
//
// A window is a time on the clock on the wall, in the zone of now: from 02:30 for two
// hours is until the clock shows 04:30, also in the night in which the clock goes from
// 02:00 to 03:00 or from 03:00 back to 02:00. An hour that the clock leaves out is not
// missed, one that it shows twice is in the window twice.
func Open(windows []score.Window, now time.Time) (open bool, changes time.Time) {
	open, changes = state(windows, now)
	for range furthest {
		if changes.IsZero() {
			break
		}
		next, then := state(windows, changes)
		if next != open {
			break
		}
		changes = then
	}
	return open, changes
}

// furthest bounds the work for windows that open more often than they close.
const furthest = 64

// state looks at each window; nothing changes before changes, and nothing has to then.
func state(windows []score.Window, now time.Time) (open bool, changes time.Time) {
	open = true
	for _, w := range windows {
		is, until := one(w, now)
		open = open && is
		if changes.IsZero() || !until.IsZero() && until.Before(changes) {
			changes = until
		}
	}
	return open, changes
}

// one looks at one window as if the clock would never be put forward or back, and
// looks again when it is.
func one(w score.Window, now time.Time) (open bool, changes time.Time) {
	name, offset := now.Zone()
	_, put := now.ZoneBounds()
	wall := now.In(time.FixedZone(name, offset))
	length := time.Duration(w.Duration)
	if length <= 0 {
		return false, time.Time{}
	}
	changes = w.Next(wall.Add(-length)) // the first opening that has not closed again
	switch {
	case changes.IsZero():
		return false, time.Time{} // there is no such day, whatever the clock does
	case !changes.After(wall):
		open, changes = true, changes.Add(length)
	}
	if !put.IsZero() && put.Before(changes) {
		changes = put
	}
	return open, changes.In(now.Location())
}
