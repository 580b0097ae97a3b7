package pi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// probeHands are those of the machine that the test runs on.
type probeHands struct {
	conform.Disk
	*loopback
}

func TestConformProbes(t *testing.T) { // H63, H74
	conform.Probes(t, func(t *testing.T) conform.ProbeBench {
		d, err := Open(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return conform.ProbeBench{Probes: d.Probes(), Dir: t.TempDir(), Hands: probeHands{conform.Disk{T: t}, newLoopback(t)}}
	})
}

// What the other end sends is not read: no body, however long, and no head beyond a bound.
func TestGetReadsLittle(t *testing.T) {
	over := make(chan error, 1)
	tests := []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		status int
		code   topology.Code
	}{
		{"endless body", func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					over <- err
					return
				}
			}
		}, 200, ""},
		{"body that does not come", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(200)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			over <- nil
		}, 200, ""},
		{"huge head", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Much", strings.Repeat("x", 128<<10))
			over <- nil
		}, 0, topology.CodeUnknown},
		{"no answer", func(http.ResponseWriter, *http.Request) {
			over <- nil
			panic(http.ErrAbortHandler)
		}, 0, topology.CodeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(tt.answer))
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			status, err := prober{}.Get(ctx, s.URL)
			if status != tt.status || (err == nil) != (tt.code == "") || err != nil && topology.FaultOf(err).Code != tt.code {
				t.Errorf("got %d, %v; want %d, %q", status, err, tt.status, tt.code)
			}
			<-over // the connection is gone, or the handler would write for ever
		})
	}
}

// The request says nothing about the device, and nothing of its environment is used.
func TestGetSaysLittle(t *testing.T) {
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Set-Cookie", "a=b")
	}))
	defer s.Close()
	for range 2 {
		if _, err := (prober{}).Get(t.Context(), s.URL); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got.Get("User-Agent") != "continuo-probe" || got.Get("Connection") != "close" {
			t.Errorf("it sent %v", got)
		}
	}
	if asker.Proxy != nil {
		t.Error("a proxy may be used")
	}
}

func TestUnanswered(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: 54321}, Err: os.NewSyscallError("connect", err)}
	}
	live := t.Context()
	late, cancel := context.WithDeadline(live, time.Unix(0, 0))
	defer cancel()
	tests := []struct {
		name string
		ctx  context.Context
		err  error
		code topology.Code
		text string
	}{
		{"refused", live, dial(syscall.ECONNREFUSED), topology.CodeRefused, "what: connection refused"},
		{"no route", live, dial(syscall.EHOSTUNREACH), topology.CodeUnreachable, "what: no route to host"},
		{"no network", live, dial(syscall.ENETUNREACH), topology.CodeUnreachable, "what: network is unreachable"},
		{"no host", live, dial(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), topology.CodeUnreachable, "what: there is no such host"},
		{"no name server", live, dial(&net.DNSError{Err: "server misbehaving", Name: "x", Server: "127.0.0.53:53"}), topology.CodeUnavailable,
			"what: no name server can be asked for the host: lookup x on 127.0.0.53:53: server misbehaving"},
		{"slow name server", live, dial(&net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true}), topology.CodeTimeout, "what: no answer in time"},
		{"the kernel gives up", live, dial(syscall.ETIMEDOUT), topology.CodeTimeout, "what: no answer in time"},
		{"out of descriptors", live, dial(syscall.EMFILE), topology.CodeUnavailable, "what: too many open files"},
		{"out of ports", live, dial(syscall.EADDRNOTAVAIL), topology.CodeUnavailable, "what: cannot assign requested address"},
		{"not allowed", live, dial(syscall.EPERM), topology.CodePermission, "what: operation not permitted"},
		{"hung up", live, dial(io.EOF), topology.CodeUnknown, "what: the connection was closed without an answer"},
		{"no TLS", live, tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, topology.CodeUnknown,
			"what: tls: first record does not look like a TLS handshake"},
		{"the deadline cut something off", late, dial(syscall.ECANCELED), topology.CodeTimeout, "what: no answer in time"},
		{"their words", live, fmt.Errorf("malformed %s", strings.Repeat("x", 1000)), topology.CodeUnknown, "what: malformed " + strings.Repeat("x", 190) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, ok := errors.AsType[*topology.Fault](unanswered(tt.ctx, "what", tt.err))
			if !ok || f.Code != tt.code || f.Text != tt.text {
				t.Errorf("got %+v, want %s: %s", f, tt.code, tt.text)
			}
		})
	}
}

func BenchmarkProbes(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	d, err := Open(b.Context(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	file := b.TempDir() + "/beat"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		b.Fatal(err)
	}
	for name, look := range map[string]func() error{
		"tcp":  func() error { return d.Probes().Connect(b.Context(), s.Listener.Addr().String()) },
		"http": func() error { _, err := d.Probes().Get(b.Context(), s.URL); return err },
		"file": func() error { _, err := d.Probes().Modified(b.Context(), file); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := look(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
