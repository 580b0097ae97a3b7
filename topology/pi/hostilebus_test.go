package pi

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
)

// onBus is a picker whose greeting is over, on a connection that says something and ends.
func onBus(t testing.TB, most uint64, said ...[]byte) *picker {
	here, there := net.Pipe()
	go func() {
		for _, b := range said {
			_, _ = there.Write(b)
		}
		_ = there.Close()
	}()
	t.Cleanup(func() { _ = here.Close() })
	p := newPicker(here, nil, most)
	p.messages = true
	return p
}

// A local user may send signals to everybody on the system bus, and is the other end of his own manager's socket: nothing
// that he says makes the agent take much memory, or break off what others say.
func TestHostileBus(t *testing.T) {
	text := func(kind dbus.Type, n int) []byte {
		return answer(t, kind, binary.LittleEndian, strings.Repeat("x", n))
	}
	first, long := answer(t, dbus.TypeMethodReply, binary.LittleEndian, everyType), text(dbus.TypeSignal, 3<<20)

	// A long signal is passed over, and what comes behind it is heard, with everything in it.
	p := onBus(t, maxOfUser, long, first, long)
	m, err := dbus.DecodeMessage(p)
	if err != nil || len(m.Body[0].(map[string]dbus.Variant)) != len(everyType) {
		t.Errorf("after a long signal: %v, %v", m, err)
	}
	if cap(p.message) > 4<<10 {
		t.Errorf("it took %d bytes", cap(p.message))
	}
	if _, err := dbus.DecodeMessage(p); !errors.Is(err, io.EOF) {
		t.Errorf("after the last one: %v", err)
	}

	claims := func(kind byte, fields, body uint32) []byte {
		b := []byte{'l', kind, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}
		binary.LittleEndian.PutUint32(b[4:], body)
		binary.LittleEndian.PutUint32(b[12:], fields)
		return b
	}
	for name, said := range map[string][]byte{
		"a long answer":                 text(dbus.TypeMethodReply, 3<<20),
		"a long call":                   text(dbus.TypeMethodCall, 3<<20),
		"a signal without an end":       claims(4, 0, 1<<31),
		"lengths whose sum is a few":    claims(2, 0xfffffff0, 0x20),
		"a signal of such lengths":      claims(4, 0xfffffff0, 0x20),
		"fields without an end":         claims(2, 0x7fffffff, 0),
		"no kind of message and a body": claims(9, 0, 0x7fffffff),
	} {
		p := onBus(t, maxOfUser, said, first)
		if m, err := dbus.DecodeMessage(p); !errors.Is(err, errTooLong) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
		if cap(p.message) > 0 {
			t.Errorf("%s: it took %d bytes", name, cap(p.message))
		}
	}

	// A greeting that never ends.
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		for err := error(nil); err == nil; {
			_, err = there.Write(bytes.Repeat([]byte("OK "), 1000))
		}
	}()
	said, err := io.ReadAll(newPicker(here, nil, maxOfUser))
	if !errors.Is(err, errTooLong) || len(said) > maxGreeting {
		t.Errorf("of a greeting without an end came %d bytes, %v", len(said), err)
	}
}

// FuzzBus hands over whatever a bus could say: the library reads it in a goroutine of its own, where no panic is survived.
func FuzzBus(f *testing.F) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(answer(f, dbus.TypeMethodReply, order, everyType))
		f.Add(slices.Concat(answer(f, dbus.TypeSignal, order, "text"), answer(f, dbus.TypeError, order, "text")))
		f.Add(answer(f, dbus.TypeMethodReply, order, []any{"a", []string{"b"}}))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		p := &picker{most: 64 << 10, messages: true, in: bufio.NewReader(bytes.NewReader(said))}
		for range 4 {
			if _, err := dbus.DecodeMessage(p); err != nil {
				return
			}
		}
	})
}
