package agent

import (
	"fmt"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// pace holds back scores that fail again and again with the same wish: the next try
// comes after 1 s, 2 s, 4 s, … up to 5 min. A new wish is tried at once.
//
// It does the same with scores that somebody else changes again and again: a device
// that fights wears out its disk and settles nothing.
type pace struct {
	mu    sync.Mutex
	past  map[topology.Mark]*past
	opens time.Time // when a window opens that something waits for; zero: none
}

// reopens makes a pass due when a window opens.
func (p *pace) reopens(at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !at.IsZero() && (p.opens.IsZero() || at.Before(p.opens) || p.opens.Before(time.Now())) {
		p.opens = at
	}
}

// past is what came of the last tries of one wish.
type past struct {
	wish     string
	failed   int                   // tries in a row
	last     interpret.ScoreStatus // of the last of them
	drifted  int                   // corrections in a row
	changed  time.Time             // when the last of them was made
	next     time.Time             // no try before it
	awaiting bool                  // a pass is due at next
}

const (
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute

	freeCorrections = 5           // in a row, without a pause
	quietFor        = time.Minute // ends the row, or twice the pause if that is longer
)

// pause is how long to wait after the n-th time.
func pause(n int) time.Duration { return min(firstRetry<<min(n-1, 16), lastRetry) }

// holds says what to report instead of trying, if it is too early.
func (p *pace) holds(mark topology.Mark, wish string) (interpret.Verdict, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.past[mark]
	if h == nil || h.wish != wish || time.Until(h.next) <= 0 {
		return interpret.Verdict{}, false
	}
	at := h.next.UTC().Format(time.TimeOnly) // the same in every pass until then: a report that says nothing new is not sent
	if h.failed > 0 {
		return interpret.Verdict{Outcome: h.last.Outcome, Code: h.last.Code, Message: fmt.Sprintf("%s; next try at %s UTC", h.last.Message, at)}, true
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
func (p *pace) note(mark topology.Mark, wish string, st interpret.ScoreStatus, e effort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.past[mark]
	if h == nil || h.wish != wish {
		h = &past{wish: wish}
	}
	now := time.Now()
	h.awaiting = e == held
	switch {
	case e == held, e == fetching:
	case st.Outcome == interpret.Failed, e == tried && !st.Outcome.Converged():
		h.failed++
		h.last, h.next, h.awaiting = st, now.Add(pause(h.failed)), true
	case st.Outcome == interpret.Changed && st.Cause == interpret.CauseDrift:
		if h.failed = 0; h.over(now) {
			h.drifted = 0
		}
		h.drifted++
		h.changed, h.next = now, now
		if n := h.drifted - freeCorrections; n > 0 {
			h.next = now.Add(pause(n))
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

// unfulfilled reports whether a wish failed before it was ever true.
func (p *pace) unfulfilled(mark topology.Mark, digest string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.past[mark]
	return h != nil && h.failed > 0 && h.last.SpecDigest == digest && h.last.Cause == interpret.CauseIntent
}

// next is when the first score that is held back may be tried again; zero if none is.
func (p *pace) next() (at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opens.After(time.Now()) {
		at = p.opens
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
	for m := range p.past {
		if !marks[m] {
			delete(p.past, m)
		}
	}
}
