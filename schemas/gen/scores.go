package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/invopop/jsonschema"

	"github.com/continuo-fleet/continuo/score"
)

// addScores defines Score: the kind chooses the spec by if and then, so that a mistake in
// a spec is told as a mistake in a spec of that kind, and once.
func (g generator) addScores(root *jsonschema.Schema) error {
	var kinds []any
	var dispatch []*jsonschema.Schema
	for _, k := range score.Kinds() {
		kinds = append(kinds, string(k.Kind))
		name, err := g.define(root, k.Type)
		if err != nil {
			return err
		}
		spec := root.Definitions[name]
		sample, err := raw(k.Sample)
		if err != nil {
			return fmt.Errorf("cannot show a %s: %w", k.Kind, err)
		}
		spec.Title, spec.Examples = string(k.Kind), []any{sample}
		spec.Extras = map[string]any{"x-stability": string(k.Stability)}
		if err := addEffects(k, spec); err != nil {
			return err
		}
		if err := addExamples(sample, spec); err != nil {
			return fmt.Errorf("cannot show a %s: %w", k.Kind, err)
		}
		dispatch = append(dispatch, when(k.Kind, "spec", name))
	}
	id := g.mapped(reflect.TypeFor[score.ID]())
	properties := jsonschema.NewProperties()
	set := func(name, doc string, s jsonschema.Schema) {
		s.Description = doc
		properties.Set(name, &s)
	}
	set("kind", "Kind of the thing that must be true.", jsonschema.Schema{Type: "string", Enum: kinds})
	set("id", "ID names the score inside its manifest, and stays the same from generation to generation.", *id)
	set("after", "After lists scores that must have converged first. The order in the document means nothing.", jsonschema.Schema{Type: "array", Items: id})
	set("decommission", "Decommission says that what the score describes is to be removed, with its data.", jsonschema.Schema{Type: "boolean"})
	set("noSecrets", "NoSecrets says that what looks like a secret in the spec is none: such as a password that everybody may know.", jsonschema.Schema{Type: "boolean"})
	for _, part := range []struct {
		name, doc string
		t         reflect.Type
	}{
		{"policy", "Policy restricts for this score what the policy of the manifest allows. It cannot allow more.", reflect.TypeFor[score.Policy]()},
		{"health", "Health says how to find out whether what the score describes works.", reflect.TypeFor[score.Health]()},
		{"engine", "Engine says how the agent plays the score, whatever its kind.", reflect.TypeFor[score.Engine]()},
	} {
		name, err := g.define(root, part.t)
		if err != nil {
			return err
		}
		set(part.name, part.doc, jsonschema.Schema{Ref: "#/$defs/" + name})
	}
	set("spec", "Spec is what must be true, in the words of the kind.", jsonschema.Schema{Type: "object"})
	root.Definitions["Score"] = &jsonschema.Schema{
		Type: "object", Description: g.comments[module+"/score.Score"], Properties: properties,
		Required: []string{"kind", "id", "spec"}, AdditionalProperties: jsonschema.FalseSchema, AllOf: dispatch,
	}
	return nil
}

// define adds the definitions of t, and of what is in it, to root.
func (g generator) define(root *jsonschema.Schema, t reflect.Type) (string, error) {
	r := g.reflector()
	r.ExpandedStruct = false
	for name, d := range r.ReflectFromType(t).Definitions {
		amend(name, d)
		root.Definitions[name] = d
	}
	name := definitionName(t)
	if root.Definitions[name] == nil {
		return "", fmt.Errorf("%s has no definition", t)
	}
	return name, nil
}

// effects are the words of package interpret; a test holds the two together.
var effects = []string{"none", "create", "mutate", "disrupt", "remove", "destroy"}

// addEffects writes beside each field what changing it does at worst. A field that does not say so fails.
func addEffects(k score.KindInfo, spec *jsonschema.Schema) error {
	for f := range k.Type.Fields() {
		if e := f.Tag.Get("effect"); !slices.Contains(effects, e) {
			return fmt.Errorf("%s.%s has the effect %q, and must say one of %v in a tag such as effect:\"mutate\"", k.Type.Name(), f.Name, e, effects)
		}
	}
	for p := spec.Properties.Oldest(); p != nil; p = p.Next() {
		if p.Value.Extras == nil {
			p.Value.Extras = map[string]any{}
		}
		p.Value.Extras["x-effect"] = k.Effects[p.Key]
	}
	return nil
}

// addExamples shows a field that has no example of its own as the sample of its kind has it.
func addExamples(sample json.RawMessage, spec *jsonschema.Schema) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(sample, &fields); err != nil {
		return err
	}
	for p := spec.Properties.Oldest(); p != nil; p = p.Next() {
		if v, ok := fields[p.Key]; ok && len(p.Value.Examples) == 0 && len(p.Value.Enum) == 0 && p.Value.Type != "boolean" {
			p.Value.Examples = []any{v}
		}
	}
	return nil
}
