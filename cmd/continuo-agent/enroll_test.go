package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"

	"github.com/continuo-fleet/continuo/agent/config"
)

// A hub is the server of a fleet, with an operator who approves whatever asks.
type hub struct {
	*localnats.Server
	t   *testing.T
	dir localnats.Dir
}

func newHub(t *testing.T) *hub {
	t.Helper()
	dir := t.TempDir()
	s, err := localnats.Start(localnats.Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if _, err := s.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, fleet.ServeOptions{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &hub{s, t, localnats.Dir(dir)}
}

func (h *hub) invite() wire.Ticket {
	h.t.Helper()
	ticket, err := h.dir.Invite(fleet.Device{Site: "main", ID: "pi-1"}, time.Hour, time.Now(), h.Keys().Operator)
	if err != nil {
		h.t.Fatal(err)
	}
	return ticket
}

// approve approves the first that asks.
func (h *hub) approve() {
	h.t.Helper()
	f, err := fleet.Connect(h.t.Context(), h.dir.Control())
	if err != nil {
		h.t.Error(err)
		return
	}
	defer f.Close()
	operators, err := h.dir.Operators()
	if err != nil {
		h.t.Error(err)
		return
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		all, err := f.Devices(h.t.Context(), operators, time.Now())
		if err != nil {
			h.t.Error(err)
			return
		}
		for _, e := range all {
			if len(e.Waiting) > 0 {
				if _, err := f.Approve(h.t.Context(), e.Device, e.Waiting[0], operators, h.Keys().Operator, time.Now()); err != nil {
					h.t.Error(err)
					return
				}
				return
			}
		}
	}
	h.t.Error("nobody asks")
}

func enrolIn(dir string) enrolment {
	return enrolment{config: filepath.Join(dir, "agent.yaml"), every: 10 * time.Millisecond}
}

// usable says what is wrong with what enroll left behind.
func usable(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "agent.yaml")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c config.Config
	for _, d := range source.Decode(file, b, &c, func() []score.Problem { return c.Validate() }) {
		t.Error(d)
	}
	if err := c.CheckFiles(); err != nil {
		t.Error(err)
	}
	trust, err := trustOf(c)
	if err != nil {
		t.Fatal(err)
	}
	link, err := newLink(c, trust, identity(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := link.Reach(t.Context()); err != nil {
		t.Errorf("it is not let in: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, askingFile)); !os.IsNotExist(err) {
		t.Errorf("the request is still there: %v", err)
	}
}

// The way of a device into its fleet, on a real server.
func TestEnroll(t *testing.T) {
	h, dir := newHub(t), t.TempDir()
	go h.approve()
	var out bytes.Buffer
	ticket := h.invite()
	if err := enrolIn(dir).run(t.Context(), ticket, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	usable(t, dir)
	if !strings.Contains(out.String(), "device approve pi-1 --fingerprint SHA256:") || !strings.Contains(out.String(), "it is let in") {
		t.Errorf("it says\n%s", out.String())
	}
	// Nothing that is there is replaced without a word.
	if err := enrolIn(dir).run(t.Context(), ticket, &out); err == nil || !strings.Contains(err.Error(), "--replace") {
		t.Errorf("again: %v", err)
	}
	// With a word it asks with another key, and the invitation is used up.
	e := enrolIn(dir)
	e.replace = true
	if err := e.run(t.Context(), ticket, &out); err == nil || !strings.Contains(err.Error(), "another request was presented") {
		t.Errorf("a used invitation: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "agent.yaml.before")); err != nil {
		t.Error(err)
	}
}

// Wherever it is interrupted, it goes on with the same key when it is started again.
func TestEnrollInterrupted(t *testing.T) {
	h := newHub(t)
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, e enrolment, ticket wire.Ticket)
	}{
		{"before it has asked", func(t *testing.T, e enrolment, ticket wire.Ticket) {
			if _, err := e.begin(ticket); err != nil {
				t.Fatal(err)
			}
		}},
		{"while it waits", func(t *testing.T, e enrolment, ticket wire.Ticket) {
			ctx, cancel := context.WithCancel(t.Context())
			out := writer(func(b []byte) {
				if strings.Contains(string(b), "waiting for an operator") {
					cancel()
				}
			})
			if err := e.run(ctx, ticket, out); err == nil || !strings.Contains(err.Error(), "it goes on") {
				t.Fatalf("got %v", err)
			}
		}},
		{"with the credential and no configuration", func(t *testing.T, e enrolment, ticket wire.Ticket) {
			a, err := e.begin(ticket)
			if err != nil {
				t.Fatal(err)
			}
			if err := keepCreds(e.file(credsFile))(a.Creds("torn"), "torn"); err != nil {
				t.Fatal(err)
			}
		}},
		{"with everything and the request", func(t *testing.T, e enrolment, ticket wire.Ticket) {
			if _, err := e.begin(ticket); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(e.config, []byte("torn"), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, ticket := t.TempDir(), h.invite()
			e := enrolIn(dir)
			tt.run(t, e, ticket)
			before, err := e.begin(ticket)
			if err != nil {
				t.Fatal(err)
			}
			go h.approve()
			var out bytes.Buffer
			if err := e.run(t.Context(), ticket, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			usable(t, dir)
			fingerprint, err := before.Fingerprint()
			if err != nil || !strings.Contains(out.String(), fingerprint) {
				t.Errorf("it asks with another key than %s: %v\n%s", fingerprint, err, out.String())
			}
		})
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
