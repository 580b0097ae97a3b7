package agent

import (
	"bytes"
	"context"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// noteSealed is the prefix of the notes of files that a secret was written into and that no other content came into since:
// a score that names no secret may be about such a file by now.
const noteSealed = "sealed/"

// sealOf is the note of a resource; a path may be longer than the name of a note.
func sealOf(resource string) string { return noteSealed + digestOf(resource) }

// isSealed reports whether what a file holds may be a secret that is not one of s. The books of an older
// agent have no notes of it.
func (r *Runner) isSealed(resource, specDigest string) bool {
	if !strings.HasPrefix(resource, "file:") {
		return false
	}
	if _, noted := r.Store.Note(sealOf(resource)); noted {
		return true
	}
	e, owned := r.Store.Owner(resource)
	if !owned || e.SpecDigest == specDigest || !bytes.Contains(e.Spec, []byte("secret")) {
		return false
	}
	var last score.Score
	return score.Decode(e.Spec, &last) == nil && holdsSecret(last)
}

// seal is ctx for looking at what spec is about, and which of the files that are claimed for it may hold a secret that is not one of
// it. The unit file of a service is looked at whoever writes it.
func (r *Runner) seal(ctx context.Context, spec score.Spec, claims []score.Resource, specDigest string) (_ context.Context, sealed []string) {
	for _, c := range claims {
		if r.isSealed(string(c), specDigest) {
			sealed = append(sealed, string(c))
		}
	}
	s, ok := spec.(score.Service)
	if len(sealed) > 0 || ok && r.isSealed("file:"+s.UnitPath(), specDigest) {
		ctx = interpret.Seal(ctx)
	}
	return ctx, sealed
}

// seals notes the files that the score is about to write a secret into, or that hold one already.
func (g *gate) seals(notes map[string]string) map[string]string {
	for _, file := range g.sealed {
		notes[sealOf(file)] = "1"
	}
	if holdsSecret(g.it.score) {
		notes[sealOf(string(g.it.claims[0]))] = "1"
	}
	return notes
}

// unseals is what to note when the score is true: what it writes as a whole, and without a secret, has taken the place of
// whatever was there.
func (g *gate) unseals() map[string]string {
	switch s := g.it.score.Spec.(type) {
	case score.File:
		if holdsSecret(g.it.score) || s.State != score.Absent && (s.AttributesOnly || s.Create == score.CreateOnce) {
			return nil
		}
	case score.Service: // it claims no other files than those that it writes
	default:
		return nil
	}
	notes := map[string]string{}
	for _, file := range g.sealed {
		notes[sealOf(file)] = ""
	}
	return notes
}

// unsealed is what to note when resources were removed.
func (r *Runner) unsealed(ctx context.Context, going []string) map[string]string {
	notes := map[string]string{}
	for _, res := range going {
		if _, noted := r.Store.Note(sealOf(res)); !noted || r.Files == nil {
			continue
		}
		if st, err := r.Files.File(ctx, strings.TrimPrefix(res, "file:")); err == nil && st.Type == topology.Absent {
			notes[sealOf(res)] = ""
		}
	}
	return notes
}
