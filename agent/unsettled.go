package agent

import (
	"fmt"
	"slices"

	"github.com/continuo-fleet/continuo/interpret"
)

// CodeLast is of what is left over, and goes when all that may come in its place is there.
const CodeLast interpret.Code = "goes_last"

// unsettled says which score has to converge before what a manifest no longer names is collected;
// empty: none. All of that manifest have to, and all of the others that the policies do not leave to a
// person: what failed, or is still to be made, may be what comes in the place of what would go. A dry
// pass takes for true what it would make true.
func (p *pass) unsettled() func(manifest string) string {
	if len(p.plan.back) > 0 {
		return func(string) string { return "a manifest is rolled back" }
	}
	first, of := "", map[string]string{} // the first that everything waits for, and that its own manifest does
	settled := map[*item]bool{}
	for _, it := range p.plan.items() { // needs first
		settled[it] = it.status.Converged() || p.dry && it.action.Decision == interpret.DecideApply && all(it.needs, settled)
		if settled[it] {
			continue
		}
		why := fmt.Sprintf("%s has not converged", it.mark())
		if of[it.manifest.name] == "" {
			of[it.manifest.name] = why
		}
		if first == "" && !(left(it) && all(it.needs, settled)) {
			first = why
		}
	}
	return func(manifest string) string {
		if first != "" {
			return first
		}
		return of[manifest]
	}
}

// cleared reports whether one of the orphans waited for what has converged since.
func (p *pass) cleared(orphans []interpret.Orphan) bool {
	unsettled := p.unsettled()
	return slices.ContainsFunc(orphans, func(o interpret.Orphan) bool { return o.Code == CodeLast && unsettled(o.Manifest) == "" })
}

// left reports whether its policy, or its window, leaves to a person or to another time what is there
// already: nothing went wrong with it.
func left(it *item) bool {
	a := it.action
	return (a.Decision == interpret.DecidePending || a.Decision == interpret.DecideReport) && a.Action != interpret.ActionCreate
}

func all(items []*item, are map[*item]bool) bool {
	return !slices.ContainsFunc(items, func(it *item) bool { return !are[it] })
}
