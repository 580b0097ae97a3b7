package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// definitionName tells apart the types that every package of a kind has.
func definitionName(t reflect.Type) string {
	if t.Name() != "Observed" {
		return t.Name()
	}
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	return strings.ToUpper(pkg[:1]) + pkg[1:] + "Observed"
}

// mapped has the types whose JSON is not that of their Go kind.
func (g generator) mapped(t reflect.Type) *jsonschema.Schema {
	text := func(pattern string, maxLength uint64, example string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "string", Pattern: pattern, Examples: []any{example},
			Description: g.comments[t.PkgPath()+"."+t.Name()]}
		if maxLength > 0 {
			s.MaxLength = &maxLength
		}
		return s
	}
	switch t {
	case reflect.TypeFor[score.Mode]():
		return text(score.ModePattern, 0, "0644")
	case reflect.TypeFor[score.Duration]():
		return text(score.DurationPattern, 0, "90s")
	case reflect.TypeFor[score.Bytes]():
		return text(score.BytesPattern, 0, "256Mi")
	case reflect.TypeFor[score.Percent]():
		return text(score.PercentPattern, 0, "50%")
	case reflect.TypeFor[score.VersionRange]():
		return text(score.VersionRangePattern, 128, ">= 4.4, < 6")
	case reflect.TypeFor[score.Port]():
		return text(score.PortPattern, 0, "8080:80")
	case reflect.TypeFor[score.PortSpan]():
		return text(score.PortSpanPattern, 0, "8000-8010")
	case reflect.TypeFor[score.Volume]():
		return text(score.VolumePattern, 0, "/srv/web:/data")
	case reflect.TypeFor[score.Device]():
		return text(score.DevicePattern, 0, "/dev/gpiochip0")
	case reflect.TypeFor[score.Value]():
		return g.value()
	case reflect.TypeFor[score.CIDR]():
		return text(score.CIDRPattern, 0, "192.0.2.10/24")
	case reflect.TypeFor[score.IP]():
		return text(score.IPPattern, 0, "192.0.2.1")
	case reflect.TypeFor[score.MAC]():
		return text(score.MACPattern, 0, "02:00:5e:10:00:01")
	case reflect.TypeFor[score.SSID]():
		return text("", 68, "Workshop 5")
	case reflect.TypeFor[score.ID]():
		return text(score.IDPattern, 128, "conf")
	case reflect.TypeFor[score.Score]():
		return &jsonschema.Schema{Ref: "#/$defs/Score"}
	case reflect.TypeFor[jsontext.Value]():
		return &jsonschema.Schema{}
	}
	if words, ok := g.closed[t]; ok {
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range words {
			s.Enum = append(s.Enum, w)
		}
		return s
	}
	switch t.Kind() {
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return &jsonschema.Schema{Type: "integer", Minimum: json.Number("0")}
	}
	return nil
}

// value is text, or names a secret. It is one schema and no choice of two: a mistake is told once.
func (g generator) value() *jsonschema.Schema {
	t := reflect.TypeFor[score.SecretRef]()
	r := g.reflector()
	s := r.ReflectFromType(t)
	s.Version, s.ID, s.Type = "", "", ""
	s.Extras = map[string]any{"type": []string{"string", "object"}}
	s.Description = g.comments[t.PkgPath()+".Value"]
	s.Examples = []any{"UTC", map[string]string{"secret": "db-password"}}
	return s
}

// amend adds to a type what its tags cannot say.
func amend(name string, s *jsonschema.Schema) {
	property := func(key string, change func(*jsonschema.Schema)) {
		p, ok := s.Properties.Get(key)
		if !ok {
			panic(fmt.Sprintf("gen: %s has no property %q", name, key))
		}
		change(p)
	}
	is := func(word string) func(*jsonschema.Schema) {
		return func(p *jsonschema.Schema) { p.Const = word }
	}
	named := func(example string) func(*jsonschema.Schema) {
		return func(p *jsonschema.Schema) { p.Pattern, p.Examples = score.NamePattern, []any{example} }
	}
	kinds := map[string]string{
		"Manifest": score.ManifestKind, "Assignment": score.AssignmentKind, "DeviceStatus": interpret.StatusKind, "DeviceInfo": interpret.InfoKind,
		"Plan": interpret.PlanKind, "Operation": interpret.OperationKind, "Receipt": interpret.ReceiptKind,
		"AuditEntry": interpret.AuditKind, "ApprovalRequests": interpret.RequestsKind,
	}
	if kind, ok := kinds[name]; ok {
		property("apiVersion", is(score.APIVersion))
		property("kind", is(kind))
	}
	switch name {
	case "Metadata":
		property("name", named("kiosk"))
	case "Target":
		property("device", named("pi-7"))
	case "Operation":
		property("device", named("pi-7"))
		property("verb", func(p *jsonschema.Schema) {
			p.Enum = slices.DeleteFunc(slices.Clone(p.Enum), func(w any) bool { return w == string(interpret.VerbPass) })
		})
	case "Template":
		property("vars", func(p *jsonschema.Schema) { p.Examples = []any{map[string]string{"url": "https://example.org"}} })
	case "InitContainer", "JobUnit", "JobContainer":
		property("env", func(p *jsonschema.Schema) { p.Examples = []any{map[string]string{"TZ": "UTC"}} })
	case "Engine":
		property("group", func(p *jsonschema.Schema) { p.Pattern = score.NamePattern })
	case "ManifestSpec":
		property("profile", func(p *jsonschema.Schema) {
			for _, name := range score.Profiles() {
				p.Enum = append(p.Enum, name)
			}
		})
	}
}

// closedTypes finds the words of the types whose constants are all there is.
func closedTypes(dir string) (map[reflect.Type][]string, error) {
	closed := map[reflect.Type][]string{}
	byName := map[string]reflect.Type{}
	for _, t := range []reflect.Type{
		reflect.TypeFor[interpret.Outcome](), reflect.TypeFor[interpret.State](), reflect.TypeFor[interpret.Phase](),
		reflect.TypeFor[interpret.Cause](), reflect.TypeFor[interpret.Effect](), reflect.TypeFor[interpret.ActionVerb](),
		reflect.TypeFor[interpret.Provenance](), reflect.TypeFor[interpret.Decision](), reflect.TypeFor[interpret.Verb](),
		reflect.TypeFor[interpret.Result](), reflect.TypeFor[interpret.AuditWhat](),
	} {
		byName[t.Name()] = t
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("cannot read the constants of %s: %w", dir, err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			of, _ := v.Type.(*ast.Ident)
			if of == nil || byName[of.Name] == nil || len(v.Values) != 1 {
				return true
			}
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				if word, err := strconv.Unquote(lit.Value); err == nil && word != "" {
					closed[byName[of.Name]] = append(closed[byName[of.Name]], word)
				}
			}
			return true
		})
	}
	for _, t := range byName {
		if len(closed[t]) == 0 {
			return nil, fmt.Errorf("cannot find the constants of %s in %s", t, dir)
		}
	}
	return closed, nil
}
