package agent

import (
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
)

// triggers is which change of each restarting score was the last, by score id. It is
// kept with the score that restarts, so that a crash between a change and the restart
// that it asks for loses nothing.
type triggers []trigger

type trigger struct {
	id      string
	applied uint64 // journal number of the last change; 0: never changed by us
}

func (g *gate) triggers() triggers {
	out := make(triggers, len(g.it.triggers))
	for i, t := range g.it.triggers {
		out[i].id = string(t.score.ID)
		if len(t.claims) > 0 {
			e, _ := g.Store.Owner(string(t.claims[0]))
			out[i].applied = e.Applied
		}
	}
	return out
}

func (ts triggers) String() string {
	parts := make([]string, len(ts))
	for i, t := range ts {
		parts[i] = t.id + "=" + strconv.FormatUint(t.applied, 10)
	}
	return strings.Join(parts, " ")
}

func parseTriggers(s string) map[string]uint64 {
	out := map[string]uint64{}
	for part := range strings.FieldsSeq(s) {
		id, n, _ := strings.Cut(part, "=")
		out[id], _ = strconv.ParseUint(n, 10, 64)
	}
	return out
}

// restart returns the change that restarts the score, if one of its triggers has
// changed since it was applied last. A score that no books know counts its triggers
// from nothing; one that only got a new trigger is not restarted for it.
func (g *gate) restart() *interpret.Change {
	if len(g.it.triggers) == 0 {
		return nil
	}
	e, owned := g.primary()
	was := parseTriggers(e.Triggers)
	for _, t := range g.triggers() {
		before, known := was[t.id]
		if (known || !owned) && before != t.applied {
			return &interpret.Change{Field: interpret.FieldRestart, Have: "before " + t.id, Want: "after " + t.id, Effect: interpret.Disrupt}
		}
	}
	return nil
}
