package agent

import (
	"context"
	"strings"

	"github.com/continuo-fleet/continuo/agent/store"
)

// keptSecrets begins what is kept, with the triggers of a score, of the secrets that it uses: a fingerprint of the values that
// they had when the score was true last. With it a secret that was rotated is told from a device that was changed.
const keptSecrets = "secrets="

// rotation is what is to be kept of the secrets of a score when it is true. While one of them cannot be had, or there are
// none any more, that is nothing.
func (g *gate) rotation(ctx context.Context) string {
	if print := g.Table.Secrets(ctx, g.it.score.Spec); print != "" {
		return keptSecrets + print
	}
	return ""
}

// rotationOf is what the books keep of the secrets of a score.
func rotationOf(e store.Entry) string {
	for part := range strings.FieldsSeq(strings.TrimLeft(e.Triggers, interrupted+unreloaded)) {
		if strings.HasPrefix(part, keptSecrets) {
			return part
		}
	}
	return ""
}

// rotated reports whether the secrets of a score have other values than when it was true last. Books that do not say which
// they had then prove nothing.
func (g *gate) rotated(e store.Entry) bool {
	was := rotationOf(e)
	return was != "" && g.secrets != "" && was != g.secrets
}

// withSecrets is what is kept of triggers and secrets.
func withSecrets(triggers, secrets string) string {
	return strings.TrimSpace(triggers + " " + secrets)
}
