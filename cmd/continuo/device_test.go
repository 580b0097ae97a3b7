package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// asker is a device that was handed an invitation.
type asker struct {
	b      *bench
	ticket wire.Ticket
	o      natslink.Options
	asking natslink.Asking
	print  string
}

func (b *bench) asker(file string) *asker {
	b.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	t, err := wire.ParseTicket(text)
	if err != nil {
		b.t.Fatal(err)
	}
	root, err := wire.ParseDSSE(t.Root)
	if err != nil {
		b.t.Fatal(err)
	}
	trust, err := natslink.TrustRoot(root, nil, func([]byte) error { return nil })
	if err != nil {
		b.t.Fatal(err)
	}
	a := &asker{b: b, ticket: t}
	if a.asking, err = natslink.Ask(t, wire.Board{Serial: "board-1"}); err != nil {
		b.t.Fatal(err)
	}
	if a.print, err = a.asking.Fingerprint(); err != nil {
		b.t.Fatal(err)
	}
	a.o = natslink.Options{Servers: t.Servers, Device: t.Device, Trust: trust, Instance: "x"}
	return a
}

// present asks until there is an answer in a state.
func (a *asker) present(want string) {
	a.b.t.Helper()
	var last string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		in, err := natslink.Present(a.b.t.Context(), a.o, a.ticket.Knock, a.asking)
		if err == nil && in.State == want {
			return
		}
		last = in.State
		if err != nil {
			last = err.Error()
		}
	}
	a.b.t.Fatalf("the answer is %q, want %q", last, want)
}

// A device is let in by the fingerprint that it shows, replaced with a word, and taken out: X90.
func TestDevice(t *testing.T) {
	b := newBench(t)
	b.up()
	want := func(code int, words string, args ...string) {
		t.Helper()
		got, out, errs := b.run(append([]string{"device"}, args...)...)
		if got != code || !strings.Contains(out+errs, words) {
			t.Errorf("device %v: %d, want %d and %q\n%s%s", args, got, code, words, out, errs)
		}
	}
	want(0, "no device", "list")
	want(2, "at least 1m", "enroll", "pi-9", "--for", "1s")
	invite := func(name string) *asker {
		t.Helper()
		file := filepath.Join(b.dir, name)
		want(0, "good until", "enroll", "pi-9", "--file", file)
		want(1, "--file names another", "enroll", "pi-9", "--file", file)
		return b.asker(file)
	}
	first := invite("one")
	want(1, "nobody asks", "approve", "pi-9", "--confirm")
	first.present(wire.StateWaiting)
	want(0, "board-1", "list", "--pending")
	want(0, "was never let in", "show", "pi-9")
	want(0, "nothing is changed", "approve", "pi-9")
	want(1, "another fingerprint", "approve", "pi-9", "--fingerprint", "SHA256:x")
	first.present(wire.StateWaiting)
	want(0, "is let in", "approve", "pi-9", "--fingerprint", first.print)
	first.present(wire.StateApproved)
	want(0, "enrolled", "list")

	// Somebody else asks under another invitation, and is refused.
	thief := invite("two")
	thief.present(wire.StateWaiting)
	want(0, "would reject", "reject", "pi-9")
	want(0, "was rejected", "reject", "pi-9", "--confirm")
	thief.present(wire.StateRefused)

	// A new card takes the place of the old one with a word.
	second := invite("three")
	second.present(wire.StateWaiting)
	want(2, "--replace", "approve", "pi-9", "--fingerprint", second.print)
	want(0, "is let in", "approve", "pi-9", "--fingerprint", second.print, "--replace")
	second.present(wire.StateApproved)
	first.present(wire.StateRefused)

	want(0, "nothing is changed", "retire", "pi-9")
	second.present(wire.StateApproved)
	want(0, "is retired", "retire", "pi-9", "--confirm")
	second.present(wire.StateRefused)
	want(0, "retired", "show", "pi-9", "-o", "json")
	want(1, "was never enrolled", "retire", "pi-8", "--confirm")
}
