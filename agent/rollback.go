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
	noteTrial     = "trial/"     // which version is being tried, and since when
	noteCondemned = "condemned/" // which version failed, and why
)

// defaultDeadline is how long a generation may take to become ready.
const defaultDeadline = 10 * time.Minute

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
func (r *Runner) inForce(in Intent) (Intent, map[string]interpret.Rollback) {
	back := map[string]interpret.Rollback{}
	condemned := r.Store.Notes(noteCondemned)
	if len(condemned) == 0 {
		return in, back
	}
	manifests := slices.Clone(in.Assignment.Spec.Manifests)
	for i, m := range manifests {
		verdict, found := readVerdict(condemned[noteCondemned+m.Metadata.Name])
		if !found {
			continue
		}
		_, digest, err := versionOf(m)
		if err != nil || digest != verdict.Digest || r.policy(m).OnFailure != score.FailureRollBack {
			continue
		}
		good, ok := r.good(m.Metadata.Name)
		if !ok {
			continue
		}
		verdict.Generation, verdict.To = m.Metadata.Generation, good.Metadata.Generation
		good.Spec.Policy = m.Spec.Policy // what it may do is for the newest version to say
		manifests[i], back[m.Metadata.Name] = good, verdict
	}
	in.Assignment.Spec.Manifests = manifests
	return in, back
}

// policy is that of a manifest under the ceiling of the device.
func (r *Runner) policy(m score.Manifest) score.Policy {
	return authority.Effective(r.Ceiling.Policy, m.Spec.Policy, nil)
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

// A verdict is kept as one line: the digest, the score, the code and the message.
func writeVerdict(v interpret.Rollback) string {
	return strings.Join([]string{v.Digest, string(v.Score), string(v.Code), v.Since.Format(time.RFC3339), v.Message}, " ")
}

func readVerdict(text string) (v interpret.Rollback, ok bool) {
	parts := strings.SplitN(text, " ", 5)
	if len(parts) < 5 {
		return v, false
	}
	v.Digest, v.Score, v.Code, v.Message = parts[0], score.ID(parts[1]), interpret.Code(parts[2]), parts[4]
	v.Since, _ = time.Parse(time.RFC3339, parts[3])
	return v, true
}

// judge finds out of every manifest that is played as it is wanted whether this version is
// good, and condemns one that rolls back and is not.
func (a *Agent) judge(p *pass, st interpret.DeviceStatus) {
	notes := map[string]string{}
	condemned := false
	for _, m := range p.plan.intent.Assignment.Spec.Manifests {
		name := m.Metadata.Name
		if _, back := p.plan.back[name]; back || a.Runner.policy(m).OnFailure != score.FailureRollBack {
			continue
		}
		ms := manifestOf(st, name)
		trial, _ := a.Runner.Store.Note(noteTrial + name)
		body, digest, err := a.versions.of(m)
		if err != nil {
			a.problem(CodeStore, err.Error())
			continue
		}
		was, since, _ := strings.Cut(trial, " ")
		if was != digest {
			since = strconv.FormatInt(time.Now().Unix(), 10)
		}
		switch bad, over := failing(ms, since, a.Runner.policy(m)); {
		case ms.State == interpret.StateConverged:
			if err := a.Runner.Store.KeepGood(name, store.Good{Generation: m.Metadata.Generation, Digest: digest, Body: body}); err != nil {
				a.problem(CodeStore, err.Error())
			}
			notes[noteTrial+name] = ""
		case !over:
			notes[noteTrial+name] = digest + " " + since
			if end := deadlineOf(since, a.Runner.policy(m)); end.After(time.Now()) {
				a.Runner.pace.reopens(end)
			}
		default:
			bad.Digest, bad.Since = digest, now()
			good, ok := a.Runner.good(name)
			if _, gd, err := versionOf(good); !ok || err != nil || gd == digest {
				a.problem(CodeNoRollback, fmt.Sprintf("manifest %s failed (%s: %s), and there is no earlier version that was good: it is held as it is", name, bad.Score, bad.Message))
				continue
			}
			bad.Message = interpret.Brief(bad.Message)
			notes[noteCondemned+name], notes[noteTrial+name] = writeVerdict(bad), ""
			condemned = true
			a.Log.WithFields(logrus.Fields{"manifest": name, "generation": m.Metadata.Generation, "score": bad.Score, "code": bad.Code, "to": good.Metadata.Generation}).
				Error("rolling back: " + bad.Message)
		}
	}
	if err := a.Runner.Store.SetNotes(notes); err != nil {
		a.problem(CodeStore, err.Error())
		return
	}
	if condemned {
		a.mu.Lock()
		a.plan = a.Runner.prepared(a.plan.offered)
		a.mu.Unlock()
		signal(a.wake)
	}
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
// disk, never; not being ready counts when the time is over. While something waits for a
// person, nothing counts.
func failing(ms interpret.ManifestStatus, since string, pol score.Policy) (bad interpret.Rollback, over bool) {
	late := !time.Now().Before(deadlineOf(since, pol))
	for _, s := range ms.Scores {
		switch {
		case s.Outcome == interpret.Pending && s.Code != CodePrefetch:
			return bad, false
		case s.Outcome == interpret.Failed && fatal[s.Code]:
			return interpret.Rollback{Score: s.ID, Code: s.Code, Message: s.Message}, true
		}
	}
	if !late {
		return bad, false
	}
	for _, s := range ms.Scores {
		unready := s.Outcome.Converged() && !s.Conditions.Good()
		if unready || s.Outcome == interpret.Failed && !passing[s.Code] {
			return interpret.Rollback{Score: s.ID, Code: interpret.CodeDeadline,
				Message: fmt.Sprintf("it was not ready within %s: %s", cmp.Or(time.Duration(pol.Deadline), defaultDeadline), cmp.Or(s.Message, word(s)))}, true
		}
	}
	return bad, false
}

// deadlineOf is when a version that was tried since then must be ready.
func deadlineOf(since string, pol score.Policy) time.Time {
	start, err := strconv.ParseInt(since, 10, 64)
	if err != nil {
		return time.Now().Add(defaultDeadline)
	}
	return time.Unix(start, 0).Add(cmp.Or(time.Duration(pol.Deadline), defaultDeadline))
}

// fatal are the codes of failures that the version itself is the reason of.
var fatal = codes(topology.CodeJobFailed, topology.CodeExited, topology.CodeStartLimit, topology.CodeDefinition, topology.CodeInvalid,
	topology.CodeNotRegular, topology.CodeNoAccount, topology.Code(interpret.CodeNotConverged), topology.Code(interpret.CodeUnhealthy))

// passing are the codes of failures that have nothing to do with the version: they are tried
// again for ever.
var passing = codes(topology.CodeNoSpace, topology.CodeReadOnly, topology.CodeIO, topology.CodeTimeout, topology.CodeCanceled,
	topology.CodeUnavailable, topology.CodeImageStore, topology.CodeUnknown, topology.Code(CodeStore))

func codes(list ...topology.Code) map[interpret.Code]bool {
	out := map[interpret.Code]bool{}
	for _, c := range list {
		out[interpret.Code(c)] = true
	}
	return out
}

// scratch reports whether an entry was made by a version that is being rolled back: the good
// one does not name it.
func (p *pass) scratch(e store.Entry) bool {
	b, back := p.plan.back[e.Manifest]
	return back && e.Provenance == store.Created && e.Generation == b.Generation
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
