package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// An identity is who reports as a device: the board, and the start of an agent on it.
type identity struct{ serial, instance string }

// A sighting is an identity that was heard.
type sighting struct {
	identity
	last  time.Time
	backs int // how often it was heard again after another one
}

// maxSightings of one device are remembered: an agent that restarts all the time must not fill the memory.
const maxSightings = 8

// maxBacks heartbeats of an agent that another one had replaced prove that there are two: one that restarts never comes
// back. A single one may have been overtaken on the way, unless it is of another board.
const maxBacks = 2

// A crowd is who reports as one device.
type crowd struct {
	all  sightings
	ours sightings // those on the board that was enrolled
}

// hear notes a heartbeat, and gives what its sender is told. enrolled is the serial number of the board that the device
// was enrolled with; empty if that is not known.
func (c *crowd) hear(who identity, enrolled string, now time.Time) (conflict string) {
	c.all = c.all.hear(who, now)
	switch {
	case enrolled == "" || who.serial == "":
		if c.all.several() {
			return wire.ConflictHold // nobody can say which of them is the device
		}
	case who.serial != enrolled:
		return wire.ConflictHold // also when it is alone: the card is in a board that nobody let in
	default:
		c.ours = c.ours.hear(who, now)
		if c.ours.several() {
			return wire.ConflictHold
		}
		if c.all.several() || slices.ContainsFunc(c.all, func(s sighting) bool { return s.serial != enrolled && s.serial != "" }) {
			return wire.ConflictOther
		}
	}
	return ""
}

// sightings are sorted: what was heard last is at the end.
type sightings []sighting

// hear notes a heartbeat. Who was not heard for a while is gone: a device that was booted, or whose card is in another
// board now.
func (c sightings) hear(who identity, now time.Time) sightings {
	c = slices.DeleteFunc(c, func(s sighting) bool { return now.Sub(s.last) > wire.AliveTTL && s.identity != who })
	i := slices.IndexFunc(c, func(s sighting) bool { return s.identity == who })
	if i < 0 {
		if len(c) == maxSightings {
			c = slices.Delete(c, 0, 1)
		}
		return append(c, sighting{identity: who, last: now})
	}
	s := c[i]
	s.last = now
	switch {
	case len(c) == 1:
		s.backs = 0
	case i < len(c)-1:
		s.backs++
	}
	return append(slices.Delete(c, i, i+1), s)
}

// several reports whether it is certain that there is more than one.
func (c sightings) several() bool {
	board, boards := "", false
	for _, s := range c {
		boards = boards || board != "" && s.serial != "" && s.serial != board
		board = cmp.Or(s.serial, board)
	}
	return slices.ContainsFunc(c, func(s sighting) bool { return s.backs >= maxBacks || boards && s.backs > 0 })
}

// conflictReason says for people what the last heartbeat of a device tells of a conflict.
func conflictReason(h Heartbeat) string {
	from := ""
	if h.Serial != "" {
		from = " (heard last: board " + h.Serial + ")"
	}
	if h.Conflict == wire.ConflictOther {
		return "identity_conflict: another agent reports under its name, as a copied card does, and was told to change nothing; give that one an identity of its own"
	}
	return "identity_conflict: it cannot be told who of those that report under its name it is, as with a copied card or a card in another board; none of them changes anything" + from + ": give each an identity of its own"
}
