package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// Images are those that a device has fetched.
type Images interface {
	// CollectImages removes those that nothing uses, but for keep, and names them.
	CollectImages(ctx context.Context, keep []string) (removed []string, err error)
}

// keepImages removes the images that neither what was accepted, nor what is in force, nor a last good version names:
// when another plan came into force, and else now and then, because tags move and versions become good. Where there
// were none and are none, nobody is asked.
func (a *Agent) keepImages(ctx context.Context, present, force *plan) {
	if a.Images == nil || a.imagesOf == force && time.Since(a.imagesAt) < surveyEvery {
		return
	}
	needed := map[string]bool{}
	keep := func(s score.Score) {
		if s.Spec != nil {
			for _, image := range score.TouchedBy(s.Spec).Images {
				needed[image] = true
			}
		}
	}
	for _, pl := range []*plan{present, force} {
		for _, it := range pl.items() {
			keep(it.score)
		}
	}
	for _, name := range a.Runner.Store.Goods() {
		m, ok := a.Runner.good(name)
		if !ok {
			return // what it needs is not known
		}
		for _, s := range m.Spec.Scores {
			keep(s)
		}
	}
	if len(needed) > 0 || a.hadImages || a.imagesOf == nil {
		gone, err := a.Images.CollectImages(ctx, slices.Sorted(maps.Keys(needed)))
		if err != nil {
			a.Log.WithError(err).Debug("cannot remove images that are not needed any more; it is tried again")
		}
		if len(gone) > 0 {
			a.Log.WithField("images", gone).Info("removed images that are not needed any more")
		}
	}
	a.hadImages, a.imagesOf, a.imagesAt = len(needed) > 0, force, time.Now()
}
