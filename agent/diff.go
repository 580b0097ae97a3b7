package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// maxDiff bounds the diff of one text in a receipt.
const maxDiff = 4 << 10

// A textChange is what a change did to a text.
type textChange struct {
	before, after string // digests, as far as they may be told
	diff          string
}

// diffOf describes what became of a text. What not everybody on the device may read is told by
// digests only: secrets live in such files.
func diffOf(t *interpret.Text, claims []score.Resource) *textChange {
	if t == nil || t.Before.Text == t.After.Text {
		return nil
	}
	c := &textChange{before: t.Before.Digest.String(), after: t.After.Digest.String()}
	if t.Before.Public && t.After.Public && len(claims) > 0 {
		_, name, _ := strings.Cut(string(claims[0]), ":")
		c.diff = udiff.Unified(name+" (before)", name, withoutSecrets(t.Before.Text), withoutSecrets(t.After.Text))
		if len(c.diff) > maxDiff {
			c.diff = strings.ToValidUTF8(c.diff[:maxDiff], "") + "\n… cut\n"
		}
	}
	return c
}

// notShown stands for a line that looks like a secret: what somebody else wrote on a device may hold one, for everybody
// on it to read and nobody in the fleet.
const notShown = "(a line that looks like a secret is not shown)\n"

// withoutSecrets is a text without the lines that look like secrets, and without private keys.
func withoutSecrets(text string) string {
	var out strings.Builder
	key := false // in the middle of one
	for line := range strings.Lines(text) {
		switch bare := strings.TrimRight(line, "\r\n"); {
		case key:
			key = !strings.HasPrefix(strings.TrimSpace(bare), "-----END")
		case score.LooksSecret(bare) != "":
			out.WriteString(notShown)
			key = strings.Contains(bare, "-----BEGIN")
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
