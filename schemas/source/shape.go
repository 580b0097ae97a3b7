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
	s.check(d.root, "", reflect.TypeOf(v).Elem(), nil)
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
}

func (s shaper) check(n *node, path string, t reflect.Type, words []string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[jsontext.Value]() {
		return
	}
	want, kind := jsonType(t)
	if n.kind != kind {
		s.d.WrongType(path, want, textTypes[t])
		return
	}
	switch {
	case want == String && len(words) > 0 && !slices.Contains(words, n.string()):
		s.d.NotOneOf(path, words)
	case t == reflect.TypeFor[score.Score]():
		s.score(n, path)
	case kind == list:
		for i, v := range n.items {
			s.check(v, path+"/"+strconv.Itoa(i), t.Elem(), nil)
		}
	case t.Kind() == reflect.Map:
		for i, k := range n.keys {
			s.check(n.items[i], path+"/"+escape(k.name), t.Elem(), nil)
		}
	case kind == object:
		fields, ok := s.known[t]
		if !ok {
			fields = fieldsOf(t)
			s.known[t] = fields
		}
		s.d.Fields(path, fields.known, fields.required)
		for i, k := range n.keys {
			if f, ok := fields.byName[k.name]; ok {
				s.check(n.items[i], path+"/"+escape(k.name), f.t, f.words)
			}
		}
	}
}

func (s shaper) score(n *node, path string) {
	s.d.Fields(path, []string{"kind", "id", "after", "spec"}, []string{"kind", "id", "spec"})
	var spec reflect.Type
	for i, k := range n.keys {
		at, v := path+"/"+k.name, n.items[i]
		switch k.name {
		case "kind":
			s.check(v, at, reflect.TypeFor[score.Kind](), nil)
			if info, ok := score.Lookup(score.Kind(v.string())); ok {
				spec = info.Type
			}
		case "id":
			s.check(v, at, reflect.TypeFor[score.ID](), nil)
		case "after":
			s.check(v, at, reflect.TypeFor[[]score.ID](), nil)
		}
	}
	if i := n.find("spec"); i >= 0 && spec != nil {
		s.check(n.items[i], path+"/spec", spec, nil)
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
		var words []string
		for tag := range strings.SplitSeq(sf.Tag.Get("jsonschema"), ",") {
			if w, ok := strings.CutPrefix(tag, "enum="); ok {
				words = append(words, w)
			}
		}
		f.byName[name] = field{sf.Type, words}
	}
	return f
}
