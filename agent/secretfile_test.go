package agent_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A file with a secret in it, from its creation to its end: no copy of it is kept, and neither the secret nor a digest of what
// holds it is in a status or in the books (G58, cases 149).
func TestSecretFileLeavesNothingBehind(t *testing.T) {
	const secret = "canary-52be"
	r := newRig(t)
	r.dev.SetSecret("key", secret)
	x := score.Score{ID: "x", Spec: score.File{Path: "/etc/x", Mode: 0o600, Template: &score.Template{Text: "KEY={{ secret \"key\" }}\n"}}}
	pol := score.Policy{Preset: score.Converge, OnDrift: score.DriftReport}
	in := func(g uint64, scores ...score.Score) agent.Intent {
		m := under(pol, manifest("m", append(scores, file("a", "/etc/a", "1"))...))
		m.Metadata.Generation = g
		return intent(g, m)
	}
	var said []string
	tell := func(st interpret.DeviceStatus) {
		t.Helper()
		b, err := score.Encode(st)
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, string(b))
	}
	contents := []string{"KEY=" + secret + "\n", "by hand " + secret, "KEY=" + secret + "-2\n"}
	tell(r.apply(in(1, x)))
	if got, _ := r.dev.Read("/etc/x"); got != contents[0] {
		t.Fatalf("the file is %q", got)
	}
	r.dev.Put("/etc/x", contents[1])
	tell(r.apply(in(1, x)))   // told as drift
	tell(r.confirm(in(1, x))) // and undone by a person
	r.dev.SetSecret("key", secret+"-2")
	tell(r.apply(in(1, x)))
	tell(r.confirm(in(1, x)))
	if got, _ := r.dev.Read("/etc/x"); got != contents[2] {
		t.Fatalf("the file is %q", got)
	}
	for _, e := range r.store.Entries() {
		said = append(said, string(e.Spec)+e.Backup)
	}
	tell(r.confirm(in(2)))
	r.gone("/etc/x")
	if kept, err := r.store.Backups(); err != nil || len(kept) > 0 {
		t.Errorf("kept are %v, %v", kept, err)
	}
	all := strings.Join(said, "\n")
	for _, c := range contents {
		sum := sha256.Sum256([]byte(c))
		if strings.Contains(all, hex.EncodeToString(sum[:4])) {
			t.Errorf("a digest of %q is told", c)
		}
	}
	if strings.Contains(all, secret) || !strings.Contains(all, interpret.TellerOf(r.dev).Tell(t.Context(), topology.SumOf([]byte(contents[2])), false, "").String()) {
		t.Errorf("told is\n%s", all)
	}
}
