package natslink

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// audited are the messages of the audit.
func (r *rig) audited(n int) (out []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	s, err := r.js.Stream(ctx, wire.StreamAudit)
	if err != nil {
		r.t.Fatal(err)
	}
	if have := s.CachedInfo().State.Msgs; have != uint64(n) {
		r.t.Errorf("%d messages are stored, want %d", have, n)
	}
	for i := range n {
		m, err := s.GetMsg(ctx, uint64(i+1))
		if err != nil {
			r.t.Fatal(err)
		}
		if m.Subject != wire.AuditSubject(pi1) {
			r.t.Errorf("stored under %s", m.Subject)
		}
		out = append(out, string(m.Data))
	}
	return out
}

// Entries go several in a message. What is sent again because the answer was lost is stored once. A fleet that keeps no audit,
// or has no room, is an error, and so is what fits nowhere: whoever has the entries keeps them.
func TestAuditIsStoredOnce(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.obeying()
	o.Servers = []string{p.url()}
	o.tune.timeout = 200 * time.Millisecond
	l, _ := r.runDoer(o)
	r.online(l)
	entries := [][]byte{[]byte("1"), []byte("2"), []byte("3")}
	sprung := p.deafen("audit.")
	if n, err := l.Audit(t.Context(), entries); err == nil || n > 0 {
		t.Errorf("a lost answer is %d, %v", n, err)
	}
	<-sprung
	p.hear()
	send := func(entries [][]byte) int {
		for {
			n, err := l.Audit(t.Context(), entries)
			if err == nil {
				return n
			}
			t.Log(err)
		}
	}
	if n := send(entries); n != 3 {
		t.Errorf("%d are stored", n)
	}
	if got := r.audited(1); got[0] != "1\n2\n3" {
		t.Errorf("stored %q", got)
	}
	var many [][]byte
	for i := range 40 {
		many = append(many, fmt.Appendf(nil, "%02d%s", i, strings.Repeat("x", wire.MaxAuditEntry-2)))
	}
	n := send(many)
	if n < 10 || n > 16 {
		t.Errorf("%d of 40 entries went in one message", n)
	}
	if got := r.audited(2)[1]; len(got) > wire.MaxAuditMessage || len(strings.Split(got, "\n")) != n {
		t.Errorf("%d bytes in %d lines", len(got), len(strings.Split(got, "\n")))
	}
	for _, bad := range [][][]byte{nil, {[]byte("a\nb")}, {bytes.Repeat([]byte("x"), wire.MaxAuditMessage)}} {
		if n, err := l.Audit(t.Context(), bad); err == nil || n > 0 {
			t.Errorf("%.20q is %d, %v", bad, n, err)
		}
	}
	if err := r.js.DeleteStream(t.Context(), wire.StreamAudit); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Audit(t.Context(), entries); err == nil || !strings.Contains(err.Error(), "continuo setup") {
		t.Errorf("without a stream: %v", err)
	}
	if _, err := r.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: wire.StreamAudit, Subjects: []string{wire.AllAudit}, MaxMsgs: 1, Discard: jetstream.DiscardNew}); err != nil {
		t.Fatal(err)
	}
	send(entries)
	if n, err := l.Audit(t.Context(), [][]byte{[]byte("4")}); err == nil || n > 0 || !strings.HasPrefix(err.Error(), "cannot send the audit: ") {
		t.Errorf("without room: %d, %v", n, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.setDown(true)
	if _, err := l.Audit(ctx, entries); err == nil {
		t.Error("sent without a connection")
	}
}
