package nftables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// alone gives the test a network of its own, with a packet filter that is empty.
func alone(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if os.Getenv("CONTINUO_DEVICE_REQUIRED") != "" {
			t.Fatalf("cannot make a network: %v", err)
		}
		t.Skipf("cannot make a network: %v", err)
	}
}

// nft runs the program of that name, if it is here, in the network of the test.
func nft(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command("nft", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	return string(out)
}

var (
	accept = Expr{Name: Immediate, Verdict: 1}
	rules  = [][]Expr{
		{{Name: CT, Key: 0}, {Name: Bitwise, Data: "\x06\x00\x00\x00"}, {Name: Cmp, Op: 1, Data: "\x00\x00\x00\x00"}, accept},
		{{Name: Meta, Key: 6}, {Name: Cmp, Data: "lo" + strings.Repeat("\x00", 14)}, accept},
		{{Name: Meta, Key: 16}, {Name: Cmp, Data: "\x06"}, {Name: Payload, Base: 2, Offset: 2, Len: 2}, {Name: Cmp, Op: 5, Data: "\x1f\x40"}, {Name: Cmp, Op: 3, Data: "\x1f\x4a"}, accept},
	}
)

func sample() Table {
	t := Table{Name: "ours", UserData: []byte("\x00\x05mark\x00"), Chains: []Chain{{Name: "input", Hook: &Hook{Type: "filter", Number: 1, Policy: 1}}}}
	for _, r := range rules {
		t.Chains[0].Rules = append(t.Chains[0].Rules, NewRule(r))
	}
	return t
}

func TestRulesAreReadAsTheyWereMade(t *testing.T) {
	for _, want := range rules {
		if got, err := NewRule(want).Parse(); err != nil || !slices.Equal(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
}

// The kernel keeps a table as it was made, others see it, and those of others are left alone.
func TestKernel(t *testing.T) {
	alone(t)
	ctx := t.Context()
	if got, err := Read(ctx, "ours"); got != nil || err != nil {
		t.Fatalf("an empty filter has %v, %v", got, err)
	}
	if err := Remove(ctx, "ours"); err != nil {
		t.Fatalf("removing nothing: %v", err)
	}
	_, lookErr := exec.LookPath("nft")
	foreign := "table inet theirs {\n\tchain input {\n\t\ttype filter hook input priority filter + 10; policy accept;\n\t\ttcp dport 80 counter packets 0 bytes 0 accept\n\t}\n}\n"
	if lookErr == nil {
		nft(t, foreign, "-f", "-")
		foreign = nft(t, "", "-nn", "list", "ruleset")
	}
	for range 2 { // the second time it is there already
		if err := Replace(ctx, sample()); err != nil {
			t.Fatal(err)
		}
		got, err := Read(ctx, "ours")
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range got.Chains[0].Rules {
			if parsed, err := r.Parse(); err != nil || !slices.Equal(parsed, rules[i]) {
				t.Errorf("rule %d is %v, %v, want %v", i, parsed, err, rules[i])
			}
		}
		if h := got.Chains[0].Hook; len(got.Chains) != 1 || len(got.Chains[0].Rules) != len(rules) || h == nil || *h != *sample().Chains[0].Hook ||
			!bytes.Equal(got.UserData, sample().UserData) || got.Others != 0 {
			t.Errorf("got %+v", got)
		}
	}
	if lookErr == nil {
		// Everything that somebody adds is read, kept as JSON, and made again as it was.
		nft(t, `add chain inet ours more
add rule inet ours more tcp dport { 22 } accept
add rule inet ours input ip saddr 192.0.2.1 counter log prefix "x" drop comment "by hand"
add rule inet ours input ip6 saddr 2001:db8::/33 jump more
add rule inet ours input tcp dport 1-5 limit rate 5/second reject
`, "-f", "-")
		want := nft(t, "", "-nn", "list", "ruleset")
		got, err := Read(ctx, "ours")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if err := Remove(ctx, "ours"); err != nil {
			t.Fatal(err)
		}
		if left := nft(t, "", "-nn", "list", "ruleset"); left != foreign {
			t.Errorf("what is left is\n%s", left)
		}
		var again Table
		if err := json.Unmarshal(kept, &again); err != nil {
			t.Fatal(err)
		}
		if err := Replace(ctx, again); err != nil {
			t.Fatal(err)
		}
		if now := nft(t, "", "-nn", "list", "ruleset"); now != want {
			t.Errorf("made again:\n%s\nwant\n%s", now, want)
		}
		nft(t, "add set inet ours s { type ipv4_addr; }", "-f", "-")
		if got, err := Read(ctx, "ours"); err != nil || got.Others != 1 {
			t.Errorf("a set is not seen: %+v, %v", got, err)
		}
	}
	// All or nothing.
	bad := sample()
	bad.Chains[0].Rules[2] = NewRule([]Expr{{Name: Payload, Base: 9, Len: 2}, accept})
	before, _ := Read(ctx, "ours")
	if err := Replace(ctx, bad); err == nil {
		t.Error("a rule that there cannot be was made")
	}
	if now, err := Read(ctx, "ours"); err != nil || !reflect.DeepEqual(now, before) {
		t.Errorf("after a transaction that failed: %+v, %v", now, err)
	}
}

// Whoever changes a table, it is heard, and what becomes of other tables is not.
func TestListen(t *testing.T) {
	alone(t)
	l, err := Listen("ours")
	if err != nil {
		t.Fatal(err)
	}
	heard := func(what string, want bool) {
		t.Helper()
		select {
		case <-l.C:
			if !want {
				t.Errorf("%s: heard", what)
			}
		case <-time.After(map[bool]time.Duration{true: 10 * time.Second, false: 100 * time.Millisecond}[want]):
			if want {
				t.Errorf("%s: not heard", what)
			}
		}
	}
	other := sample()
	other.Name = "theirs"
	for _, step := range []struct {
		what string
		do   func() error
		want bool
	}{
		{"made", func() error { return Replace(t.Context(), sample()) }, true},
		{"another made", func() error { return Replace(t.Context(), other) }, false},
		{"removed", func() error { return Remove(t.Context(), "ours") }, true},
		{"another removed", func() error { return Remove(t.Context(), "theirs") }, false},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		heard(step.what, step.want)
	}
	l.Close()
	for range l.C { // and it ends
	}
}

// A table as large as it may be goes through the socket.
func TestLarge(t *testing.T) {
	alone(t)
	large := sample()
	for i := range 1000 {
		large.Chains[0].Rules = append(large.Chains[0].Rules, NewRule([]Expr{{Name: Meta, Key: 16}, {Name: Cmp, Data: fmt.Sprintf("%c", 1+i%100)}, accept}))
	}
	if err := Replace(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(t.Context(), "ours"); err != nil || len(got.Chains[0].Rules) != len(large.Chains[0].Rules) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// More than could be kept in a checkpoint is refused in words that say what to do.
func TestTooLarge(t *testing.T) {
	alone(t)
	large := sample()
	for range maxRules + 1 {
		large.Chains[0].Rules = append(large.Chains[0].Rules, NewRule([]Expr{accept}))
	}
	if err := Replace(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), "ours"); err == nil || !strings.Contains(err.Error(), "nft delete table inet ours") {
		t.Errorf("got %v", err)
	}
	if err := Remove(t.Context(), "ours"); err != nil {
		t.Error(err)
	}
}

// Others may change their rules while a large table of ours is read: it is read again, from the beginning.
func TestReadWhileOthersChange(t *testing.T) {
	alone(t)
	large := sample()
	for i := range 2000 {
		large.Chains[0].Rules = append(large.Chains[0].Rules, NewRule([]Expr{{Name: Meta, Key: 16}, {Name: Cmp, Data: fmt.Sprintf("%c", 1+i%100)}, accept}))
	}
	if err := Replace(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	others, err := dial(t.Context()) // a socket belongs to the network that it was made in
	if err != nil {
		t.Fatal(err)
	}
	defer others.close()
	done := make(chan error, 1)
	go func() {
		var err error
		for range 3000 {
			err = errors.Join(err, others.transact(func(message func(typ, flags uint16, attrs []byte)) { others.drop(message, "theirs") }))
		}
		done <- err
	}()
	for busy := true; busy; {
		select {
		case err := <-done:
			if busy = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		got, err := Read(t.Context(), "ours")
		if err == nil && len(got.Chains[0].Rules) != len(large.Chains[0].Rules) || err != nil && (!busy || !errors.Is(err, errAgain)) {
			t.Fatalf("busy %v: %v", busy, err)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	t := sample()
	for _, b := range [][]byte{t.attrs(), t.Chains[0].attrs("x"), t.Chains[0].Rules[0].attrs("x", "y"), {4, 0, 0, 0}, {0xff, 0xff, 1, 0}} {
		f.Add(b)
		f.Add((&conn{}).message(nil, 0, 0, 1, b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := answers(b); err == nil {
			for _, a := range list {
				_ = a.failure()
				_, _, _ = a.split()
			}
		}
		_ = mentions(b, "ours")
		_, _, _ = parseTable(b)
		_, _, _ = parseChain(b)
		if _, _, r, err := parseRule(b); err == nil {
			_, _ = r.Parse()
		}
		exprs, err := Rule{Exprs: b}.Parse()
		if err != nil {
			return
		}
		for _, e := range exprs {
			if e.Rest != "" || !slices.Contains([]string{Meta, CT, Payload, Cmp, Bitwise, Immediate}, e.Name) {
				continue
			}
			if again, err := NewRule([]Expr{e}).Parse(); err != nil || !slices.Equal(again, []Expr{e}) {
				t.Errorf("%+v is read back as %+v, %v", e, again, err)
			}
		}
	})
}
