package pi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// loopback listens on the machine that the test runs on: the part of conform.ProbeHands
// that is about addresses. It is for one test.
type loopback struct {
	t     *testing.T
	mu    sync.Mutex
	asked map[string]int
}

// newLoopback returns one whose listeners are closed when the test is over.
func newLoopback(t *testing.T) *loopback { return &loopback{t: t, asked: map[string]int{}} }

// counted is a listener that notes who comes.
type counted struct {
	net.Listener
	l *loopback
}

func (c counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.l.mu.Lock()
		c.l.asked[c.Addr().String()]++
		c.l.mu.Unlock()
	}
	return conn, err
}

func (l *loopback) listen() (counted, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	return counted{ln, l}, err
}

// Serve answers requests.
func (l *loopback) Serve(scheme string, status int, location string) (string, error) {
	ln, err := l.listen()
	if err != nil {
		return "", err
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if location != "" {
			w.Header().Set("Location", location)
		}
		w.WriteHeader(status)
	}))
	_ = s.Listener.Close()
	s.Listener = ln
	l.t.Cleanup(s.Close)
	if scheme == "https" {
		s.StartTLS()
	} else {
		s.Start()
	}
	return ln.Addr().String(), nil
}

// Mute takes connections and says nothing.
func (l *loopback) Mute() (string, error) {
	ln, err := l.listen()
	if err != nil {
		return "", err
	}
	var conns []net.Conn
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn)
		}
	}()
	l.t.Cleanup(func() {
		_ = ln.Close()
		<-over
		for _, c := range conns {
			_ = c.Close()
		}
	})
	return ln.Addr().String(), nil
}

// Nobody returns an address that was in use until now.
func (l *loopback) Nobody() (string, error) {
	ln, err := l.listen()
	if err != nil {
		return "", err
	}
	return ln.Addr().String(), ln.Close()
}

// Asked is how often somebody came.
func (l *loopback) Asked(address string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked[address], nil
}
