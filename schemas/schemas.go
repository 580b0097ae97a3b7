// Package schemas checks documents against the JSON Schemas that are generated from the Go
// types, and holds those schemas.
//
// Validate gives every problem of a manifest with its place; Explain tells what the fields
// mean. What a document says beyond its shape is checked by package score, and how its
// text is read is package source's, which has no schema engine and is what a device uses.
package schemas

//go:generate go run ./gen

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

//go:embed *.json
var files embed.FS

// Address is where the schemas are published, with names such as manifest.json behind it.
const Address = "https://continuo.dev/schemas/v1/"

// A Diagnostic is one thing that is wrong with a document, and where.
type Diagnostic = source.Diagnostic

// Errors counts the diagnostics that are errors.
func Errors(ds []Diagnostic) int { return source.Errors(ds) }

// Validate reads a manifest, YAML or JSON, and reports everything that is wrong with it,
// in the order of the text. The manifest is usable if no diagnostic is an error. file is
// for the messages; see source.Read.
func Validate(file string, data []byte) (score.Manifest, []Diagnostic) {
	return ValidateWith(file, data, func(*score.Manifest) []score.Problem { return nil })
}

// ValidateWith is Validate, and then more, on a manifest that has no error: it may change it, and
// what it reports is reported with its place, too.
func ValidateWith(file string, data []byte, more func(*score.Manifest) []score.Problem) (score.Manifest, []Diagnostic) {
	var m score.Manifest
	d := source.Read(file, data)
	if d.Readable() {
		d.NextStage()
		late := checkShape(d, "manifest")
		d.Manifest(&m)
		late()
		if Errors(d.Diagnostics()) == 0 {
			for _, p := range more(&m) {
				d.Report(p.Path, p.Severity, "%s", p.Text)
			}
		}
	}
	return m, d.Diagnostics()
}

// Check reports what is wrong with a JSON document of a schema such as "status".
func Check(name string, data []byte) error {
	d := source.Read(name+".json", data)
	if d.Readable() {
		d.NextStage()
		checkShape(d, name)()
	}
	ds := d.Diagnostics()
	if len(ds) == 0 {
		return nil
	}
	lines := make([]string, len(ds))
	for i, g := range ds {
		lines[i] = g.String()
	}
	return fmt.Errorf("document does not fit the schema %q:\n%s", name, strings.Join(lines, "\n"))
}

// Names lists the schemas.
func Names() []string {
	paths, err := fs.Glob(files, "*.json")
	if err != nil {
		panic("schemas: " + err.Error())
	}
	for i, p := range paths {
		paths[i] = strings.TrimSuffix(p, ".json")
	}
	return paths
}

// Text returns a schema as it is published. It panics for a name that is not in Names.
func Text(name string) []byte {
	b, err := files.ReadFile(name + ".json")
	if err != nil {
		panic(fmt.Sprintf("schemas: no schema %q", name))
	}
	return b
}

// A schema is one JSON Schema in both forms: for the engine, and to look things up.
type schema struct {
	compiled *jsonschema.Schema
	root     map[string]any
}

// load compiles all schemas when the first is asked for.
var load = sync.OnceValue(func() map[string]schema {
	out := map[string]schema{}
	for _, name := range Names() {
		c := jsonschema.NewCompiler()
		c.Draft = jsonschema.Draft2020
		c.AssertFormat = true
		url := Address + name + ".json"
		if err := c.AddResource(url, bytes.NewReader(Text(name))); err != nil {
			panic(fmt.Sprintf("schemas: cannot read %s: %v", name, err))
		}
		compiled, err := c.Compile(url)
		if err != nil {
			panic(fmt.Sprintf("schemas: cannot compile %s: %v", name, err))
		}
		s := schema{compiled: compiled}
		if err := json.Unmarshal(Text(name), &s.root); err != nil {
			panic(fmt.Sprintf("schemas: cannot read %s: %v", name, err))
		}
		out[name] = s
	}
	return out
})
