package fleet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// written makes the lines of a chain of n entries. tell says what an entry says besides.
func written(t testing.TB, chain, previous string, n int, tell func(i int, e *interpret.AuditEntry)) (lines []string) {
	t.Helper()
	for i := 1; i <= n; i++ {
		e := interpret.AuditEntry{APIVersion: score.APIVersion, Kind: interpret.AuditKind, Chain: chain, Sequence: uint64(i), Previous: previous, Time: time.Unix(1e9, 0).UTC(), What: interpret.AuditDecision}
		if i == 1 {
			e.What = interpret.AuditBegin
		}
		if tell != nil {
			tell(i, &e)
		}
		b, err := score.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		lines, previous = append(lines, string(b)), digestOf(b)
	}
	return lines
}

func stored(subject string, header map[string][]string, lines ...string) []Recorded {
	return readAudit(message{subject: subject, header: header, data: []byte(strings.Join(lines, "\n"))})
}

// kinds writes breaches as "kind from-to, …".
func kinds(all []Breach) string {
	var out []string
	for _, b := range all {
		out = append(out, fmt.Sprintf("%s %d-%d", b.Kind, b.From, b.To))
	}
	return strings.Join(out, ", ")
}

// Whatever somebody does to what is stored shows, and what only came twice, or became too old, is no breach.
func TestVerifyAudit(t *testing.T) { // G90, issue 5
	subject := wire.AuditSubject(wire.Device{Site: "main", ID: "pi-1"})
	chain := func() []string { return written(t, "c", "", 9, nil) }
	other := written(t, "c", "", 9, func(i int, e *interpret.AuditEntry) { e.Message = "another" })
	tests := []struct {
		name   string
		change func(l []string) []string
		want   string
	}{
		{"as it was", func(l []string) []string { return l }, ""},
		{"sent twice", func(l []string) []string { return slices.Concat(l[:6], l[2:]) }, ""},
		{"one is gone", func(l []string) []string { return slices.Delete(l, 3, 4) }, "missing 4-4"},
		{"the first are gone", func(l []string) []string { return l[2:] }, "missing 1-2"},
		{"several are gone", func(l []string) []string { return append(l[:2], l[5:]...) }, "missing 3-5"},
		{"one is another", func(l []string) []string { l[3] = other[3]; return l }, "rewritten 3-4, rewritten 4-5"},
		{"one is there as another, too", func(l []string) []string { return append(l, other[3]) }, "forked 4-4"},
		{"exchanged", func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }, "reordered 4-4"},
		{"rubbish", func(l []string) []string { return append(l, "rubbish") }, "unreadable 0-0"},
		{"a newer document", func(l []string) []string { return append(l, `{"apiVersion":"continuo/v9","kind":"AuditEntry"}`) }, "unreadable 0-0"},
		{"begun anew", func(l []string) []string { return append(l, written(t, "d", "", 2, nil)...) }, "begun_anew 1-1"},
		{"begun with a past", func(l []string) []string { return written(t, "d", digestOf([]byte("x")), 2, nil) }, "rewritten 0-1"},
		{"lost and told", func([]string) []string {
			l := written(t, "c", "", 9, func(i int, e *interpret.AuditEntry) {
				if i == 7 {
					e.What, e.Lost, e.LostFrom, e.LostTo = interpret.AuditLoss, 3, 3, 5
				}
			})
			return append(l[:2], l[5:]...)
		}, "lost 3-5"},
		{"more is gone than was told", func([]string) []string {
			l := written(t, "c", "", 9, func(i int, e *interpret.AuditEntry) {
				if i == 8 {
					e.What, e.Lost, e.LostFrom, e.LostTo = interpret.AuditLoss, 2, 4, 5
				}
			})
			return append(l[:2], l[7:]...)
		}, "missing 3-3, lost 4-5, missing 6-7"},
		{"never written", func(l []string) []string {
			return written(t, "c", "", 3, func(i int, e *interpret.AuditEntry) {
				if i == 2 {
					e.What, e.Lost = interpret.AuditLoss, 3
				}
			})
		}, "lost 0-0"},
	}
	for _, tt := range tests {
		if _, got := verifyAudit(stored(subject, nil, tt.change(chain())...), true); kinds(got) != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, kinds(got), tt.want)
		}
	}
	if n, got := verifyAudit(stored(subject, nil, chain()[3:]...), false); n != 6 || len(got) > 0 {
		t.Errorf("the oldest are too old: %d, %v", n, got)
	}
	if _, got := verifyAudit(stored("audit.main.*", nil, "x"), true); kinds(got) != "unreadable 0-0" {
		t.Errorf("a subject of nobody: %v", got)
	}
}

// Any one change of any entry that has one after it shows, and any entry that is taken out of the middle.
func TestVerifyAuditFindsAnyChange(t *testing.T) {
	subject := wire.AuditSubject(wire.Device{Site: "main", ID: "pi-1"})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		l := written(t, "c", "", 12, nil)
		i := rnd.IntN(len(l) - 1)
		switch b := []byte(l[i]); rnd.IntN(3) {
		case 0:
			b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(7)
			if l[i] = string(b); strings.Contains(l[i], "\n") {
				continue
			}
		case 1:
			l = slices.Delete(l, i, i+1)
		case 2:
			l[i], l[i+1] = l[i+1], l[i]
		}
		if _, got := verifyAudit(stored(subject, nil, l...), true); len(got) == 0 {
			t.Fatalf("nothing shows of %q", l)
		}
	}
}

// What people do is signed, each call a chain, and each names the one before. What nobody has signed is by anybody.
func TestVerifyAuditOfPeople(t *testing.T) {
	kp, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	key, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	subject, err := wire.ControlAuditSubject(key)
	if err != nil {
		t.Fatal(err)
	}
	first := written(t, "a", "", 2, nil)
	second := written(t, "b", digestOf([]byte(first[1])), 1, nil)
	third := written(t, "c", digestOf([]byte(second[0])), 1, nil)
	beside := written(t, "d", digestOf([]byte(second[0])), 1, nil) // another program with the same key, at the same time
	sign := func(lines []string) []Recorded {
		h, err := wire.SignAudit(kp, []byte(strings.Join(lines, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		return stored(subject, h, lines...)
	}
	if n, got := verifyAudit(slices.Concat(sign(first), sign(second), sign(third), sign(beside)), true); n != 5 || len(got) > 0 {
		t.Errorf("%d entries, %v", n, got)
	}
	if _, got := verifyAudit(slices.Concat(sign(first), sign(third)), true); kinds(got) != "missing 0-0" {
		t.Errorf("one call is gone: %v", got)
	}
	if _, got := verifyAudit(slices.Concat(sign(first), stored(subject, nil, second...)), true); kinds(got) != "unsigned 1-1" {
		t.Errorf("nobody has signed it: %v", got)
	}
}

// Whatever is stored is read without a panic, and what is read has a place.
func FuzzReadAudit(f *testing.F) {
	subject := wire.AuditSubject(wire.Device{Site: "main", ID: "pi-1"})
	lines := written(f, "c", "", 3, nil)
	f.Add([]byte(strings.Join(lines, "\n")))
	f.Add([]byte(lines[0] + "\n" + lines[0] + "\n\n{}"))
	f.Add([]byte(strings.Replace(lines[0], `"sequence":1`, `"sequence":18446744073709551615`, 1)))
	f.Add([]byte(strings.Replace(lines[1], `"what"`, `"lostTo":18446744073709551615,"what"`, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		all := readAudit(message{subject: subject, data: b})
		for _, r := range all {
			if r.Entry != nil && (r.Entry.Sequence == 0 || r.Entry.Device != "main.pi-1") {
				t.Errorf("read %+v", r.Entry)
			}
		}
		verifyAudit(all, true)
		verifyAudit(all, false)
	})
}
