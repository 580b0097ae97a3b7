//go:build device && linux

package device

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/continuo-fleet/continuo/test/device/box"
)

// A relay stands between the boxes and the server. It can hang: connections stay and are even accepted, and no byte
// passes, as with a server that is frozen.
type relay struct {
	target string
	port   int // on the hub

	mu    sync.Mutex
	open  *sync.Cond
	hung  bool
	ended bool
	conns map[net.Conn]bool
}

// newRelay relays a port of the hub to target, encrypted bytes and all.
func newRelay(t *testing.T, target string) *relay {
	r := &relay{target: target, conns: map[net.Conn]bool{}}
	r.open = sync.NewCond(&r.mu)
	l := box.HubListen(t, 0)
	r.port = l.Addr().(*net.TCPAddr).Port
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { r.carry(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.end()
		running.Wait()
	})
	return r
}

func (r *relay) carry(c net.Conn) {
	defer c.Close()
	if !r.pass() {
		return
	}
	d, err := net.Dial("tcp", r.target)
	if err != nil {
		return // as if nobody listened
	}
	defer d.Close()
	if !r.keep(c, d) {
		return
	}
	defer r.drop(c, d)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
		both.Go(func() {
			buf := make([]byte, 32<<10)
			for {
				n, err := way[1].Read(buf)
				if n > 0 && r.pass() {
					_, _ = way[0].Write(buf[:n])
				}
				if err != nil {
					if tcp, ok := way[0].(*net.TCPConn); ok && err == io.EOF {
						_ = tcp.CloseWrite() // the other direction may go on
					}
					return
				}
			}
		})
	}
	both.Wait()
}

// pass waits while the relay hangs, and tells whether it goes on.
func (r *relay) pass() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.hung && !r.ended {
		r.open.Wait()
	}
	return !r.ended
}

func (r *relay) keep(cs ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range cs {
		r.conns[c] = true
	}
	return !r.ended
}

func (r *relay) drop(cs ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range cs {
		delete(r.conns, c)
	}
}

// hang stops every byte, and lets them go on.
func (r *relay) hang(on bool) {
	r.mu.Lock()
	r.hung = on
	r.mu.Unlock()
	r.open.Broadcast()
}

func (r *relay) end() {
	r.mu.Lock()
	r.ended = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.open.Broadcast()
}
