package agent

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// What others wrote on a device, secrets among it, leaves it in no diff (G58, G61).
func TestDiffWithoutSecrets(t *testing.T) {
	const canary = "canary-9Lk2"
	before := "name = kiosk\npassword = " + canary + "\n-----BEGIN " + "PRIVATE KEY-----\n" + canary + "\n" + canary + "\n-----END " + "PRIVATE KEY-----\nurl = http://old.example\n"
	c := diffOf(&interpret.Text{Before: interpret.Content{Text: before, Public: true}, After: interpret.Content{Text: "name = kiosk\nurl = http://new.example\n", Public: true}}, []score.Resource{"file:/etc/app.conf"})
	if c == nil || strings.Contains(c.diff, canary) || strings.Count(c.diff, "-"+notShown) != 2 ||
		!strings.Contains(c.diff, "-url = http://old.example\n+url = http://new.example\n") {
		t.Errorf("got %+v", c)
	}
	for _, public := range []bool{false, true} { // of one of the two that is not
		text := &interpret.Text{Before: interpret.Content{Text: "a", Public: public}, After: interpret.Content{Text: "b", Public: !public}}
		if c := diffOf(text, []score.Resource{"file:/etc/app.conf"}); c.diff != "" {
			t.Errorf("what not everybody may read is shown: %s", c.diff)
		}
	}
}
