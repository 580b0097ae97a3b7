package source

import (
	"encoding"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/score"
	"github.com/go-json-experiment/json/jsontext"
)

// checkShape compares the tree with the Go type that v points to: fields, types and closed
// sets of words. It stands in for the schema where that is not linked; a test holds the
// two together.
func (d *Document) checkShape(v any) {
	s := shaper{d, map[reflect.Type]fields{}}
	s.check(d.root, "", reflect.TypeOf(v).Elem(), field{})
}

type shaper struct {
	d     *Document
	known map[reflect.Type]fields
}

var textTypes = map[reflect.Type]string{
	reflect.TypeFor[score.Mode]():     score.ModePattern,
	reflect.TypeFor[score.Duration](): score.DurationPattern,
	reflect.TypeFor[score.Port]():     score.PortPattern,
	reflect.TypeFor[score.Volume]():   score.VolumePattern,
	reflect.TypeFor[score.Device]():   score.DevicePattern,
}

func (s shaper) check(n *node, path string, t reflect.Type, f field) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[jsontext.Value]() {
		return
	}
	if t == reflect.TypeFor[score.Value]() { // text, or a reference to a secret
		if t = reflect.TypeFor[string](); n.kind == object {
			t = reflect.TypeFor[score.SecretRef]()
		}
	}
	want, kind := jsonType(t)
	if n.kind != kind {
		if t.Kind() == reflect.Struct && want == Object {
			s.d.NoMapping(path, slices.Sorted(slices.Values(s.of(t).known)))
			return
		}
		s.d.WrongType(path, want, textTypes[t])
		return
	}
	if kind == number {
		s.bounds(n, path, f)
	}
	switch {
	case want == String && len(f.words) > 0 && !slices.Contains(f.words, n.string()):
		s.d.NotOneOf(path, f.words)
	case t == reflect.TypeFor[score.Score]():
		s.score(n, path)
	case kind == list:
		for i, v := range n.items {
			s.check(v, path+"/"+strconv.Itoa(i), t.Elem(), field{})
		}
	case t.Kind() == reflect.Map:
		for i, k := range n.keys {
			s.check(n.items[i], path+"/"+escape(k.name), t.Elem(), field{})
		}
	case kind == object:
		fields := s.of(t)
		s.d.Fields(path, fields.known, fields.required)
		for i, k := range n.keys {
			if f, ok := fields.byName[k.name]; ok {
				s.check(n.items[i], path+"/"+escape(k.name), f.t, f)
			}
		}
	}
}

// bounds stands in for what the schema says of numbers; decoding says the rest.
func (s shaper) of(t reflect.Type) fields {
	f, ok := s.known[t]
	if !ok {
		f = fieldsOf(t)
		s.known[t] = f
	}
	return f
}

func (s shaper) bounds(n *node, path string, f field) {
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil {
		return
	}
	if f.least != nil && v < *f.least {
		s.d.TooSmall(path, *f.least)
	}
	if f.most != nil && v > *f.most {
		s.d.TooLarge(path, *f.most)
	}
}

// scoreFields are the fields of a score besides its spec.
var scoreFields = map[string]reflect.Type{
	"kind": reflect.TypeFor[score.Kind](), "id": reflect.TypeFor[score.ID](), "after": reflect.TypeFor[[]score.ID](),
	"decommission": reflect.TypeFor[bool](), "noSecrets": reflect.TypeFor[bool](), "policy": reflect.TypeFor[score.Policy](),
	"health": reflect.TypeFor[score.Health](), "engine": reflect.TypeFor[score.Engine](),
}

func (s shaper) score(n *node, path string) {
	s.d.Fields(path, []string{"kind", "id", "after", "decommission", "noSecrets", "policy", "health", "engine", "spec"}, []string{"kind", "id", "spec"})
	var spec reflect.Type
	for i, k := range n.keys {
		if t, ok := scoreFields[k.name]; ok {
			s.check(n.items[i], path+"/"+k.name, t, field{})
		}
		if k.name == "kind" {
			if info, ok := score.Lookup(score.Kind(n.items[i].string())); ok {
				spec = info.Type
			}
		}
	}
	if i := n.find("spec"); i >= 0 && spec != nil {
		s.check(n.items[i], path+"/spec", spec, field{})
	}
}

func jsonType(t reflect.Type) (name string, kind byte) {
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return String, text
	}
	switch t.Kind() {
	case reflect.String:
		return String, text
	case reflect.Bool:
		return Boolean, boolean
	case reflect.Slice:
		return Array, list
	case reflect.Struct, reflect.Map:
		return Object, object
	case reflect.Float64:
		return Number, number
	}
	return Integer, number
}

type fields struct {
	known, required []string
	byName          map[string]field
}

type field struct {
	t     reflect.Type
	words []string // the closed set of values

	least, most *float64 // bounds of a number
}

// fieldsOf reads the tags that the decoder and the schema generator read too.
func fieldsOf(t reflect.Type) fields {
	f := fields{byName: map[string]field{}}
	for sf := range t.Fields() {
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		f.known = append(f.known, name)
		if !strings.Contains(options, "omit") {
			f.required = append(f.required, name)
		}
		of := field{t: sf.Type}
		for tag := range strings.SplitSeq(sf.Tag.Get("jsonschema"), ",") {
			switch key, value, _ := strings.Cut(tag, "="); key {
			case "enum":
				of.words = append(of.words, value)
			case "minimum":
				of.least = bound(value)
			case "maximum":
				of.most = bound(value)
			}
		}
		f.byName[name] = of
	}
	return f
}

func bound(tag string) *float64 {
	v, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic("source: bad bound in a tag: " + tag)
	}
	return &v
}
