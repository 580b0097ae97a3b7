package natslink

import (
	"errors"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A conflict is what is known of others that report under the name of this device. The control service sees all of them,
// and may know which is the one that was enrolled; a status that somebody else replaced is seen without it.
type conflict struct {
	told     string // what the control service said last
	replaced bool   // another one replaced our status, and we gave way
}

func (c conflict) any() bool { return c.told != "" || c.replaced }

// holds reports whether this agent is to change nothing. A word that is not known holds.
func (c conflict) holds() bool {
	return c.replaced || c.told != "" && c.told != wire.ConflictOther
}

var errGaveWay = errors.New("cannot report: " + gaveWay)

const (
	gaveWay   = "identity_conflict: another agent reports under the name of this device, as a copied card does: this one reports and changes nothing any more; give one of the two an identity of its own, and restart this agent"
	toldHold  = "identity_conflict: others report under the name of this device, or this is not the board that was enrolled under it, as with a copied card: this agent only observes and reports until its fleet says that there is one; give each an identity of its own (continuo device enroll)"
	toldOther = "identity_conflict: another agent reports under the name of this device, as a copied card does; it was told to change nothing, and this one goes on: give that one an identity of its own (continuo device enroll)"
)

// heardOfConflict takes what a signed answer says. What the control service says ends what this agent found out by itself:
// it sees all of them.
func (l *Link) heardOfConflict(word string) {
	l.mu.Lock()
	was := l.conflict
	l.conflict.told = word
	if word == wire.ConflictOther || word == "" && was.told != "" {
		l.conflict.replaced = false
	}
	now := l.conflict
	l.mu.Unlock()
	if was == now {
		return
	}
	l.h.Resolved(CodeConflict) // in other words
	switch {
	case now.replaced:
		l.problem(CodeConflict, gaveWay)
	case now.told == wire.ConflictOther:
		l.problem(CodeConflict, toldOther)
	case now.told != "":
		l.problem(CodeConflict, toldHold)
	}
	if was.replaced && !now.replaced {
		signal(l.check) // the last report is stored again
	}
}

// givesWay reports whether somebody else is to report as this device.
func (l *Link) givesWay() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conflict.replaced
}

// cloned notes that another agent replaced our status. Of two agents with one identity, the one that came first gives way
// and says so, unless the control service said that it is the device.
func (l *Link) cloned() (gives bool) {
	l.mu.Lock()
	gives = l.conflict.told != wire.ConflictOther
	known := l.conflict.replaced
	l.conflict.replaced = gives
	l.mu.Unlock()
	if gives && !known {
		l.problem(CodeConflict, gaveWay)
		l.control()
		signal(l.beat)
	}
	return gives
}
