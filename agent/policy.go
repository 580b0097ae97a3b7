package agent

import (
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// notePolicy is the prefix of the notes that keep the policy of each manifest: what it lets a
// device do about its scores counts when the manifest itself is gone.
const notePolicy = "policy/"

// policyOf is the policy of a manifest, also of one that is gone: the one that it had last. Of one
// that nobody knows any more, nothing is removed.
func (p *pass) policyOf(manifest string) score.Policy {
	for i := range p.plan.manifests {
		if m := &p.plan.manifests[i]; m.name == manifest {
			return m.policy
		}
	}
	last := score.Policy{Preset: score.Guarded}
	if text, ok := p.Store.Note(notePolicy + manifest); ok && score.Decode([]byte(text), &last) != nil {
		return score.Policy{Preset: score.Reviewed}
	}
	return last
}

// keepPolicies notes the policies of the manifests of the plan, and forgets what the books say
// of manifests that are gone and of which nothing is left.
func (p *pass) keepPolicies() error {
	notes := map[string]string{}
	for _, m := range p.plan.manifests {
		text, err := score.Encode(m.policy)
		if err != nil {
			return err
		}
		notes[notePolicy+m.name] = string(text)
	}
	for _, prefix := range []string{notePolicy, noteTrial, noteCondemned} {
		for name := range p.Store.Notes(prefix) {
			if p.forgotten(strings.TrimPrefix(name, prefix)) {
				notes[name] = ""
			}
		}
	}
	p.forgetTried(notes)
	for _, manifest := range p.Store.Goods() {
		if p.forgotten(manifest) {
			if err := p.Store.DropGood(manifest); err != nil {
				return err
			}
		}
	}
	return p.Store.SetNotes(notes)
}

// forgotten reports whether nobody wants a manifest any more, and nothing of it is left. An intent
// that is not complete says nothing about those that it does not name.
func (p *pass) forgotten(manifest string) bool {
	return p.plan.intent.Assignment.Spec.Complete && !p.plan.has(manifest) && len(p.Store.ByManifest(manifest)) == 0
}

// closed reports whether one of the windows that changes wait for is not open now, and when all
// of them will be; a zero time: never.
func (r *Runner) closed(manifest score.Policy, of *score.Policy) (closed bool, opens time.Time) {
	open, changes := authority.Open(authority.Windows(r.Ceiling.Policy, manifest, of), time.Now())
	if open {
		return false, time.Time{}
	}
	r.pace.reopens(changes)
	return true, changes
}

// opening says of what waits for a window when that opens.
func opening(d authority.Answer, opens time.Time) authority.Answer {
	switch {
	case d.Code != interpret.CodeWindow:
	case opens.IsZero():
		d.Reason += ", which never opens"
	default:
		d.Reason += ", which opens at " + opens.Format(time.RFC3339)
	}
	return d
}
