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

// seal is ctx for looking at what a score claims.
func (r *Runner) seal(ctx context.Context, claims []score.Resource, specDigest string) (_ context.Context, sealed bool) {
	for _, c := range claims {
		if r.isSealed(string(c), specDigest) {
			return interpret.Seal(ctx), true
		}
	}
	return ctx, false
}

// seals notes what the score is about to write a secret into, or what holds one already.
func (g *gate) seals(notes map[string]string) map[string]string {
	if g.sealed || holdsSecret(g.it.score) {
		notes[sealOf(string(g.it.claims[0]))] = "1"
	}
	return notes
}

// unseals is what to note when the score is true: what it writes as a whole, and without a secret, has taken the place of
// whatever was there.
func (g *gate) unseals() map[string]string {
	f, ok := g.it.score.Spec.(score.File)
	if !ok || !g.sealed || holdsSecret(g.it.score) || f.State != score.Absent && (f.AttributesOnly || f.Create == score.CreateOnce) {
		return nil
	}
	return map[string]string{sealOf(string(g.it.claims[0])): ""}
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
