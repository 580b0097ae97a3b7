package agent

import (
	"context"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// Contents are the large contents that a device has fetched.
type Contents interface {
	// Keep removes those that are not needed, and gives the bytes that are free now. It fails at once while one is
	// being fetched.
	Keep(ctx context.Context, needed func(sha256 string) bool) (freed int64, err error)
}

// keepContents removes the contents that neither what was accepted, nor what is in force, nor a last good version names:
// when another plan came into force, and else now and then, because versions become good.
func (a *Agent) keepContents(ctx context.Context, present, force *plan) {
	if a.Contents == nil || a.contentsOf == force && time.Since(a.contentsAt) < surveyEvery {
		return
	}
	needed := map[string]bool{}
	for _, pl := range []*plan{present, force} {
		for _, it := range pl.items() {
			needs(needed, it.score)
		}
	}
	for _, name := range a.Runner.Store.Goods() {
		m, ok := a.Runner.good(name)
		if !ok {
			continue
		}
		for _, s := range m.Spec.Scores {
			needs(needed, s)
		}
	}
	freed, err := a.Contents.Keep(ctx, func(sha256 string) bool { return needed[sha256] })
	if err != nil {
		a.Log.WithError(err).Debug("cannot remove contents that are not needed any more; it is tried again")
		return
	}
	if freed > 0 {
		a.Log.WithField("bytes", freed).Info("removed contents that are not needed any more")
	}
	a.contentsOf, a.contentsAt = force, time.Now()
}

func needs(out map[string]bool, s score.Score) {
	if user, ok := s.Spec.(score.BlobUser); ok {
		for _, ref := range user.BlobRefs() {
			out[ref.SHA256] = true
		}
	}
}
