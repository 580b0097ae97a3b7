package agent

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A plan is an intent made ready: ordered, with digests and claims. It is made once
// per intent and never changed, except that a pass keeps in its items what came of
// them: passes over one plan come one after the other.
type plan struct {
	offered     Intent             // as it was accepted
	intent      Intent             // as it is in force: with earlier versions of what failed
	back        map[string]verdict // by manifest, why
	manifests   []plannedManifest  // sorted by name
	claimed     map[score.Resource][]*item
	ports       map[string][]claim     // by number and protocol: only those can overlap
	marks       map[topology.Mark]bool // of all items
	ineffective bool                   // the last pass found changes that are not in force
	unread      map[topology.Mark]bool // of those whose claims are not known
}

type plannedManifest struct {
	name       string
	generation uint64
	policy     score.Policy
	items      []*item // in order: needs first
}

// An item is one score of a plan.
type item struct {
	manifest   *plannedManifest
	score      score.Score
	policy     score.Policy    // in force
	body       json.RawMessage // the score as it is kept in the books
	digest     string          // of its spec alone: what else is said of a score changes nothing on the device
	claims     []score.Resource
	needs      []*item
	triggers   []triggering
	problem    string // why the spec cannot be played, if it cannot
	invalidity interpret.Code
	done       chan struct{} // of the pass under way, as what follows
	status     interpret.ScoreStatus
	action     interpret.PlannedAction // that its gate was asked about last; none: without a verb
	text       *textChange             // what its last change did to a text; may be nil
	unread     []*item                 // triggers whose change it has not taken in
	effort     effort
	unfetched  bool // what it needs is not here yet, and it is not played before
}

// A triggering is an item whose change restarts another one, or makes it read its configuration again.
type triggering struct {
	*item
	reload bool
}

// A claim is a resource with who claims it.
type claim struct {
	it  *item
	res score.Resource
}

// number is a port without its address.
func number(port score.Resource) string {
	n, _, _ := strings.Cut(string(port), "@")
	return n
}

func (it *item) mark() topology.Mark {
	return topology.Mark(it.manifest.name + "/" + string(it.score.ID))
}

// prepared is prepare for what is in force of in.
func (r *Runner) prepared(in Intent) *plan {
	now, back := r.inForce(in)
	p := prepare(now, r.kept)
	p.offered, p.back = in, back
	return p
}

// kept is what the books hold of the score that owns a resource: the same bytes are not held twice.
func (r *Runner) kept(res score.Resource) json.RawMessage {
	e, _ := r.Store.Owner(string(res))
	return e.Spec
}

func prepare(in Intent, kept func(score.Resource) json.RawMessage) *plan {
	p := &plan{
		offered: in, intent: in, claimed: map[score.Resource][]*item{}, ports: map[string][]claim{},
		marks: map[topology.Mark]bool{}, unread: map[topology.Mark]bool{},
	}
	p.manifests = make([]plannedManifest, len(in.Assignment.Spec.Manifests))
	for i, m := range in.Assignment.Spec.Manifests {
		p.manifests[i] = plannedManifest{name: m.Metadata.Name, generation: m.Metadata.Generation, policy: m.Spec.Policy}
		p.manifests[i].plan(m, kept)
	}
	slices.SortFunc(p.manifests, func(a, b plannedManifest) int { return cmp.Compare(a.name, b.name) })
	for i := range p.manifests {
		for _, it := range p.manifests[i].items {
			it.manifest = &p.manifests[i]
			p.marks[it.mark()] = true
			if len(it.claims) == 0 {
				p.unread[it.mark()] = true
			}
			for _, c := range it.claims {
				p.claimed[c] = append(p.claimed[c], it)
				if c.IsPort() {
					p.ports[number(c)] = append(p.ports[number(c)], claim{it, c})
				}
			}
		}
	}
	return p
}

func (pm *plannedManifest) plan(m score.Manifest, kept func(score.Resource) json.RawMessage) {
	byID := map[score.ID]*item{}
	if cycle := score.Cycle(m.Spec.Scores); cycle != nil {
		// nothing of it can be ordered; each score says so
		for _, s := range m.Spec.Scores {
			pm.items = append(pm.items, &item{score: s, problem: "scores wait for each other", invalidity: interpret.CodeInvalid})
		}
		return
	}
	sum, body := sha256.New(), bytes.Buffer{}
	for _, s := range score.Order(m.Spec.Scores) {
		it := &item{score: s}
		pm.items = append(pm.items, it)
		byID[s.ID] = it
		if _, opaque := s.Spec.(score.Opaque); opaque {
			continue // Play says what is wrong with it
		}
		sum.Reset()
		body.Reset()
		if err := errors.Join(score.Write(sum, s.Spec), score.Write(&body, s)); err != nil {
			it.problem, it.invalidity = err.Error(), interpret.CodeInvalid
			continue
		}
		it.digest, it.claims = hex.EncodeToString(sum.Sum(nil)), s.Spec.Claims()
		if len(it.claims) > 0 {
			it.body = kept(it.claims[0])
		}
		if !bytes.Equal(it.body, body.Bytes()) {
			it.body = bytes.Clone(body.Bytes())
		}
		r := score.NewReport()
		s.Spec.Check(r)
		for _, p := range r.Problems() {
			if p.Severity == score.Error {
				it.problem, it.invalidity = p.Text, interpret.CodeInvalid
			}
		}
	}
	for _, it := range pm.items {
		for _, need := range it.score.Needs() {
			if n := byID[need]; n != nil {
				it.needs = append(it.needs, n)
			} else {
				it.problem, it.invalidity = "it needs the score "+string(need)+", which is not in the manifest", interpret.CodeInvalid
			}
		}
		restart, reload := it.score.Triggers()
		for i, id := range slices.Concat(restart, reload) {
			if n := byID[id]; n != nil {
				it.triggers = append(it.triggers, triggering{n, i >= len(restart)})
			}
		}
	}
	pm.reverse()
}

// reverse lets what is decommissioned go last, and what needs another thing before that.
func (pm *plannedManifest) reverse() {
	var stay, ends []*item
	for _, it := range pm.items {
		if !it.score.Decommission {
			stay = append(stay, it)
			continue
		}
		ends = append(ends, it)
	}
	if len(ends) == 0 {
		return
	}
	for _, it := range stay {
		it.needs = slices.DeleteFunc(it.needs, func(n *item) bool {
			if n.score.Decommission {
				it.problem, it.invalidity = fmt.Sprintf("it needs the score %s, which is decommissioned", n.score.ID), interpret.CodeInvalid
				n.problem, n.invalidity = fmt.Sprintf("it is decommissioned, and the score %s needs it", it.score.ID), interpret.CodeInvalid
			}
			return n.score.Decommission // it comes later now, and nothing may wait for what is behind it
		})
	}
	before := map[*item][]*item{}
	for _, it := range ends {
		for _, n := range it.needs {
			before[n] = append(before[n], it)
		}
	}
	slices.Reverse(ends)
	for _, it := range ends {
		it.needs = before[it]
	}
	pm.items = append(stay, ends...)
}

// items are in order: needs first.
func (p *plan) items() (items []*item) {
	for i := range p.manifests {
		items = append(items, p.manifests[i].items...)
	}
	return items
}

// wanted reports whether the score that a mark names claims r, as far as the plan
// tells: of scores that cannot be read, and of manifests that an incomplete assignment
// does not name, nobody knows.
func (p *plan) wanted(mark topology.Mark, r score.Resource) bool {
	manifest, _, _ := strings.Cut(string(mark), "/")
	if !p.has(manifest) {
		return !p.intent.Assignment.Spec.Complete
	}
	return p.unread[mark] || slices.ContainsFunc(p.claimed[r], func(it *item) bool { return it.manifest.name == manifest })
}

func (p *plan) has(manifest string) bool {
	for i := range p.manifests {
		if p.manifests[i].name == manifest {
			return true
		}
	}
	return false
}

// claims returns who claims r or a port that overlaps it, in the order of their
// manifests' names.
func (p *plan) claims(r score.Resource) (out []claim) {
	if !r.IsPort() {
		for _, it := range p.claimed[r] {
			out = append(out, claim{it, r})
		}
		return out
	}
	for _, c := range p.ports[number(r)] {
		if r.Overlaps(c.res) {
			out = append(out, c)
		}
	}
	return out
}
