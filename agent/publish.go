package agent

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// publish makes st the status of the device and wakes the delivery, if st says
// something new.
func (a *Agent) publish(st interpret.DeviceStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.replace(st)
}

// replace is publish with the lock held.
func (a *Agent) replace(st interpret.DeviceStatus) {
	st.Device, st.Agent, st.Problems = a.Device, a.Identity, slices.Clone(a.problems)
	st.Unmanaged, st.UnmanagedMore = unmanaged(a.others, a.plan)
	if same(st, a.status) {
		return
	}
	a.status = st
	signal(a.outbox)
}

// republish publishes what is known already with the problems of now. Before the first
// pass nothing is known.
func (a *Agent) republish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.Kind != "" {
		a.replace(a.status)
	}
}

// publishRunning says that pl is under way.
func (a *Agent) publishRunning(pl *plan) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.status.Generation == pl.intent.Generation && a.status.Digest == pl.intent.Digest {
		return // a pass over what is known already is no news
	}
	a.replace(a.underway(a.status, pl))
}

// underway is what is said of pl before it was played: how things are, which st tells,
// and what is being fetched. What st points to stays as it is.
func (a *Agent) underway(st interpret.DeviceStatus, pl *plan) interpret.DeviceStatus {
	st.APIVersion, st.Kind = apiVersion, interpret.StatusKind
	st.Phase, st.State = interpret.PhaseRunning, interpret.StateConverging
	st.Started, st.Finished = now(), time.Time{}
	st.Generation, st.Digest = pl.intent.Generation, pl.intent.Digest
	st.Manifests = slices.Clone(st.Manifests)
	for _, s := range a.fetcher.underway(pl) {
		i, known := slices.BinarySearchFunc(st.Manifests, s.manifest.name, func(m interpret.ManifestStatus, name string) int { return cmp.Compare(m.Name, name) })
		if !known {
			st.Manifests = slices.Insert(st.Manifests, i, interpret.ManifestStatus{Name: s.manifest.name, Generation: s.manifest.generation})
		}
		m := &st.Manifests[i]
		m.Scores = slices.Clone(m.Scores)
		j, known := scoreAt(m.Scores, s.ID)
		if known {
			m.Scores[j] = s.ScoreStatus
		} else {
			m.Scores = slices.Insert(m.Scores, j, s.ScoreStatus)
		}
		m.State = interpret.Fold(m.Scores)
	}
	return st
}

// same compares two statuses without the times at which they were made.
func same(a, b interpret.DeviceStatus) bool {
	ms, ns := a.Manifests, b.Manifests
	for _, st := range []*interpret.DeviceStatus{&a, &b} {
		st.Started, st.Finished, st.Time, st.Agent.Sequence, st.Manifests = time.Time{}, time.Time{}, time.Time{}, 0, nil
	}
	return alike(a, b) && slices.EqualFunc(ms, ns, func(m, n interpret.ManifestStatus) bool {
		ss, ts := m.Scores, n.Scores
		m.Scores, n.Scores = nil, nil
		return alike(m, n) && len(ss) == len(ts) && (len(ss) == 0 || &ss[0] == &ts[0] || slices.EqualFunc(ss, ts, sameScore))
	})
}

// alike compares by value, as slowly as reflection does.
func alike(a, b any) bool { return reflect.DeepEqual(a, b) }

// sameScore is alike for what there are thousands of.
func sameScore(a, b interpret.ScoreStatus) bool {
	yes := func(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }
	c, d := a.Conditions, b.Conditions
	return a.ID == b.ID && a.Kind == b.Kind && a.Outcome == b.Outcome && a.Code == b.Code && a.Message == b.Message && a.Path == b.Path &&
		slices.Equal(a.Changes, b.Changes) && bytes.Equal(a.Observed, b.Observed) &&
		yes(c.Written, d.Written) && yes(c.Loaded, d.Loaded) && yes(c.Effective, d.Effective) && yes(c.Healthy, d.Healthy) &&
		a.SpecDigest == b.SpecDigest && a.ObservedGeneration == b.ObservedGeneration && a.LastChangedGeneration == b.LastChangedGeneration &&
		(a.Policy == b.Policy || alike(a.Policy, b.Policy)) && a.Cause == b.Cause && a.Authority == b.Authority && a.Backup == b.Backup && a.Since.Equal(b.Since) && a.NextTry.Equal(b.NextTry)
}

// deliver sends whenever there is something in box, again and again until it is stored.
func (a *Agent) deliver(ctx context.Context, box chan struct{}, send func(context.Context) error) {
	wait := time.Second
	for {
		select {
		case <-ctx.Done():
			return
		case <-box:
		}
		if err := send(ctx); err != nil && ctx.Err() == nil {
			a.Log.WithError(err).Debug("cannot report yet")
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait/2 + rand.N(wait)):
			}
			wait = min(2*wait, time.Minute)
			signal(box)
			continue
		}
		wait = time.Second
	}
}

// sendStatus hands the newest status to the link.
func (a *Agent) sendStatus(ctx context.Context) error {
	a.mu.Lock()
	a.Identity.Sequence++
	a.status.Agent.Sequence = a.Identity.Sequence
	st := a.status
	a.mu.Unlock()
	return a.Link.Report(ctx, st)
}

// log writes one line for every change, and for every score whose outcome is news. It
// tells whether the pass changed anything.
func (a *Agent) log(st interpret.DeviceStatus, gone []interpret.ReceiptAction) (changed bool) {
	last := a.last
	a.last = st
	for _, m := range st.Manifests {
		was := manifestOf(last, m.Name).Scores
		for i := range m.Scores {
			s := &m.Scores[i]
			at, known := i, i < len(was) && was[i].ID == s.ID // as nearly always
			if !known {
				at, known = scoreAt(was, s.ID)
			}
			news := !known || was[at].Outcome != s.Outcome || was[at].Code != s.Code
			changed = changed || s.Outcome == interpret.Changed
			if s.Outcome == interpret.Changed || news && s.Outcome != interpret.Unchanged {
				a.logScore(m, *s)
			}
		}
	}
	for _, g := range gone {
		text := "given up: it stays as it is"
		if g.Action == interpret.ActionRemove {
			text, changed = "removed", true
		}
		a.leftOver(g.Resources[0], g.Manifest, g.Score).WithFields(said(logrus.Fields{"cause": g.Cause, "authority": g.Authority})).Info(text)
	}
	for _, o := range st.Orphans {
		if !slices.Contains(last.Orphans, o) {
			a.leftOver(o.Resource, o.Manifest, o.Score).WithField("code", o.Code).Warn("no longer wanted, and left: " + o.Message)
		}
	}
	return changed
}

func (a *Agent) logScore(m interpret.ManifestStatus, s interpret.ScoreStatus) {
	e := a.Log.WithFields(said(logrus.Fields{"manifest": m.Name, "score": s.ID, "kind": s.Kind, "outcome": s.Outcome, "generation": m.Generation, "code": s.Code}))
	switch s.Outcome {
	case interpret.Changed:
		fields := make([]string, len(s.Changes))
		for i, c := range s.Changes {
			fields[i] = c.Field
		}
		e.WithFields(logrus.Fields{"cause": s.Cause, "fields": fields, "authority": s.Authority}).Info("changed")
	case interpret.Failed, interpret.Conflict, interpret.Refused:
		e.Error(s.Message)
	default:
		e.Info(s.Message)
	}
}

func (a *Agent) leftOver(r score.Resource, manifest string, id score.ID) *logrus.Entry {
	return a.Log.WithFields(logrus.Fields{"resource": r, "manifest": manifest, "score": id})
}

// said leaves out what is empty.
func said(f logrus.Fields) logrus.Fields {
	maps.DeleteFunc(f, func(_ string, v any) bool { return fmt.Sprint(v) == "" })
	return f
}
