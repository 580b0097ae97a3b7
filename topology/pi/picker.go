package pi

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// A picker is a connection to a bus that takes out of answers what nobody reads. A unit has
// three hundred properties, and there is no way to ask for some of them at once: to make values of all was
// most of what a pass cost. What is wanted is passed on as it came, to be decoded by the library, and so is
// every message that is no answer of that kind or makes no sense.
//
// It is also what bounds a bus. On that of the system everybody may send signals to everybody, and the manager of a user
// is a program of that user: the library takes a greeting of any length, and 128 MB of a message for ten times as much.
type picker struct {
	net.Conn
	wanted map[string]bool // properties; nil: all
	most   uint64          // bytes of a message

	greeting int  // bytes of it that came
	messages bool // the greeting is over
	in       *bufio.Reader
	message  []byte
	rest     []byte // of it, not read yet
}

const (
	fixedHeader = 16       // bytes of a message
	maxMessage  = 16 << 20 // bytes of one; a unit has about 20 kB
	maxOfUser   = 2 << 20  // the same, from the manager of a user
	maxSignal   = 1 << 20  // bytes of a signal that is read; one that is longer is passed over
	maxGreeting = 16 << 10 // bytes before the first message
	keptMessage = 64 << 10 // bytes that are kept for the next one
)

var (
	errNoMessage = errors.New("what came from the bus is no message")
	errTooLong   = errors.New("a message on the bus is too long")
)

// connect opens a connection to the system bus.
func connect(ctx context.Context) (*dbus.Conn, error) { return connectSystem(ctx, nil) }

// connectPicking opens a connection for the state of units.
func connectPicking(ctx context.Context) (*dbus.Conn, error) {
	return connectSystem(ctx, unitProperties)
}

func connectSystem(ctx context.Context, wanted []string) (*dbus.Conn, error) {
	socket, err := dialer.DialContext(ctx, "unix", systemBus())
	if err != nil {
		return nil, err
	}
	c, err := converse(ctx, newPicker(socket, wanted, maxMessage))
	if err != nil {
		return nil, err
	}
	return greet(c)
}

// converse is the only way in which the library gets a connection.
func converse(ctx context.Context, p *picker) (*dbus.Conn, error) {
	c, err := dbus.NewConn(p, dbus.WithContext(ctx))
	if err != nil {
		_ = p.Close()
	}
	return c, err
}

// systemBus is the path of the socket of the system bus.
func systemBus() string {
	if p, ok := strings.CutPrefix(os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path="); ok {
		p, _, _ = strings.Cut(p, ",")
		return p
	}
	return "/run/dbus/system_bus_socket"
}

// greet says to a bus who is there.
func greet(c *dbus.Conn) (*dbus.Conn, error) {
	err := c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	if err == nil {
		err = c.Hello()
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func newPicker(c net.Conn, wanted []string, most uint64) *picker {
	p := &picker{Conn: c, most: most, in: bufio.NewReader(c)}
	if len(wanted) > 0 {
		p.wanted = map[string]bool{}
	}
	for _, name := range wanted {
		p.wanted[name] = true
	}
	return p
}

// Write watches for the line that ends the greeting: what comes after it are messages.
func (p *picker) Write(b []byte) (int, error) {
	if !p.messages && string(b) == "BEGIN\r\n" {
		p.messages = true
	}
	return p.Conn.Write(b)
}

func (p *picker) Read(b []byte) (int, error) {
	if !p.messages {
		n, err := p.in.Read(b)
		if p.greeting += n; p.greeting > maxGreeting {
			return 0, errTooLong
		}
		return n, err
	}
	if len(p.rest) == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// next reads a message.
func (p *picker) next() error {
	if cap(p.message) > keptMessage {
		p.message = nil
	}
	size, err := p.size()
	if err != nil {
		return err
	}
	if uint64(cap(p.message)) < size {
		p.message = make([]byte, size)
	}
	p.message = p.message[:size]
	if _, err := io.ReadFull(p.in, p.message); err != nil {
		return err
	}
	if p.rest = p.message; p.wanted != nil {
		p.rest = pick(p.message, p.wanted)
	}
	return nil
}

// size is that of the next message. A signal that is too long is passed over: whoever sends it must not end the connection.
func (p *picker) size() (uint64, error) {
	const signal = 4
	for {
		head, err := p.in.Peek(fixedHeader)
		if err != nil {
			return 0, err
		}
		order, ok := byteOrder(head[0])
		if !ok {
			return 0, errNoMessage
		}
		fields, body := uint64(order.Uint32(head[12:])), uint64(order.Uint32(head[4:]))
		size := fixedHeader + (fields+7)&^7 + body
		switch kind := head[1]; {
		case kind == signal && size > maxSignal && size < 1<<27: // the longest that a bus passes on
			if _, err := io.CopyN(io.Discard, p.in, int64(size)); err != nil {
				return 0, err
			}
		case size > p.most:
			return 0, errTooLong
		default:
			return size, nil
		}
	}
}

// byteOrder is that of a message; ok is false if it has none.
func byteOrder(mark byte) (order binary.ByteOrder, ok bool) {
	if mark == 'B' {
		return binary.BigEndian, true
	}
	return binary.LittleEndian, mark == 'l'
}
