package agent

import (
	"context"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
)

// fetchTimeout bounds what one score needs from elsewhere. Large images take long on
// slow lines; who fetches them knows better when nothing comes any more.
const fetchTimeout = 2 * time.Hour

// fresh are the items that may need something from elsewhere before they can be played:
// they are new to the books, or another than the books know. For what the device does not let be
// played nothing is fetched: that would spend its secrets and its disk on it.
func (p *pass) fresh(items []*item) []*item {
	return slices.DeleteFunc(slices.Clone(items), func(it *item) bool {
		if it.problem != "" || len(it.claims) == 0 || it.engine().Noop || it.score.Decommission || !p.Table.Fetches(it.score) {
			return true
		}
		if _, _, refused := p.Ceiling.Refuses(it.score); refused {
			return true
		}
		e, owned := p.gate(it).primary()
		w, _ := p.rival(it)
		return owned && e.SpecDigest == it.digest || w != nil
	})
}

// prefetch finds out whether what fresh items need is here, before anything is touched.
// An item that lacks it gets its status now.
func (p *pass) prefetch(ctx context.Context, items []*item) {
	p.lanes.each(p.fresh(items), func(it *item) {
		defer p.progressed()
		wish := p.gate(it).wish()
		if _, early := p.pace.holds(it.mark(), wish); early {
			it.unfetched = true
			return
		}
		if p.fetcher != nil {
			it.status, it.effort = p.fetcher.result(p, it, wish)
		} else if st := p.fetch(ctx, it); st.Outcome != "" {
			it.status, it.effort = st, tried
		}
		it.unfetched = it.status.Outcome != ""
	})
}

// fetch gets what it needs; the outcome is empty if that is here now.
func (r *Runner) fetch(ctx context.Context, it *item) interpret.ScoreStatus {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return r.Table.Prefetch(ctx, it.score)
}
