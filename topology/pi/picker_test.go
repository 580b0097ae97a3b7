package pi

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"reflect"
	"slices"
	"testing"

	"github.com/godbus/dbus/v5"
)

// answer is a message with one body.
func answer(t testing.TB, kind dbus.Type, order binary.ByteOrder, body any) []byte {
	t.Helper()
	m := &dbus.Message{Type: kind, Body: []any{body}, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body)), dbus.FieldReplySerial: dbus.MakeVariant(uint32(7)),
		dbus.FieldSender: dbus.MakeVariant(":1.2"), dbus.FieldErrorName: dbus.MakeVariant("a.b"),
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/a")), dbus.FieldInterface: dbus.MakeVariant("a.b"), dbus.FieldMember: dbus.MakeVariant("c"),
	}}
	var b bytes.Buffer
	if err := m.EncodeTo(&b, order); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var everyType = map[string]dbus.Variant{
	"y": dbus.MakeVariant(byte(1)), "b": dbus.MakeVariant(true), "n": dbus.MakeVariant(int16(-2)), "q": dbus.MakeVariant(uint16(3)),
	"i": dbus.MakeVariant(int32(-4)), "u": dbus.MakeVariant(uint32(5)), "x": dbus.MakeVariant(int64(-6)), "t": dbus.MakeVariant(uint64(7)),
	"d": dbus.MakeVariant(8.5), "s": dbus.MakeVariant("nine"), "o": dbus.MakeVariant(dbus.ObjectPath("/ten")),
	"g": dbus.MakeVariant(dbus.ParseSignatureMust("a{sv}")), "v": dbus.MakeVariant(dbus.MakeVariant("in one")),
	"ay": dbus.MakeVariant([]byte{1, 2, 3}), "as": dbus.MakeVariant([]string{"a", "bc"}), "none": dbus.MakeVariant([]string{}),
	"at": dbus.MakeVariant([]uint64{1}), "no t": dbus.MakeVariant([]uint64{}),
	"(uo)": dbus.MakeVariant(struct {
		A uint32
		B dbus.ObjectPath
	}{1, "/a"}),
	"a(ss)": dbus.MakeVariant([]struct{ A, B string }{{"a", "b"}, {"c", "d"}}),
	"(sasy)": dbus.MakeVariant(struct {
		A string
		B []string
		C byte
	}{"a", []string{"b"}, 1}),
	"a{sv}": dbus.MakeVariant(map[string]dbus.Variant{"x": dbus.MakeVariant(byte(1))}),
	"aas":   dbus.MakeVariant([][]string{{"a"}, {}}),
}

// Of an answer only what is wanted is passed on, and that as it was.
func TestPicking(t *testing.T) {
	all := slices.Sorted(maps.Keys(everyType))
	whole, err := dbus.DecodeMessage(bytes.NewReader(answer(t, dbus.TypeMethodReply, binary.LittleEndian, everyType)))
	if err != nil {
		t.Fatal(err)
	}
	full := whole.Body[0].(map[string]dbus.Variant)
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, name := range all {
			for _, wanted := range [][]string{nil, {name}, {name, "b"}, all} {
				m := picked(t, answer(t, dbus.TypeMethodReply, order, everyType), wanted)
				want := map[string]dbus.Variant{}
				for _, w := range wanted {
					want[w] = full[w]
				}
				if got := m.Body[0]; !reflect.DeepEqual(got, want) {
					t.Errorf("%v: of %q came %v, want %v", order, wanted, got, want)
				}
			}
		}
	}
}

// What is no answer with properties is passed on as it is.
func TestPickingNothing(t *testing.T) {
	for name, m := range map[string][]byte{
		"a signal":        answer(t, dbus.TypeSignal, binary.LittleEndian, everyType),
		"an error":        answer(t, dbus.TypeError, binary.LittleEndian, "cannot"),
		"another answer":  answer(t, dbus.TypeMethodReply, binary.LittleEndian, map[string]string{"a": "b"}),
		"a text":          answer(t, dbus.TypeMethodReply, binary.BigEndian, "a{sv}"),
		"a cut off one":   cutOff(answer(t, dbus.TypeMethodReply, binary.LittleEndian, everyType)),
		"without a body":  {'l', 2, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
		"no known fields": {'l', 2, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9},
	} {
		if got := pick(bytes.Clone(m), map[string]bool{"y": true}); !bytes.Equal(got, m) {
			t.Errorf("%s: %q became %q", name, m, got)
		}
	}
}

// cutOff shortens the last property, whose length stays.
func cutOff(m []byte) []byte {
	m = m[:len(m)-8]
	binary.LittleEndian.PutUint32(m[4:], binary.LittleEndian.Uint32(m[4:])-8)
	return m
}

func picked(t testing.TB, m []byte, wanted []string) *dbus.Message {
	t.Helper()
	names := map[string]bool{}
	for _, w := range wanted {
		names[w] = true
	}
	out := pick(m, names)
	if size := 16 + (int(orderOf(out).Uint32(out[12:]))+7)&^7 + int(orderOf(out).Uint32(out[4:])); size != len(out) {
		t.Fatalf("it has %d bytes, and says %d", len(out), size)
	}
	got, err := dbus.DecodeMessage(bytes.NewReader(out))
	if err != nil {
		t.Fatalf("%q: %v", wanted, err)
	}
	return got
}

func orderOf(m []byte) binary.ByteOrder {
	order, _ := byteOrder(m[0])
	return order
}

// The greeting is passed on line by line, and then message by message, in whatever pieces they come; the end is the end.
func TestPickingFromAConnection(t *testing.T) {
	here, there := net.Pipe()
	p := newPicker(here, []string{"s"}, maxMessage)
	first, second := answer(t, dbus.TypeMethodReply, binary.LittleEndian, everyType), answer(t, dbus.TypeMethodReply, binary.LittleEndian, "text")
	go func() {
		defer there.Close()
		_, _ = there.Write([]byte("OK\r\n"))
		_, _ = io.ReadFull(there, make([]byte, len("BEGIN\r\n")))
		for b := range slices.Chunk(slices.Concat(first, second, second[:20]), 13) {
			_, _ = there.Write(b)
		}
	}()
	line := make([]byte, 4)
	if _, err := io.ReadFull(p, line); err != nil || string(line) != "OK\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := p.Write([]byte("BEGIN\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []any{map[string]dbus.Variant{"s": everyType["s"]}, "text"} {
		if m, err := dbus.DecodeMessage(p); err != nil || !reflect.DeepEqual(m.Body[0], want) {
			t.Errorf("%v, %v; want %v", m, err, want)
		}
	}
	if _, err := p.Read(line); err != io.ErrUnexpectedEOF {
		t.Errorf("after a half message: %v", err)
	}
}

// What a bus could send that is none ends the connection, and takes no memory.
func TestPickingFromGarbage(t *testing.T) {
	for want, head := range map[error]string{
		errNoMessage:        "HTTP/1.1 400 Bad",
		errTooLong:          "l\x02\x00\x01\x00\x00\x00\xff\x01\x00\x00\x00\x00\x00\x00\x00",
		io.ErrUnexpectedEOF: "l\x02\x00\x01\x08\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
	} {
		here, there := net.Pipe()
		go func() { _, _ = there.Write([]byte(head)); _ = there.Close() }()
		p := newPicker(here, nil, maxMessage)
		p.messages = true
		if _, err := p.Read(make([]byte, 8)); err != want {
			t.Errorf("%q: %v, want %v", head, err, want)
		}
	}
}

// Whatever comes, what the library makes of it after picking is a part of what it makes of it before.
func FuzzPick(f *testing.F) {
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(answer(f, dbus.TypeMethodReply, order, everyType))
		f.Add(answer(f, dbus.TypeMethodReply, order, map[string]dbus.Variant{}))
		f.Add(answer(f, dbus.TypeSignal, order, "text"))
	}
	wanted := map[string]bool{"s": true, "as": true, "x": true, "(uo)": true}
	f.Fuzz(func(t *testing.T, m []byte) {
		if len(m) < fixedHeader {
			return
		}
		order, ok := byteOrder(m[0])
		if size := fixedHeader + (uint64(order.Uint32(m[12:]))+7)&^7 + uint64(order.Uint32(m[4:])); !ok || size != uint64(len(m)) {
			return
		}
		before, err := dbus.DecodeMessage(bytes.NewReader(m))
		after, aerr := dbus.DecodeMessage(bytes.NewReader(pick(bytes.Clone(m), wanted)))
		if err != nil {
			return // what cannot be read may become readable: what is skipped is not judged
		}
		if aerr != nil {
			t.Fatalf("%v", aerr)
		}
		all, props := before.Body, map[string]dbus.Variant(nil)
		if len(all) == 1 {
			props, _ = all[0].(map[string]dbus.Variant)
		}
		if props == nil || before.Type != dbus.TypeMethodReply {
			if !reflect.DeepEqual(before.Headers, after.Headers) || len(all) != len(after.Body) {
				t.Fatalf("%v became %v", before, after)
			}
			return
		}
		got := after.Body[0].(map[string]dbus.Variant)
		for k, v := range props {
			if g, here := got[k]; wanted[k] && (!here || g.String() != v.String()) {
				t.Fatalf("%q is %v, and was %v", k, g, v)
			}
		}
		for k := range got {
			if _, was := props[k]; !was {
				t.Fatalf("%q was not there", k)
			}
		}
	})
}
