package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const (
	module  = "github.com/continuo-fleet/continuo"
	address = "https://continuo.dev/schemas/v1/" // where editors find them
)

// Generate returns the schemas by name. The working directory must be the root of the
// module.
func Generate() (map[string][]byte, error) {
	comments := new(jsonschema.Reflector)
	for _, dir := range []string{"./score", "./topology", "./interpret", "./internal/wire"} {
		if err := comments.AddGoComments(module, dir, jsonschema.WithFullComment()); err != nil {
			return nil, fmt.Errorf("cannot read the comments of %s: %w", dir, err)
		}
	}
	closed, err := closedTypes("interpret")
	if err != nil {
		return nil, err
	}
	g := generator{comments.CommentMap, closed}
	roots := []struct {
		name string
		make func() (*jsonschema.Schema, error)
	}{
		{"manifest", g.manifest},
		{"assignment", g.assignment},
		{"status", g.status},
		{"info", func() (*jsonschema.Schema, error) { return g.reflect(interpret.DeviceInfo{}), nil }},
		{"plan", func() (*jsonschema.Schema, error) { return g.reflect(interpret.Plan{}), nil }},
		{"operation", func() (*jsonschema.Schema, error) { return g.reflect(interpret.Operation{}), nil }},
		{"requests", func() (*jsonschema.Schema, error) { return g.reflect(interpret.ApprovalRequests{}), nil }},
		{"receipt", func() (*jsonschema.Schema, error) { return g.reflect(interpret.Receipt{}), nil }},
		{"audit", func() (*jsonschema.Schema, error) { return g.reflect(interpret.AuditEntry{}), nil }},
		{"heartbeat", func() (*jsonschema.Schema, error) { return g.protocol(wire.Heartbeat{}) }},
		{"envelope", func() (*jsonschema.Schema, error) { return g.protocol(wire.ControlEnvelope{}) }},
		{"announcement", g.announcement},
	}
	files := map[string][]byte{}
	for _, r := range roots {
		s, err := r.make()
		if err != nil {
			return nil, fmt.Errorf("cannot generate %s: %w", r.name, err)
		}
		s.ID = jsonschema.ID(address + r.name + ".json")
		if err := finish(r.name, s); err != nil {
			return nil, fmt.Errorf("cannot generate %s: %w", r.name, err)
		}
		if files[r.name], err = encode(s); err != nil {
			return nil, err
		}
	}
	return files, nil
}

type generator struct {
	comments map[string]string
	closed   map[reflect.Type][]string // types with a closed set of words
}

func (g generator) reflector() *jsonschema.Reflector {
	return &jsonschema.Reflector{
		Anonymous: true, ExpandedStruct: true,
		CommentMap: g.comments, Mapper: g.mapped, Namer: definitionName,
	}
}

func (g generator) reflect(v any) *jsonschema.Schema {
	s := g.reflector().Reflect(v)
	s.Title = reflect.TypeOf(v).Name()
	amend(s.Title, s)
	for name, d := range s.Definitions {
		amend(name, d)
	}
	return s
}

// manifest is what authors write.
func (g generator) manifest() (*jsonschema.Schema, error) {
	s := g.reflect(score.Manifest{})
	if err := g.addScores(s); err != nil {
		return nil, err
	}
	d := score.NewDraft[score.RaspberryPi]("welcome", score.Target{Device: "pi-7"})
	score.AddFile(d, "motd", score.File{Path: "/etc/motd", Content: "Welcome.\n", Mode: 0o644})
	example, err := raw(d.Manifest())
	s.Examples = []any{example}
	return s, err
}

// assignment is what a device is given.
func (g generator) assignment() (*jsonschema.Schema, error) {
	s := g.reflect(score.Assignment{})
	return s, g.addScores(s)
}

// status is what a device reports: the state of a score is typed by its kind. A kind that
// is not built in has some state, because a newer device may report it.
func (g generator) status() (*jsonschema.Schema, error) {
	s := g.reflect(interpret.DeviceStatus{})
	st := s.Definitions["ScoreStatus"]
	if observed, ok := st.Properties.Get("observed"); ok {
		observed.Type = "object"
	}
	built := standard.Bind(memory.New())
	for _, k := range score.Kinds() {
		o, err := observedOf(built, k.Kind)
		if err != nil {
			return nil, err
		}
		r := g.reflector()
		r.ExpandedStruct = false
		for name, d := range r.ReflectFromType(o).Definitions {
			s.Definitions[name] = d
		}
		st.AllOf = append(st.AllOf, when(k.Kind, "observed", definitionName(o)))
	}
	return s, nil
}

func observedOf(built *interpret.Table, k score.Kind) (reflect.Type, error) {
	if o := built.Observed(k); o != nil {
		return o, nil
	}
	return nil, fmt.Errorf("kind %q has no interpreter: add it to interpret/standard", k)
}

// protocol is a struct that travels as msgpack. Bytes are base64 in its JSON form.
func (g generator) protocol(v any) (*jsonschema.Schema, error) {
	r := g.reflector()
	r.FieldNameTag = "msgpack"
	s := r.Reflect(v)
	s.Title = reflect.TypeOf(v).Name()
	return s, nil
}

// announcement is the headers beside a published document, as a mapping of the first
// value of each. NATS adds headers of its own.
func (g generator) announcement() (*jsonschema.Schema, error) {
	doc := func(field string) string { return g.comments[module+"/internal/wire.Announcement."+field] }
	properties := jsonschema.NewProperties()
	properties.Set(wire.HeaderGeneration, &jsonschema.Schema{Type: "string", Pattern: "^[0-9]+$", Description: doc("Generation")})
	properties.Set(wire.HeaderDigest, &jsonschema.Schema{Type: "string", Pattern: "^[0-9a-f]{64}$", Description: doc("Digest")})
	return &jsonschema.Schema{
		Version: jsonschema.Version, Type: "object", Title: "Announcement", Properties: properties,
		Description: g.comments[module+"/internal/wire.Announcement"],
		Required:    []string{wire.HeaderGeneration, wire.HeaderDigest},
	}, nil
}

// when is: if the kind is k, then the property is as defined.
func when(k score.Kind, property, definition string) *jsonschema.Schema {
	of := func(name string, s *jsonschema.Schema) *jsonschema.Schema {
		p := jsonschema.NewProperties()
		p.Set(name, s)
		return &jsonschema.Schema{Properties: p}
	}
	is := of("kind", &jsonschema.Schema{Const: string(k)})
	is.Required = []string{"kind"}
	return &jsonschema.Schema{If: is, Then: of(property, &jsonschema.Schema{Ref: "#/$defs/" + definition})}
}

// finish puts descriptions on one line, and fails for a property without one.
func finish(name string, s *jsonschema.Schema) error {
	all := []*jsonschema.Schema{s}
	names := []string{s.Title}
	for _, d := range slices.Sorted(maps.Keys(s.Definitions)) {
		all, names = append(all, s.Definitions[d]), append(names, d)
	}
	var missing []string
	for i, t := range all {
		oneLine(t)
		if t.Properties == nil {
			continue
		}
		for p := t.Properties.Oldest(); p != nil; p = p.Next() {
			if oneLine(p.Value); p.Value.Description == "" {
				missing = append(missing, names[i]+"."+p.Key)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("fields without a doc comment: %s", strings.Join(missing, ", "))
	}
	return nil
}

func oneLine(s *jsonschema.Schema) {
	if s.Description = strings.Join(strings.Fields(s.Description), " "); s.Items != nil {
		oneLine(s.Items)
	}
}

func raw(v any) (json.RawMessage, error) { return score.Encode(v) }

func encode(s *jsonschema.Schema) ([]byte, error) {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	for _, c := range []string{"<", ">", "&"} {
		b = bytes.ReplaceAll(b, fmt.Appendf(nil, `\u%04x`, c[0]), []byte(c))
	}
	return append(b, '\n'), nil
}
