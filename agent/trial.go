package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// noteTrial is the prefix of the notes of versions that are being tried: since when, and what was owned
// before.
const noteTrial = "trial/"

// A trial is of the version of a manifest that was played last.
type trial struct {
	digest string
	begun  time.Time
	anew   bool      // it was begun a second time, because of what the clock said
	order  uint64    // of the last resource that was owned before
	over   bool      // it was good: what becomes of it later is drift
	waited bool      // for a person or for its time, when it was played last
	ready  time.Time // since when it has been ready without a break; zero: it is not
}

func (t trial) String() string {
	text := fmt.Sprintf("%s %d %d", t.digest, t.begun.Unix(), t.order)
	if t.anew {
		text += anew
	}
	return text
}

func readTrial(text string) (t trial, ok bool) {
	var begun int64
	_, err := fmt.Sscanf(text, "%s %d %d", &t.digest, &begun, &t.order)
	t.begun, t.anew = time.Unix(begun, 0), strings.HasSuffix(text, anew)
	return t, err == nil
}

// anew ends the note of a trial that was begun a second time.
const anew = " anew"

// resumed is t in an agent that was started again at now, by a clock that may have jumped since t was noted. What
// passed meanwhile counts, on the clock that does not jump. More than the whole deadline proves nothing about the
// version: this agent would have ended its trial, so the device was off, or its clock was set. Then the trial
// begins anew, but only once: a version that takes the agent with it is to be found out.
func (t trial) resumed(now time.Time, deadline time.Duration) trial {
	passed := max(now.Sub(t.begun), 0)
	if passed > deadline && !t.anew {
		passed, t.anew = 0, true
	}
	t.begun = now.Add(-passed)
	return t
}

// tries writes down of every manifest that rolls back, before anything of a new version of it is
// done, that it is tried from now on.
func (a *Agent) tries(pl *plan) error {
	s := a.Runner.Store
	notes := map[string]string{}
	for _, m := range pl.intent.Assignment.Spec.Manifests {
		name := m.Metadata.Name
		if _, back := pl.back[name]; back || a.Runner.policy(m).OnFailure != score.FailureRollBack {
			continue
		}
		_, digest, err := a.versions.of(m)
		if err != nil {
			return err
		}
		if t, known := a.trials[name]; known && t.digest == digest {
			continue
		}
		text, _ := s.Note(noteTrial + name)
		t, known := readTrial(text)
		switch {
		case known && t.digest == digest:
			was := t.anew
			if t = t.resumed(time.Now(), time.Duration(a.Runner.policy(m).Deadline)); t.anew != was {
				notes[noteTrial+name] = t.String()
			}
		case a.Runner.goodDigest(name) == digest:
			t = trial{digest: digest, over: true}
		default:
			t = trial{digest: digest, begun: time.Now(), order: lastOrder(s)}
			notes[noteTrial+name] = t.String()
		}
		if a.trials == nil {
			a.trials = map[string]trial{}
		}
		a.trials[name] = t
	}
	return s.SetNotes(notes)
}

func lastOrder(s *store.Store) uint64 {
	entries := s.Entries()
	if len(entries) == 0 {
		return 0
	}
	return entries[len(entries)-1].Order
}

// judge finds out of every manifest that is played as it is wanted whether this version is
// good, and condemns one that rolls back and is not.
func (a *Agent) judge(p *pass, st interpret.DeviceStatus) {
	notes := map[string]string{}
	condemned, helpless := false, false
	for _, m := range p.plan.intent.Assignment.Spec.Manifests {
		name, policy := m.Metadata.Name, a.Runner.policy(m)
		t, tried := a.trials[name]
		if _, back := p.plan.back[name]; back || !tried || policy.OnFailure != score.FailureRollBack {
			continue
		}
		body, digest, err := a.versions.of(m)
		if err != nil {
			a.notKept(err)
			continue
		}
		switch waits := p.waitsForSomebody(name); {
		case t.over:
		case waits: // its time has not begun
			t.waited, t.ready = true, time.Time{}
			a.trials[name] = t
			continue
		case t.waited:
			t.waited, t.begun = false, time.Now()
			notes[noteTrial+name] = t.String()
		}
		deadline, minReady := time.Duration(policy.Deadline), time.Duration(policy.MinReady)
		left := deadline - time.Since(t.begun)
		ready := manifestOf(st, name).State == interpret.StateConverged
		bad, failed := p.failing(name, left <= 0)
		switch {
		case ready && !t.over && !p.proved(&t, name, minReady):
			a.Runner.pace.reopens(t.ready.Add(minReady))
		case ready:
			if err := a.Runner.Store.KeepGood(name, store.Good{Generation: m.Metadata.Generation, Digest: digest, Body: body}); err != nil {
				a.notKept(err)
			}
			notes[noteTrial+name], t.over = "", true
		case t.over:
		case !failed:
			t.ready = time.Time{}
			if left > 0 {
				a.Runner.pace.reopens(time.Now().Add(left))
			}
		default:
			if bad.Code == interpret.CodeDeadline {
				bad.Message = fmt.Sprintf("it was not ready within %s: %s", deadline, bad.Message)
			}
			bad.Digest, bad.Since, bad.Message = digest, now(), interpret.Brief(bad.Message)
			if a.condemn(m, verdict{bad, t.order}, notes) {
				condemned = true
			} else {
				helpless = true
			}
		}
		a.trials[name] = t
	}
	if !helpless {
		a.resolve(CodeNoRollback)
	}
	if err := a.Runner.Store.SetNotes(notes); err != nil {
		a.notKept(err)
		return
	}
	if condemned {
		a.mu.Lock()
		a.plan = a.Runner.prepared(a.plan.offered)
		a.mu.Unlock()
		signal(a.wake)
	}
}

// condemn puts into notes that a version failed, if there is an earlier one to go back to.
func (a *Agent) condemn(m score.Manifest, v verdict, notes map[string]string) bool {
	name := m.Metadata.Name
	good, ok := a.Runner.good(name)
	if !ok {
		a.problem(CodeNoRollback, fmt.Sprintf("manifest %s failed (%s: %s), and there is no earlier version that was good: it is held as it is", name, v.Score, v.Message))
		return false
	}
	notes[noteCondemned+name], notes[noteTrial+name] = v.String(), ""
	a.Log.WithFields(logrus.Fields{"manifest": name, "generation": m.Metadata.Generation, "score": v.Score, "code": v.Code, "to": good.Metadata.Generation}).
		Error("rolling back: " + v.Message)
	return true
}

// proved reports whether a version that is ready has been so for long enough. What had to be made
// true again meanwhile was a break.
func (p *pass) proved(t *trial, manifest string, long time.Duration) bool {
	now := time.Now()
	again := slices.ContainsFunc(p.played, func(it *item) bool {
		return it.manifest.name == manifest && it.status.Outcome == interpret.Changed
	})
	if t.ready.IsZero() || again {
		t.ready = now
	}
	return now.Sub(t.ready) >= long
}

// onTrial says of the manifests that are ready, and may still be rolled back, that they are not
// there yet, and when they will be.
func (a *Agent) onTrial(st interpret.DeviceStatus) interpret.DeviceStatus {
	cloned := false
	for i, m := range st.Manifests {
		t, tried := a.trials[m.Name]
		if !tried || t.over || t.ready.IsZero() || m.State != interpret.StateConverged || m.Policy == nil {
			continue
		}
		if !cloned {
			st.Manifests, cloned = slices.Clone(st.Manifests), true
		}
		st.Manifests[i].State = interpret.StateConverging
		st.Manifests[i].GoodAt = t.ready.Add(time.Duration(m.Policy.MinReady)).UTC().Truncate(time.Second)
		if st.State == interpret.StateConverged {
			st.State = interpret.StateConverging
		}
	}
	return st
}

// failing tells whether a version that is not ready has failed for good, and what of it.
// A failure that has to do with the version counts at once; one that may pass, such as a full
// disk, never; not being ready, or more than the device can or may do, counts when the time is
// over. A score that says itself that it is not rolled back does not count.
func (p *pass) failing(manifest string, late bool) (bad interpret.Rollback, failed bool) {
	for _, it := range p.plan.items() {
		s := p.failed(it)
		if it.manifest.name != manifest || it.policy.OnFailure != score.FailureRollBack {
			continue
		}
		if s.Outcome == interpret.Failed && fatal[s.Code] {
			return interpret.Rollback{Score: s.ID, Code: s.Code, Message: s.Message}, true
		}
	}
	if !late {
		return bad, false
	}
	for _, it := range p.plan.items() {
		s := p.failed(it)
		if it.manifest.name != manifest || it.policy.OnFailure != score.FailureRollBack {
			continue
		}
		unready := s.Outcome.Converged() && !s.Conditions.Good()
		cannot := s.Outcome == interpret.RolledBack || s.Outcome == interpret.Failed || s.Outcome == interpret.Unsupported || s.Outcome == interpret.Refused
		if unready || cannot && !passing[s.Code] {
			return interpret.Rollback{Score: s.ID, Code: interpret.CodeDeadline, Message: cmp.Or(s.Message, word(s))}, true
		}
	}
	return bad, false
}

// waitsForSomebody reports whether a manifest waits for a person, or for its time.
func (p *pass) waitsForSomebody(manifest string) bool {
	return slices.ContainsFunc(p.plan.items(), func(it *item) bool {
		return it.manifest.name == manifest && it.status.Outcome == interpret.Pending && it.status.Code != CodePrefetch
	})
}

// failed is the status of it, with the code and the message of the failure itself if its pace holds it.
func (p *pass) failed(it *item) interpret.ScoreStatus {
	st := it.status
	if last, failed := p.pace.failure(it.mark(), p.gate(it).wish()); failed {
		st.Code, st.Message = last.Code, last.Message
	}
	return st
}

// fatal are the codes of failures that the version itself is the reason of.
var fatal = codes(topology.CodeJobFailed, topology.CodeExited, topology.CodeStartLimit, topology.CodeDefinition, topology.CodeInvalid,
	topology.CodeNotRegular, topology.CodeNoAccount, topology.Code(interpret.CodeNotConverged), topology.Code(interpret.CodeUnhealthy))

// passing are the codes of failures that have nothing to do with the version: they are tried
// again for ever.
var passing = codes(topology.CodeNoSpace, topology.CodeReadOnly, topology.CodeIO, topology.CodeTimeout, topology.CodeCanceled,
	topology.CodeUnavailable, topology.CodeImageStore, topology.CodeImageCheck, topology.CodeChanged, topology.CodeUnknown, topology.Code(CodeStore))

func codes(list ...topology.Code) map[interpret.Code]bool {
	out := map[interpret.Code]bool{}
	for _, c := range list {
		out[interpret.Code(c)] = true
	}
	return out
}
