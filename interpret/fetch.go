package interpret

import (
	"context"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Stocked reports, as a fault, what a score needs from elsewhere and is not here.
func (t *Table) Stocked(ctx context.Context, s score.Score) error {
	st := ScoreStatus{Kind: s.Spec.Kind()}
	b, ok := t.find(s, &st)
	switch {
	case !ok:
		return topology.Faultf(topology.Code(st.Code), "%s", st.Message)
	case b.stocked == nil:
		return nil
	}
	return b.stocked(ctx, s.Spec)
}

// Follows reports whether s follows what may become another elsewhere.
func (t *Table) Follows(s score.Score) bool {
	if _, unread := s.Spec.(score.Opaque); unread || s.Spec == nil {
		return false
	}
	b := t.byKind[s.Spec.Kind()]
	return b.follows != nil && b.follows(s.Spec)
}

// Fetches reports whether s may need something from elsewhere. Of a kind whose specs may name
// large contents, those that name none do not.
func (t *Table) Fetches(s score.Score) bool {
	if u, ok := s.Spec.(score.BlobUser); ok && len(u.BlobRefs()) == 0 {
		return false
	}
	return t.byKind[s.Spec.Kind()].prefetch != nil
}

// Prefetch fetches what s needs from elsewhere, if its kind needs anything. The outcome
// is empty if nothing is missing.
func (t *Table) Prefetch(ctx context.Context, s score.Score) (st ScoreStatus) {
	st = ScoreStatus{ID: s.ID, Kind: s.Spec.Kind()}
	defer st.crashed()
	if _, unread := s.Spec.(score.Opaque); unread {
		return st // Play says so
	}
	if b, ok := t.byKind[st.Kind]; ok && b.prefetch != nil {
		if err := b.prefetch(ctx, s.Spec); err != nil {
			b.fault(&st, "cannot fetch what it needs", err)
		}
	}
	return st
}
