package natslink

import (
	"bytes"
	"context"
	"errors"
	"net"
)

// A dialer stops dialling when the link stops.
type dialer struct{ ctx context.Context }

func (d dialer) Dial(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, connectTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &greeted{Conn: c}, nil
}

// maxGreeting is the most that a server may say before the end of its first line. It comes before TLS, so whoever is in
// between may have written it, and the library keeps all of it in memory.
const maxGreeting = 256 << 10

// greeted is a connection on which the first line is bounded. The library reads from one goroutine at a time.
type greeted struct {
	net.Conn
	read int
	over bool // the first line has ended
}

func (g *greeted) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	if g.over {
		return n, err
	}
	g.read += n
	g.over = bytes.IndexByte(b[:n], '\n') >= 0
	if !g.over && g.read > maxGreeting {
		return 0, errors.New("the server's greeting does not end: it is no NATS server")
	}
	return n, err
}
