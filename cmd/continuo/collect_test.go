package main

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/score"
)

// Contents that nothing published needs go when somebody says so, and not before.
func TestCollect(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	b.write("large", strings.Repeat("x", fleet.MaxInline+1))
	file := b.write("m.yaml", head+"  scores:\n    - {kind: file, id: large, spec: {path: /srv/large, contentFrom: large, mode: \"0644\"}}\n")
	step := func(want int, says string, args ...string) string {
		t.Helper()
		code, out, errs := b.run(args...)
		if code != want || !strings.Contains(out+errs, says) {
			t.Errorf("%v: exit %d, want %d and %q:\n%s%s", args, code, want, says, out, errs)
		}
		return out
	}
	rows := func(args ...string) (rows []contentRow) {
		t.Helper()
		text := step(0, "", append([]string{"collect", "-o", "json"}, args...)...)
		if err := score.Decode([]byte(text), &rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	step(0, "no contents are stored", "collect")
	step(0, "", "publish", file, "--confirm")
	if r := rows("--spare", "0s"); len(r) != 1 || r[0].Goes || len(r[0].UsedBy) != 1 || r[0].Size != fleet.MaxInline+1 {
		t.Errorf("while it is needed: %+v", r)
	}
	step(0, "", "unpublish", "pi-1", "kiosk", "--confirm")
	if r := rows(); len(r) != 1 || r[0].Goes {
		t.Errorf("while it is new: %+v", r)
	}
	step(0, "this is a preview; add --confirm", "collect", "--spare", "0s")
	if r := rows("--spare", "0s"); len(r) != 1 || !r[0].Goes {
		t.Errorf("a preview took it away: %+v", r)
	}
	step(0, "goes", "collect", "--spare", "0s", "--confirm")
	step(0, "no contents are stored", "collect")
}
