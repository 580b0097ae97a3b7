package wire

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
)

// encode writes a protocol struct: a map of its fields in their order, integers in their shortest form. The same value
// gives the same bytes.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := msgpack.NewEncoder(&b)
	e.UseCompactInts(true)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode %T: %w", v, err)
	}
	return b.Bytes(), nil
}

// decode reads a protocol struct into *T. It differs from the library's own decoding, which takes -1 for
// 18446744073709551615, 300 for 44 and nil for anything: here a field has its type and its range, or the whole is
// refused. A field that T does not have is ignored, one that is missing stays zero.
func decode[T any](b []byte, limit int) (T, error) {
	var v T
	if r := guard(b, limit); r != nil {
		return v, r
	}
	d := msgpack.NewDecoder(bytes.NewReader(b))
	if err := decodeStruct(d, reflect.ValueOf(&v).Elem()); err != nil {
		var zero T
		return zero, refuse(CodeMalformed, "cannot decode %T: %v", v, err)
	}
	return v, nil
}

func decodeStruct(d *msgpack.Decoder, v reflect.Value) error {
	n, err := mapLen(d)
	if err != nil {
		return err
	}
	fields := fieldTables[v.Type()]
	for range n {
		name, err := d.DecodeString()
		if err != nil {
			return err
		}
		i, known := fields[name]
		if !known {
			if err := d.Skip(); err != nil {
				return err
			}
			continue
		}
		if err := decodeValue(d, v.Field(i)); err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	return nil
}

func decodeValue(d *msgpack.Decoder, v reflect.Value) error {
	c, err := d.PeekCode()
	if err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8:
		n, err := decodeUint(d, c)
		if err == nil && v.OverflowUint(n) {
			err = fmt.Errorf("%d is out of range", n)
		}
		v.SetUint(n)
		return err
	case reflect.Bool:
		if c != 0xc2 && c != 0xc3 {
			return fmt.Errorf("not true or false (code %#x)", c)
		}
		b, err := d.DecodeBool()
		v.SetBool(b)
		return err
	case reflect.String:
		if !(c >= 0xa0 && c <= 0xbf) && !(c >= 0xd9 && c <= 0xdb) {
			return fmt.Errorf("not text (code %#x)", c)
		}
		s, err := d.DecodeString()
		if err == nil && !utf8.ValidString(s) {
			err = fmt.Errorf("text is not UTF-8")
		}
		v.SetString(s)
		return err
	case reflect.Slice: // of bytes: checkField allows no other
		if c < 0xc4 || c > 0xc6 {
			return fmt.Errorf("not bytes (code %#x)", c)
		}
		b, err := d.DecodeBytes()
		v.SetBytes(b)
		return err
	case reflect.Map: // of text to unsigned
		n, err := mapLen(d)
		if err != nil {
			return err
		}
		m := make(Generations, n)
		for range n {
			key, err := d.DecodeString()
			if err != nil {
				return err
			}
			if !utf8.ValidString(key) {
				return fmt.Errorf("key is not UTF-8")
			}
			c, err := d.PeekCode()
			if err != nil {
				return err
			}
			if m[key], err = decodeUint(d, c); err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
		}
		v.Set(reflect.ValueOf(m))
		return nil
	}
	panic(fmt.Sprintf("wire: no decoding of %s", v.Type()))
}

// decodeUint reads any integer that is not negative, however wide it was written.
func decodeUint(d *msgpack.Decoder, code byte) (uint64, error) {
	switch {
	case code <= 0x7f, code >= 0xcc && code <= 0xcf:
		return d.DecodeUint64()
	case code >= 0xd0 && code <= 0xd3, code >= 0xe0:
		n, err := d.DecodeInt64()
		if err == nil && n < 0 {
			err = fmt.Errorf("%d is negative", n)
		}
		return uint64(max(n, 0)), err
	}
	return math.MaxUint64, fmt.Errorf("not an integer (code %#x)", code)
}

func mapLen(d *msgpack.Decoder) (int, error) {
	c, err := d.PeekCode()
	if err != nil {
		return 0, err
	}
	if !(c >= 0x80 && c <= 0x8f) && c != 0xde && c != 0xdf {
		return 0, fmt.Errorf("not a map (code %#x)", c)
	}
	return d.DecodeMapLen()
}

// Generations are generations by name.
type Generations map[string]uint64

// EncodeMsgpack writes the names in order: the library sorts only some types of map.
func (g Generations) EncodeMsgpack(e *msgpack.Encoder) error {
	if err := e.EncodeMapLen(len(g)); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if err := e.EncodeString(name); err != nil {
			return err
		}
		if err := e.EncodeUint(g[name]); err != nil {
			return err
		}
	}
	return nil
}

// fieldTables has, for each protocol struct, its fields by their names on the wire. It is made once, so that a struct
// which could not be decoded stops the program when it starts.
var fieldTables = func() map[reflect.Type]map[string]int {
	tables := map[reflect.Type]map[string]int{}
	for _, t := range protocol {
		table := map[string]int{}
		for i := range t.NumField() {
			f := t.Field(i)
			checkField(f)
			table[wireName(f)] = i
		}
		tables[t] = table
	}
	return tables
}()

// protocol lists the structs that travel as msgpack.
var protocol = []reflect.Type{
	reflect.TypeFor[Statement](),
	reflect.TypeFor[Heartbeat](),
	reflect.TypeFor[ControlEnvelope](),
}

func checkField(f reflect.StructField) {
	switch f.Type.Kind() {
	case reflect.Uint64, reflect.Uint32, reflect.Uint16, reflect.Uint8, reflect.Bool, reflect.String:
		return
	case reflect.Slice:
		if f.Type.Elem().Kind() == reflect.Uint8 {
			return
		}
	case reflect.Map:
		if f.Type == reflect.TypeFor[Generations]() {
			return
		}
	}
	panic(fmt.Sprintf("wire: field %s has a type that does not travel: %s", f.Name, f.Type))
}
