package agent

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// triggers is which change of each restarting score was the last, by its resource. It is
// kept with the score that restarts, so that a crash between a change and the restart
// that it asks for loses nothing.
type triggers []trigger

type trigger struct {
	id      score.ID
	about   string // the resource, which outlives names
	applied uint64 // journal number of the last change; 0: never changed by us
}

func (g *gate) triggers() triggers {
	out := make(triggers, len(g.it.triggers))
	for i, t := range g.it.triggers {
		out[i].id = t.score.ID
		if len(t.claims) > 0 {
			out[i].about = url.QueryEscape(string(t.claims[0]))
			e, _ := g.Store.Owner(string(t.claims[0]))
			out[i].applied = e.Applied
		}
	}
	return out
}

func (ts triggers) String() string {
	parts := make([]string, len(ts))
	for i, t := range ts {
		parts[i] = t.about + "=" + strconv.FormatUint(t.applied, 10)
	}
	return strings.Join(parts, " ")
}

func parseTriggers(s string) (last map[string]uint64, failed bool) {
	s, failed = strings.CutPrefix(s, interrupted)
	last = map[string]uint64{}
	for part := range strings.FieldsSeq(s) {
		about, n, _ := strings.Cut(part, "=")
		last[about], _ = strconv.ParseUint(n, 10, 64)
	}
	return last, failed
}

// Kept with triggers, or instead of them: interrupted before those of an action that
// failed, quiet if nothing else restarts the score.
const (
	interrupted = "!"
	quiet       = "-"
)

// settled is what is kept with a score that is as it should be; empty if it is not of
// a kind that can be restarted.
func (g *gate) settled() string {
	if !g.restarts() {
		return ""
	}
	return cmp.Or(g.triggers().String(), quiet)
}

// restarts reports whether the score is of a kind that can be restarted.
func (g *gate) restarts() bool {
	_, ok := g.it.score.Spec.(score.Restarter)
	return ok
}

// restart returns the change that restarts the score, if one of its triggers has
// changed since it was applied last; that is a new wish, too. A score that no books
// know counts its triggers from nothing; one that only got a new trigger is not
// restarted for it.
//
// A score whose last action did not come to its end is restarted too: what describes
// it may be new and what runs may be old, and nobody could see that.
func (g *gate) restart() (change *interpret.Change, renewed bool) {
	if !g.restarts() {
		return nil, false
	}
	because := func(have, want string) *interpret.Change {
		return &interpret.Change{Field: interpret.FieldRestart, Have: have, Want: want, Effect: interpret.Disrupt}
	}
	e, owned := g.primary()
	was, failed := parseTriggers(e.Triggers)
	for _, t := range g.triggers() {
		before, known := was[t.about]
		if (known || !owned) && before != t.applied {
			return because("before "+string(t.id), "after "+string(t.id)), true
		}
	}
	if owned && (failed || g.Store.IsOpen(e.Resource)) {
		return because("interrupted", "restarted"), false
	}
	return nil, false
}

// unread are the triggers whose last change the score has not taken in: it was not restarted
// since, or that failed.
func (g *gate) unread() (out []*item) {
	e, owned := g.primary()
	if !owned || !g.restarts() {
		return nil
	}
	was, failed := parseTriggers(e.Triggers)
	for i, t := range g.triggers() {
		if before, known := was[t.about]; known && (failed || before != t.applied) {
			out = append(out, g.it.triggers[i])
		}
	}
	return out
}

// hanging is the change that restarts a score whose liveness fails.
func hanging() *interpret.Change {
	return &interpret.Change{Field: interpret.FieldRestart, Have: "hangs", Want: "restarted", Effect: interpret.Disrupt}
}
