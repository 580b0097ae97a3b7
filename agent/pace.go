package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// pace holds back scores that fail again and again with the same wish: the next try
// comes after 1 s, 2 s, 4 s, … up to 5 min, and that of what could cut the device off after
// 1 min, 2 min, … up to 1 h. A new wish is tried at once.
//
// It does the same with scores that somebody else changes again and again: a device
// that fights wears out its disk and settles nothing.
type pace struct {
	mu    sync.Mutex
	past  map[topology.Mark]*past
	spent map[topology.Mark][]time.Time // changes that count for the limit of a score
	polls map[topology.Mark]time.Time   // when a score is to be looked at again
	opens time.Time                     // when a window opens, or a time is over, that something waits for; zero: none
}

// look makes a pass over a score due.
func (p *pace) look(mark topology.Mark, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.polls == nil {
		p.polls = map[topology.Mark]time.Time{}
	}
	p.polls[mark] = at
}

// tries is when a score that is held back is tried again; zero if none is.
func (p *pace) tries(mark topology.Mark) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.past[mark]; h != nil && h.awaiting {
		return h.next.UTC().Truncate(time.Second)
	}
	return time.Time{}
}

// due are the scores that may be tried again, or are to be looked at again. All tells that
// everything is. What is due is asked for once.
func (p *pace) due() (marks []topology.Mark, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if !p.opens.IsZero() && !p.opens.After(now) {
		p.opens, all = time.Time{}, true
	}
	for m, h := range p.past {
		if h.awaiting && !h.next.After(now) {
			h.awaiting = false
			marks = append(marks, m)
		}
	}
	for m, at := range p.polls {
		if !at.After(now) {
			delete(p.polls, m)
			marks = append(marks, m)
		}
	}
	return marks, all
}

// spend takes one change from what the limit of a score allows, or says when it will allow one.
func (p *pace) spend(mark topology.Mark, l *score.Limit) (again time.Time, ok bool) {
	if l == nil {
		return time.Time{}, true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	past := slices.DeleteFunc(p.spent[mark], func(at time.Time) bool { return now.Sub(at) >= time.Duration(l.Per) })
	if len(past) >= l.Changes {
		return past[len(past)-l.Changes].Add(time.Duration(l.Per)), false
	}
	if p.spent == nil {
		p.spent = map[topology.Mark][]time.Time{}
	}
	p.spent[mark] = append(past, now)
	return time.Time{}, true
}

// reopens makes a pass over everything due.
func (p *pace) reopens(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !at.IsZero() && (p.opens.IsZero() || at.Before(p.opens)) {
		p.opens = at
	}
}

// past is what came of the last tries of one wish.
type past struct {
	wish     string
	failed   int                   // tries in a row
	last     interpret.ScoreStatus // of the last of them
	drifted  int                   // corrections in a row
	drift    string                // what the last of them corrected
	same     int                   // how many in a row corrected the same
	changed  time.Time             // when the last of them was made
	next     time.Time             // no try before it
	gaveUp   bool                  // no try at all until the wish is another
	awaiting bool                  // a pass is due at next
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute

	cuttingRetry     = time.Minute   // of what could cut the device off: each try takes its link down, also one that fails
	lastCuttingRetry = time.Hour     // the network daemon brings up by itself what was up before
	cutOffRetry      = 6 * time.Hour // after a change was taken back because it cut the device off

	freeCorrections = 5           // in a row, without a pause
	quietFor        = time.Minute // ends the row, or twice the pause if that is longer
)

// A tempo is how long a score is left alone: after it failed first, after it was corrected once too
// often, and at most; zero: firstRetry and lastRetry.
type tempo struct {
	failed, drifted, longest time.Duration
	retries                  *int // how often it is tried again at all; nil: for ever
}

// pause is how long to wait after the n-th time.
func (t tempo) pause(n int, first time.Duration) time.Duration {
	first = cmp.Or(first, firstRetry)
	return min(first<<min(n-1, 16), max(cmp.Or(t.longest, lastRetry), first))
}

// after is how long to wait after the n-th failure. What was taken back because it cut the device
// off does so again with every try.
func (t tempo) after(n int, st interpret.ScoreStatus) time.Duration {
	if st.Outcome == interpret.RolledBack || topology.Code(st.Code) == topology.CodeConnectivity {
		return t.pause(n, max(cutOffRetry, t.failed))
	}
	return t.pause(n, t.failed)
}

// holds says what to report instead of trying, if it is too early.
func (p *pace) holds(mark topology.Mark, wish string) (interpret.Verdict, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.past[mark]
	switch {
	case h == nil || h.wish != wish:
		return interpret.Verdict{}, false
	case h.gaveUp:
		return interpret.Verdict{Outcome: h.last.Outcome, Code: interpret.CodeGaveUp,
			Message: fmt.Sprintf("%s; it was tried %d times, as often as the score allows, and is left alone until something about it is new", h.last.Message, h.failed)}, true
	case time.Until(h.next) <= 0:
		return interpret.Verdict{}, false
	}
	at := h.next.UTC().Format(time.TimeOnly) // the same in every pass until then: a report that says nothing new is not sent
	if h.failed > 0 {
		return interpret.Verdict{Outcome: h.last.Outcome, Code: h.last.Code, Message: fmt.Sprintf("%s; next try at %s UTC", h.last.Message, at)}, true
	}
	if h.same > freeCorrections && len(h.last.Changes) > 0 {
		c := h.last.Changes[0]
		return interpret.Verdict{Outcome: interpret.Drifted, Code: interpret.CodeContested,
			Message: fmt.Sprintf("somebody sets %s to %q again and again, and the score wants %q: it was corrected %d times in a row; next time at %s UTC", c.Field, c.Have, c.Want, h.drifted, at)}, true
	}
	return interpret.Verdict{Outcome: interpret.Drifted, Code: interpret.CodeFlapping,
		Message: fmt.Sprintf("it does not stay as it is made, again and again: it was corrected %d times in a row; next time at %s UTC", h.drifted, at)}, true
}

// failure is what came of the last try of a wish, if it failed.
func (p *pace) failure(mark topology.Mark, wish string) (interpret.ScoreStatus, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.past[mark]; h != nil && h.wish == wish && h.failed > 0 {
		return h.last, true
	}
	return interpret.ScoreStatus{}, false
}

// How a score was played in one pass.
type effort int

const (
	looked effort = iota // nothing was tried
	tried
	held     // by its pace
	fetching // it will be tried when what it needs is here
)

// note takes in what came of a score.
func (p *pace) note(mark topology.Mark, wish string, st interpret.ScoreStatus, e effort, t tempo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.past[mark]
	if h == nil && e == looked && st.Outcome == interpret.Unchanged {
		return // as nearly always
	}
	if st.Outcome == interpret.Failed && topology.Code(st.Code) == topology.CodeChanged {
		// Somebody was writing it: the event of that is the next try, or a look in a moment.
		if p.polls == nil {
			p.polls = map[topology.Mark]time.Time{}
		}
		p.polls[mark] = time.Now().Add(firstRetry)
		return
	}
	if h == nil || h.wish != wish {
		h = &past{wish: wish}
	}
	now := time.Now()
	h.awaiting = e == held && !h.gaveUp
	switch {
	case e == held, e == fetching:
	case st.Outcome == interpret.Failed, e == tried && !st.Outcome.Converged():
		h.failed++
		h.last, h.next = st, now.Add(t.after(h.failed, st))
		h.gaveUp = t.retries != nil && h.failed > *t.retries
		h.awaiting = !h.gaveUp
	case st.Outcome == interpret.Changed && st.Cause == interpret.CauseDrift:
		if h.failed = 0; h.over(now) {
			h.drifted = 0
		}
		h.drifted++
		if what := fmt.Sprint(st.Changes); what == h.drift {
			h.same++
		} else {
			h.drift, h.same = what, 1
		}
		h.last = st
		h.changed, h.next = now, now
		if n := h.drifted - freeCorrections; n > 0 {
			h.next = now.Add(t.pause(n, t.drifted))
		}
	case st.Outcome == interpret.Unchanged && h.drifted > 0 && !h.over(now): // for how long?
		h.failed = 0
	default:
		delete(p.past, mark)
		return
	}
	if p.past == nil {
		p.past = map[topology.Mark]*past{}
	}
	p.past[mark] = h
}

// over reports whether corrections made from now on are another row.
func (h *past) over(now time.Time) bool {
	return now.Sub(h.changed) > max(quietFor, 2*h.next.Sub(h.changed))
}

// next is when the first score that is held back may be tried again; zero if none is.
func (p *pace) next() (at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at = p.opens
	for _, poll := range p.polls {
		if at.IsZero() || poll.Before(at) {
			at = poll
		}
	}
	for _, h := range p.past {
		if h.awaiting && (at.IsZero() || h.next.Before(at)) {
			at = h.next
		}
	}
	return at
}

// keep drops what is not in marks.
func (p *pace) keep(marks map[topology.Mark]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	unknown := func(m topology.Mark) bool {
		of, removal := strings.CutPrefix(string(m), removalPrefix)
		return !marks[m] && !removal || removal && marks[topology.Mark(of)] // it is wanted again
	}
	maps.DeleteFunc(p.past, func(m topology.Mark, _ *past) bool { return unknown(m) })
	maps.DeleteFunc(p.spent, func(m topology.Mark, _ []time.Time) bool { return unknown(m) })
	maps.DeleteFunc(p.polls, func(m topology.Mark, _ time.Time) bool { return unknown(m) })
}
