package agent

import (
	"context"
	"slices"
)

// prefetch gets what new scores need from elsewhere, before anything is touched. It can
// be given up at any time.
func (p *pass) prefetch(ctx context.Context, items []*item) {
	fresh := slices.DeleteFunc(slices.Clone(items), func(it *item) bool {
		e, owned := p.gate(it).primary()
		w, _ := p.plan.rival(it, p.owner)
		return it.problem != "" || len(it.claims) == 0 || owned && e.SpecDigest == it.digest || w != nil
	})
	if len(fresh) == 0 {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.halt != nil {
		over := make(chan struct{})
		defer close(over)
		go func() {
			select {
			case <-p.halt:
				cancel()
			case <-over:
			}
		}()
	}
	p.each(fresh, func(it *item) {
		wish := p.gate(it).wish()
		if _, early := p.pace.holds(it.mark(), wish); early || p.halted() {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, scoreTimeout)
		defer cancel()
		st := p.Table.Prefetch(ctx, it.score)
		if st.Outcome == "" || p.halted() {
			return
		}
		it.status = st
		p.pace.note(it.mark(), wish, st, tried)
	})
}
