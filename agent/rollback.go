package agent

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Notes about versions of manifests that roll back, by name of the manifest.
const (
	noteTrial     = "trial/"     // which version is being tried, since when, and what was owned before
	noteCondemned = "condemned/" // which version failed, and why
)

// A trial is of the version of a manifest that was played last.
type trial struct {
	digest string
	begun  time.Time
	order  uint64    // of the last resource that was owned before
	over   bool      // it was good: what becomes of it later is drift
	waited bool      // for a person or for its time, when it was played last
	ready  time.Time // since when it has been ready without a break; zero: it is not
}

func (t trial) String() string {
	return fmt.Sprintf("%s %d %d", t.digest, t.begun.Unix(), t.order)
}

func readTrial(text string) (t trial, ok bool) {
	var begun int64
	_, err := fmt.Sscanf(text, "%s %d %d", &t.digest, &begun, &t.order)
	t.begun = time.Unix(begun, 0)
	return t, err == nil
}

// A verdict is why a version is condemned.
type verdict struct {
	interpret.Rollback
	order uint64 // of the last resource that was owned before the version was tried
}

// versionOf is a manifest as bytes, with their digest. Its generation is no part of the digest:
// the same content published again is the same version.
func versionOf(m score.Manifest) (body []byte, digest string, err error) {
	m.Metadata.Generation = 0
	if body, err = score.Encode(m); err != nil {
		return nil, "", fmt.Errorf("cannot keep manifest %s: %w", m.Metadata.Name, err)
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:]), nil
}

// inForce puts the last good version in the place of every manifest whose present version has
// failed before.
func (r *Runner) inForce(in Intent) (Intent, map[string]verdict) {
	back := map[string]verdict{}
	condemned := r.Store.Notes(noteCondemned)
	if len(condemned) == 0 {
		return in, back
	}
	manifests := slices.Clone(in.Assignment.Spec.Manifests)
	for i, m := range manifests {
		v, found := readVerdict(condemned[noteCondemned+m.Metadata.Name])
		if !found {
			continue
		}
		_, digest, err := versionOf(m)
		if err != nil || digest != v.Digest || r.policy(m).OnFailure != score.FailureRollBack {
			continue
		}
		good, ok := r.good(m.Metadata.Name)
		if !ok { // it was lost since: what is known to be bad is not done again without a person
			manifests[i].Spec.Policy = score.Policy{Preset: score.Reviewed, OnFailure: score.FailureRollBack}
			continue
		}
		v.Generation, v.To = m.Metadata.Generation, good.Metadata.Generation
		good.Spec.Policy = m.Spec.Policy // what it may do is for the newest version to say
		manifests[i], back[m.Metadata.Name] = good, v
	}
	in.Assignment.Spec.Manifests = manifests
	return in, back
}

// policy is that of a manifest under the ceiling of the device.
func (r *Runner) policy(m score.Manifest) score.Policy {
	return authority.Effective(r.Ceiling.Policy, m.Spec.Policy, nil)
}

// goodDigest is the digest of the last good version of a manifest; empty if there is none.
func (r *Runner) goodDigest(name string) string {
	g, _, err := r.Store.Good(name)
	if err != nil {
		return ""
	}
	return g.Digest
}

// good reads the last good version of a manifest.
func (r *Runner) good(name string) (m score.Manifest, ok bool) {
	g, ok, err := r.Store.Good(name)
	if err != nil || !ok || score.Decode(g.Body, &m) != nil {
		return m, false
	}
	m.Metadata.Generation = g.Generation
	return m, true
}

// A verdict is kept as one line: the digest, the order, the score, the code, the time and the message.
func (v verdict) String() string {
	return strings.Join([]string{v.Digest, strconv.FormatUint(v.order, 10), string(v.Score), string(v.Code), v.Since.Format(time.RFC3339), v.Message}, " ")
}

func readVerdict(text string) (v verdict, ok bool) {
	parts := strings.SplitN(text, " ", 6)
	if len(parts) < 6 {
		return v, false
	}
	v.Digest, v.Score, v.Code, v.Message = parts[0], score.ID(parts[2]), interpret.Code(parts[3]), parts[5]
	v.order, _ = strconv.ParseUint(parts[1], 10, 64)
	v.Since, _ = time.Parse(time.RFC3339, parts[4])
	return v, true
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
		case known && t.digest == digest: // the agent was started again: the clock may be another, and the time that is left is not more than all of it
			t.begun = time.Now().Add(-max(time.Since(t.begun), 0))
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

func manifestOf(st interpret.DeviceStatus, name string) interpret.ManifestStatus {
	for _, m := range st.Manifests {
		if m.Name == name {
			return m
		}
	}
	return interpret.ManifestStatus{}
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
		cannot := s.Outcome == interpret.Failed || s.Outcome == interpret.Unsupported || s.Outcome == interpret.Refused
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
	topology.CodeUnavailable, topology.CodeImageStore, topology.CodeChanged, topology.CodeUnknown, topology.Code(CodeStore))

func codes(list ...topology.Code) map[interpret.Code]bool {
	out := map[interpret.Code]bool{}
	for _, c := range list {
		out[interpret.Code(c)] = true
	}
	return out
}

// scratch reports whether an entry was made by a version that is being rolled back, and can be
// unmade.
func (p *pass) scratch(e store.Entry) bool {
	v, back := p.plan.back[e.Manifest]
	return back && e.Order > v.order && (e.Provenance == store.Created || e.Backup != "")
}

// rollbackCheck proves that what is declared to roll back could: that the last good version of
// each manifest can be read, and that all it needs from elsewhere is here.
func (a *Agent) rollbackCheck(ctx context.Context, o order) interpret.Receipt {
	present, _ := a.present()
	r := o.receipt(a, interpret.ResultDone, "", "every rollback that is declared could be done")
	r.Actions = a.Runner.CheckRollbacks(ctx, present.offered)
	if slices.ContainsFunc(r.Actions, func(x interpret.ReceiptAction) bool { return x.Outcome == interpret.Failed }) {
		r.Result, r.Code, r.Message = interpret.ResultFailed, CodeNoRollback, "not every rollback that is declared could be done: see the actions"
	}
	return shorten(r)
}

// CheckRollbacks looks, for every manifest of in that rolls back, whether that could be done
// now: one action for each score of its last good version, failed if something of it is gone.
func (r *Runner) CheckRollbacks(ctx context.Context, in Intent) (out []interpret.ReceiptAction) {
	for _, m := range in.Assignment.Spec.Manifests {
		if r.policy(m).OnFailure != score.FailureRollBack {
			continue
		}
		good, ok := r.good(m.Metadata.Name)
		if !ok {
			out = append(out, interpret.ReceiptAction{Manifest: m.Metadata.Name, Outcome: interpret.Failed, Code: CodeNoRollback,
				Message: "no version of this manifest was good yet, or the copy of it cannot be read"})
			continue
		}
		for _, s := range good.Spec.Scores {
			x := interpret.ReceiptAction{Manifest: m.Metadata.Name, Score: s.ID, Kind: s.Spec.Kind(), Outcome: interpret.Unchanged, Resources: s.Spec.Claims()}
			if err := r.Table.Stocked(ctx, s); err != nil {
				f := topology.FaultOf(err)
				x.Outcome, x.Code, x.Message = interpret.Failed, interpret.Code(f.Code), f.Text
			}
			for _, c := range x.Resources {
				e, _ := r.Store.Owner(string(c))
				if e.Backup == "" {
					continue
				}
				if _, _, err := r.Store.ReadBackup(e.Backup); err != nil {
					x.Outcome, x.Code, x.Message = interpret.Failed, CodeNoBackup, err.Error()
				}
			}
			out = append(out, x)
		}
	}
	return out
}
