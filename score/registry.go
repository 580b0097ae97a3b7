package score

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A Definition makes a kind known to the decoder, the schemas, the documents and
// the audit tests.
type Definition[S Spec] struct {
	// Doc is one sentence.
	Doc string
	// Needs lists the capabilities a device must have.
	Needs []Capability
	// Stability is Stable if it is left out.
	Stability Stability
	// Sample is a valid, realistic value.
	Sample S
}

// Stability says what a kind promises.
type Stability string

// Stabilities.
const (
	Stable       Stability = "stable"       // it changes only in ways that old manifests do not notice
	Experimental Stability = "experimental" // it may change or go; a manifest must say that it allows for that
)

// A KindInfo describes a registered kind to generators and tests.
type KindInfo struct {
	Kind   Kind
	Doc    string
	Needs  []Capability
	Type   reflect.Type
	Sample Spec
	// Stability is never empty.
	Stability Stability
	// Effects is what changing a field does to a device at worst, by the name of the field: what its tag
	// `effect:"…"` says, one of the effects of package interpret. A field without the tag counts as destroy.
	Effects map[string]string

	decode func(jsontext.Value) (Spec, error)
}

var registry = map[Kind]KindInfo{}

// Register adds a kind. Call it from init in the file that declares the spec.
// Registering a kind twice panics.
func Register[S Spec](d Definition[S]) {
	k := d.Sample.Kind()
	if _, dup := registry[k]; dup || k == "" {
		panic(fmt.Sprintf("score: bad or duplicate kind %q (%T)", k, d.Sample))
	}
	if f := undata(reflect.TypeFor[S](), string(k)); f != "" {
		panic(fmt.Sprintf("score: kind %q is not plain data: %s", k, f))
	}
	required := requiredFields(reflect.TypeFor[S]())
	registry[k] = KindInfo{k, d.Doc, d.Needs, reflect.TypeFor[S](), d.Sample, cmp.Or(d.Stability, Stable), effects(reflect.TypeFor[S]()), func(raw jsontext.Value) (Spec, error) {
		var s S
		err := Decode(raw, &s)
		if err == nil && doubtful(raw, reflect.ValueOf(&s).Elem()) {
			err = whole(raw, required)
		}
		if c, ok := any(s).(completer); ok && err == nil {
			for _, more := range c.requires() {
				if err = whole(raw, append(slices.Clip(required), more.field)); err != nil {
					return s, more.explain(err)
				}
			}
		}
		return s, err
	}}
}

// A completer is a spec with fields that must be given, or not, because of others.
type completer interface {
	// requires lists the fields that are zero and, as the spec is, mean that.
	requires() []lack
}

// A lack is a field that must be given, and what to do if it is not.
type lack struct{ field, advice string }

// explain adds the advice to what whole found, if that is the field.
func (l lack) explain(err error) error {
	if de, ok := errors.AsType[*DecodeError](err); ok && de.Text == missing(l.field) {
		return &DecodeError{de.Path, de.Text + ": " + l.advice}
	}
	return err
}

func missing(field string) string { return fmt.Sprintf("missing field %q", field) }

func effects(t reflect.Type) map[string]string {
	out := map[string]string{}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out[cmp.Or(name, f.Name)] = cmp.Or(f.Tag.Get("effect"), "destroy")
	}
	return out
}

// Kinds lists the registered kinds, sorted by name.
func Kinds() []KindInfo {
	out := make([]KindInfo, 0, len(registry))
	for _, k := range slices.Sorted(maps.Keys(registry)) {
		out = append(out, registry[k])
	}
	return out
}

// Lookup returns the description of k.
func Lookup(k Kind) (KindInfo, bool) {
	i, ok := registry[k]
	return i, ok
}

func kindNames() []string {
	var out []string
	for k := range registry {
		out = append(out, string(k))
	}
	slices.Sort(out)
	return out
}

func decode(k Kind, raw jsontext.Value) Spec {
	i, ok := registry[k]
	if !ok {
		return Opaque{Of: k, Raw: slices.Clone(raw)}
	}
	s, err := i.decode(raw)
	if err != nil {
		o := Opaque{Of: k, Raw: slices.Clone(raw), Why: err.Error()}
		if de, ok := errors.AsType[*DecodeError](err); ok {
			o.Why, o.Path = de.Text, de.Path
		}
		return o
	}
	return s
}

// requiredFields lists the fields of a spec that are never left out.
func requiredFields(t reflect.Type) (out []string) {
	for f := range t.Fields() {
		if !optional(f) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			out = append(out, cmp.Or(name, f.Name))
		}
	}
	return out
}

// doubtful reports whether a spec that was decoded may not be whole. Most are, and a
// second look at all of them costs as much as the first.
func doubtful(raw jsontext.Value, spec reflect.Value) bool {
	if bytes.Contains(raw, []byte("null")) {
		return true
	}
	for f, v := range spec.Fields() {
		if v.IsZero() && !optional(f) {
			return true
		}
	}
	return false
}

func optional(f reflect.StructField) bool {
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.Contains(options, "omit")
}

// whole refuses what decoding lets pass and nobody means: a spec without a field that
// it must have, which would get the zero value, and null anywhere. A device has no
// schema to say so.
func whole(raw jsontext.Value, required []string) error {
	dec := jsontext.NewDecoder(bytes.NewReader(raw))
	seen := make([]bool, len(required))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			break // the end: it was decoded before
		}
		switch {
		case tok.Kind() == 'n':
			return &DecodeError{string(dec.StackPointer()), "found null: leave the field out, or give it a value"}
		case dec.StackDepth() == 1 && tok.Kind() == '"':
			if _, n := dec.StackIndex(1); n%2 == 1 { // a name, not a value
				if i := slices.Index(required, tok.String()); i >= 0 {
					seen[i] = true
				}
			}
		}
	}
	if i := slices.Index(seen, false); i >= 0 {
		return &DecodeError{"", missing(required[i])}
	}
	return nil
}

// undata names the first part of t that is not plain, closed data: behaviour, a
// raw document, or a field that encoding would drop.
func undata(t reflect.Type, at string) string {
	if t.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()) {
		return "" // a text type: its codec is its own, tested in this package
	}
	switch t.Kind() {
	case reflect.Interface, reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Float32, reflect.Float64:
		return at + " is a " + t.Kind().String()
	case reflect.Map, reflect.Slice, reflect.Array, reflect.Pointer:
		if t.Kind() != reflect.Map && t.Elem().Kind() == reflect.Uint8 { // jsontext.Value, json.RawMessage, bytes
			return at + " is a raw document"
		}
		return undata(t.Elem(), at+"[]")
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() || f.Anonymous {
				return at + "." + f.Name + " is unexported or embedded"
			}
			if bad := undata(f.Type, at+"."+f.Name); bad != "" {
				return bad
			}
		}
	}
	return ""
}
