package agent

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// triggers is which change of each triggering score was the last, by its resource. It is
// kept with the score that is triggered, so that a crash between a change and the restart
// that it asks for loses nothing.
type triggers []trigger

type trigger struct {
	id      score.ID
	about   string // the resource, which outlives names
	applied uint64 // journal number of the last change; 0: never changed by us
	reload  bool
}

func (g *gate) triggers() triggers {
	out := make(triggers, len(g.it.triggers))
	for i, t := range g.it.triggers {
		out[i].id, out[i].reload = t.score.ID, t.reload
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

// parseTriggers reads what is kept; field is what did not come to its end, empty if nothing.
func parseTriggers(s string) (last map[string]uint64, field string) {
	if rest, failed := strings.CutPrefix(s, interrupted); failed {
		s, field = rest, interpret.FieldRestart
	} else if rest, failed := strings.CutPrefix(s, unreloaded); failed {
		s, field = rest, interpret.FieldReload
	}
	last = map[string]uint64{}
	for part := range strings.FieldsSeq(s) {
		about, n, _ := strings.Cut(part, "=")
		last[about], _ = strconv.ParseUint(n, 10, 64)
	}
	return last, field
}

// Kept with triggers, or instead of them: interrupted before those of an action that
// failed, unreloaded before those of one that only was to make it read again, quiet if
// nothing else restarts the score.
const (
	interrupted = "!"
	unreloaded  = "~"
	quiet       = "-"
)

// unfinished is what is kept before the triggers of an action that failed.
func unfinished(a interpret.Action) string {
	if onlyTriggered(a.Changes, interpret.FieldReload) {
		return unreloaded
	}
	return interrupted
}

// onlyTriggered reports whether an action is nothing but what a trigger asked for.
func onlyTriggered(changes []interpret.Change, field string) bool {
	return !slices.ContainsFunc(changes, func(c interpret.Change) bool { return c.Field != field })
}

// settled is what is kept with a score that is as it should be; empty if it is not of
// a kind that can be restarted, and uses no secrets.
func (g *gate) settled() string {
	if !g.restarts() {
		return g.secrets
	}
	return withSecrets(cmp.Or(g.triggers().String(), quiet), g.secrets)
}

// restarts reports whether the score is of a kind that can be restarted.
func (g *gate) restarts() bool {
	_, ok := g.it.score.Spec.(score.Restarter)
	return ok
}

// restart returns the change that restarts the score, or makes it read its configuration
// again, if one of its triggers has changed since it was applied last; that is a new wish,
// too. A restart reads everything, so there is one change at most. A score that no books
// know counts its triggers from nothing; one that only got a new trigger is not restarted
// for it.
//
// A score whose last action did not come to its end is restarted too: what describes it may
// be new and what runs may be old, and nobody could see that. Where that action was to make
// it read again, and no more, it is made to read again: a restart with a configuration that
// it could not read would end what still runs.
func (g *gate) restart() (change *interpret.Change, renewed bool) {
	if !g.restarts() {
		return nil, false
	}
	e, owned := g.primary()
	was, unfinished := parseTriggers(e.Triggers)
	for _, t := range g.triggers() {
		before, known := was[t.about]
		switch {
		case !known && owned || before == t.applied:
		case !t.reload:
			return triggered(interpret.FieldRestart, "before "+string(t.id), "after "+string(t.id)), true
		case change == nil:
			change, renewed = triggered(interpret.FieldReload, "before "+string(t.id), "after "+string(t.id)), true
		}
	}
	switch {
	case !owned:
	case unfinished == interpret.FieldRestart, g.Store.IsOpen(e.Resource): // of a crash nobody knows how far it was
		return triggered(interpret.FieldRestart, "interrupted", "restarted"), renewed
	case unfinished == interpret.FieldReload && change == nil:
		return triggered(interpret.FieldReload, "interrupted", "read again"), false
	}
	return change, renewed
}

func triggered(field, have, want string) *interpret.Change {
	e := interpret.Disrupt
	if field == interpret.FieldReload {
		e = interpret.Mutate
	}
	return &interpret.Change{Field: field, Have: have, Want: want, Effect: e}
}

// unread are the triggers whose last change the score has not taken in: it was not restarted
// since, or that failed.
func (g *gate) unread() (out []*item) {
	e, owned := g.primary()
	if !owned || !g.restarts() {
		return nil
	}
	was, unfinished := parseTriggers(e.Triggers)
	for i, t := range g.triggers() {
		if before, known := was[t.about]; known && (unfinished != "" || before != t.applied) {
			out = append(out, g.it.triggers[i].item)
		}
	}
	return out
}

// hanging is the change that restarts a score whose liveness fails.
func hanging() *interpret.Change {
	return triggered(interpret.FieldRestart, "hangs", "restarted")
}
