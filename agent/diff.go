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
	before, after string // sha256
	diff          string
}

// diffOf describes what became of a text. What not everybody on the device may read is told by
// its digests only: secrets live in such files.
func diffOf(t *interpret.Text, claims []score.Resource) *textChange {
	if t == nil || t.Before == t.After {
		return nil
	}
	c := &textChange{before: digestOf(t.Before), after: digestOf(t.After)}
	if t.Public && len(claims) > 0 {
		_, name, _ := strings.Cut(string(claims[0]), ":")
		c.diff = udiff.Unified(name+" (before)", name, t.Before, t.After)
		if len(c.diff) > maxDiff {
			c.diff = strings.ToValidUTF8(c.diff[:maxDiff], "") + "\n… cut\n"
		}
	}
	return c
}

func digestOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
