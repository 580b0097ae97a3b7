package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// What commands at the device change or show is in its audit, who looks only is not, and what cannot be written down is told
// and stops nothing.
func TestCommandsAreAudited(t *testing.T) {
	b := newBench(t)
	b.put("etc/kiosk.conf", "url=http://old.example\n")
	run := func(want int, args ...string) string {
		t.Helper()
		code, _, errs := b.run(kiosk, append(args, "--root", b.root)...)
		if code != want {
			t.Errorf("%v: exit %d, want %d: %s", args, code, want, errs)
		}
		return errs
	}
	state := filepath.Join(b.root, config.DefaultState)
	asked := func() int {
		all, _ := os.ReadDir(filepath.Join(state, "asked"))
		return len(all)
	}
	run(0, "backups") // nobody was ever here
	if asked() != 0 {
		t.Error("a word is left where there are no books")
	}
	run(0, "apply", "-f", "-", "--confirm")
	run(0, "apply", "-f", "-")
	run(1, "receipts", "nothing")
	run(0, "backups")
	run(0, "inventory", filepath.Join("/etc"))
	run(0, "export", "/etc/kiosk.conf")
	run(0, "secrets")
	if n := asked(); n != 5 {
		t.Errorf("%d words are left", n)
	}
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(state, "asked", strings.Repeat("A", i+1)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if errs := run(0, "backups"); !strings.Contains(errs, "cannot leave a word for the audit") {
		t.Errorf("where there is no room: %s", errs)
	}
	for i := range 200 {
		if err := os.Remove(filepath.Join(state, "asked", strings.Repeat("A", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	run(0, "apply", "-f", "-", "--confirm")
	if n := asked(); n != 0 {
		t.Errorf("%d words are left by who has the books", n)
	}
	books, _, err := store.Open(store.Dir(state), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	var said []string
	for _, q := range books.Queued(1 << 20) {
		var e interpret.AuditEntry
		if err := score.Decode(q.Entry, &e); err != nil {
			t.Fatal(err)
		}
		if e.What == interpret.AuditLocal {
			said = append(said, e.Verb)
		}
	}
	got := strings.Join(said, " ")
	for _, verb := range []string{"receipts", "backups", "inventory", "export", "secrets"} {
		if strings.Count(got, verb) != 1 {
			t.Errorf("%s is not there once: %s", verb, got)
		}
	}
	if strings.Count(got, "install") != 2 {
		t.Errorf("what was done by hand: %s", got)
	}
}
