package agent

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// noteCondemned is the prefix of the notes of versions that failed, and why.
const noteCondemned = "condemned/"

// A verdict is why a version is condemned.
type verdict struct {
	interpret.Rollback
	order uint64 // of the last resource that was owned before the version was tried
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
