package main

import (
	"bytes"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// TestDrift: the schemas that are committed are those of the types.
func TestDrift(t *testing.T) {
	t.Chdir("../..")
	files, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("schemas")
	if err != nil {
		t.Fatal(err)
	}
	var committed []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			committed = append(committed, name)
		}
	}
	if want := slices.Sorted(maps.Keys(files)); !slices.Equal(committed, want) {
		t.Errorf("schemas/ has %v, the generator makes %v", committed, want)
	}
	again, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile("schemas/" + name + ".json")
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("schemas/%s.json did not follow the types: run make schemas (%v)", name, err)
		}
		if !bytes.Equal(again[name], want) {
			t.Errorf("%s is generated differently each time", name)
		}
	}
}

func TestUndocumentedFieldFails(t *testing.T) {
	type Thing struct {
		// Told is told.
		Told   string `json:"told"`
		Untold string `json:"untold"`
	}
	g := generator{comments: map[string]string{module + "/schemas/gen.Thing.Told": "Told is told."}}
	r := g.reflector()
	r.ExpandedStruct = false
	s := r.ReflectFromType(reflect.TypeFor[Thing]())
	err := finish("thing", s)
	if err == nil || !strings.Contains(err.Error(), "Thing.untold") || strings.Contains(err.Error(), "Thing.told") {
		t.Errorf("got %v", err)
	}
}

func TestKindWithoutInterpreterFails(t *testing.T) {
	if _, err := observedOf(interpret.Bind(memory.New()), score.KindFile); err == nil || !strings.Contains(err.Error(), `kind "file" has no interpreter`) {
		t.Errorf("got %v", err)
	}
}

// TestClosedTypes: the words of a status are all of the constants, in their order.
func TestClosedTypes(t *testing.T) {
	closed, err := closedTypes("../../interpret")
	if err != nil {
		t.Fatal(err)
	}
	for typ, words := range closed {
		if typ.Name() == "Effect" && !slices.Equal(words, effects) {
			t.Errorf("%s is %v", typ, words)
		}
		if typ.Name() == "Verb" && !slices.Contains(words, "pass") {
			t.Errorf("%s is %v", typ, words)
		}
		if len(words) < 2 {
			t.Errorf("%s has %v only", typ, words)
		}
	}
	if _, err := closedTypes("../../score"); err == nil {
		t.Error("a folder without the constants gives no error")
	}
}

// TestEffectIsDeclared: a field of a kind that does not say what changing it does is not published (X106).
func TestEffectIsDeclared(t *testing.T) {
	for _, k := range score.Kinds() {
		if err := addEffects(k, &jsonschema.Schema{Properties: jsonschema.NewProperties()}); err != nil {
			t.Error(err)
		}
	}
	type Silent struct {
		Name string `json:"name" effect:"mutate"`
		Size string `json:"size"`
	}
	type Wrong struct {
		Name string `json:"name" effect:"reformat"`
	}
	for _, tt := range []struct {
		typ  reflect.Type
		want string
	}{{reflect.TypeFor[Silent](), `Silent.Size has the effect ""`}, {reflect.TypeFor[Wrong](), `Wrong.Name has the effect "reformat"`}} {
		if err := addEffects(score.KindInfo{Type: tt.typ}, &jsonschema.Schema{Properties: jsonschema.NewProperties()}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}

func TestMappedTypes(t *testing.T) { // case 20
	g := generator{}
	for _, typ := range []reflect.Type{reflect.TypeFor[score.Mode](), reflect.TypeFor[score.Duration](), reflect.TypeFor[score.Bytes](), reflect.TypeFor[score.Percent](), reflect.TypeFor[score.Port](), reflect.TypeFor[score.PortSpan](), reflect.TypeFor[score.Volume](), reflect.TypeFor[score.ID]()} {
		if s := g.mapped(typ); s == nil || s.Type != "string" || s.Pattern == "" {
			t.Errorf("%s is mapped to %+v", typ, s)
		}
	}
	for _, k := range score.Kinds() {
		s := (&jsonschema.Reflector{Anonymous: true, Mapper: g.mapped}).ReflectFromType(k.Type)
		b, err := s.MarshalJSON()
		if err != nil || bytes.Contains(b, []byte(`"number"`)) {
			t.Errorf("%s has a field that is a number of JSON: %s, %v", k.Kind, b, err)
		}
	}
}
