package natslink

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A spread keeps the devices of a fleet from connecting all at once. The control side sizes its window: a server that
// gets more logins than it can answer in two seconds answers none of them.
type spread struct {
	atOnce bool
	keep   func(time.Duration)

	mu     sync.Mutex
	window time.Duration
	tried  int // servers, since the connection was lost
	now    bool
}

func newSpread(o Options) *spread {
	return &spread{atOnce: o.atOnce, keep: o.KeepWindow, window: min(o.Window, wire.ReconnectBound.Max)}
}

// learn takes over the window that the control side wishes.
func (s *spread) learn(w time.Duration) {
	s.mu.Lock()
	changed := s.window != w
	s.window = w
	s.mu.Unlock()
	if changed && s.keep != nil {
		s.keep(w)
	}
}

// delay is how long to wait before the servers are tried: uniform in the window, every time anew.
func (s *spread) delay() time.Duration {
	if s.atOnce {
		return 20*time.Millisecond + rand.N(80*time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now {
		s.now = false
		return rand.N(100 * time.Millisecond)
	}
	return rand.N(max(s.window, wire.ReconnectBound.Min))
}

// hurry lets the next connection be made at once: this device alone has a reason to connect again.
func (s *spread) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.tried = true, 0
}

// first is how long to wait before the first connection after a start.
func (s *spread) first() time.Duration {
	if s.atOnce {
		return 0
	}
	return s.delay()
}

// next picks the server to try: all of them in turn, with a delay before each round.
func (s *spread) next(servers []nats.Server, _ nats.ServerInfo) (*nats.Server, time.Duration) {
	s.mu.Lock()
	i := s.tried % len(servers)
	s.tried++
	s.mu.Unlock()
	if i > 0 {
		return &servers[i], 0
	}
	return &servers[i], s.delay()
}

// connected starts the rounds over.
func (s *spread) connected() {
	s.mu.Lock()
	s.tried = 0
	s.mu.Unlock()
}
