package schemas_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// full returns the manifest that says everything, as text and read.
func full(t *testing.T) (string, score.Manifest) {
	_, texts := corpus(t, "good")
	m, ds := schemas.Validate("full.yaml", texts["full.yaml"])
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	b, err := score.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), m
}

// TestFullManifest: one manifest has every field of the language, and its bytes, which are what is signed, do not change
// unnoticed.
func TestFullManifest(t *testing.T) {
	text, m := full(t)
	said, all := map[string]bool{}, map[string]bool{}
	says(reflect.ValueOf(m), said, all)
	for _, f := range slices.Sorted(maps.Keys(all)) {
		if !said[f] && f != "Target.Device" { // it goes instead of the selector
			t.Errorf("testdata/good/full.yaml does not say %s", f)
		}
	}
	if len(all) < 60 {
		t.Errorf("%d fields only: %v", len(all), all)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(text), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/full.golden", append(pretty.Bytes(), '\n'))
	var back score.Manifest
	if err := score.Decode([]byte(text), &back); err != nil || !reflect.DeepEqual(back, m) {
		t.Errorf("read back as %+v, %v", back, err)
	}
}

// says notes the fields of structs in v: all of them, and those that are not zero.
func says(v reflect.Value, said, all map[string]bool) {
	if v.Type() == reflect.TypeFor[jsontext.Value]() {
		return
	}
	if _, isText := v.Interface().(interface{ MarshalText() ([]byte, error) }); isText {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			says(v.Elem(), said, all)
		}
	case reflect.Slice:
		for i := range v.Len() {
			says(v.Index(i), said, all)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Name() + "." + v.Type().Field(i).Name
			all[name] = true
			said[name] = said[name] || !v.Field(i).IsZero()
			says(v.Field(i), said, all)
		}
	}
}

// TestEveryPartWrong makes each value of the policies, probes and engines of the full manifest wrong in every way: it is
// told, there, once or twice, for people, and a device has the same verdict (H50).
func TestEveryPartWrong(t *testing.T) {
	text, _ := full(t)
	var root any
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range paths(root, "") {
		if !strings.Contains(path, "/policy") && !strings.Contains(path, "/health") && !strings.Contains(path, "/engine") && !strings.HasSuffix(path, "/decommission") {
			continue
		}
		for what, value := range map[string]any{"null": nil, "nested": map[string]any{"a": map[string]any{"b": "c"}}, "list": []any{[]any{"a"}}, "number": -1.5, "text": "!", "misspelt": nil} {
			n++
			at, key := path, "" // of the value that is wrong
			doc, err := json.Marshal(changed(root, strings.Split(path, "/")[1:], func(parent map[string]any, name string) {
				if key = name; what == "misspelt" {
					parent[name+"x"] = parent[name]
					delete(parent, name)
					return
				}
				parent[name] = value
			}))
			if err != nil {
				t.Fatal(err)
			}
			if what == "misspelt" {
				at = strings.TrimSuffix(path, key)
			}
			_, ds := schemas.Validate("a.json", doc)
			if e := schemas.Errors(ds); e < 1 || e > 2 {
				t.Errorf("%s %s: %d problems: %v", path, what, e, ds)
				continue
			}
			if _, dds := source.Manifest("a.json", doc); schemas.Errors(dds) == 0 {
				t.Errorf("%s %s: a device takes it", path, what)
			}
			there := false // a second problem may be what follows from a word that was not read, elsewhere
			for _, d := range ds {
				there = there || strings.HasPrefix(d.Path+"/", at) || strings.HasPrefix(at, d.Path)
				if bad := goish.FindString(d.Text); bad != "" {
					t.Errorf("%s %s: %q is not for people: %s", path, what, bad, d)
				}
			}
			if !there {
				t.Errorf("%s %s: nothing is told there: %v", path, what, ds)
			}
		}
	}
	if n < 200 {
		t.Errorf("%d wrong manifests only", n)
	}
}

// paths lists the pointers to all members of objects in v.
func paths(v any, at string) (out []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, at+"/"+strings.ReplaceAll(k, "/", "~1"))
			out = append(out, paths(v[k], at+"/"+strings.ReplaceAll(k, "/", "~1"))...)
		}
	case []any:
		for i, e := range v {
			out = append(out, paths(e, at+"/"+strconv.Itoa(i))...)
		}
	}
	return out
}

// changed returns a copy of v with the object that the path leads into changed.
func changed(v any, path []string, change func(parent map[string]any, name string)) any {
	switch v := v.(type) {
	case map[string]any:
		out := maps.Clone(v)
		if len(path) == 1 {
			change(out, path[0])
		} else {
			out[path[0]] = changed(v[path[0]], path[1:], change)
		}
		return out
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			panic(fmt.Sprint(path, err))
		}
		out := slices.Clone(v)
		out[i] = changed(v[i], path[1:], change)
		return out
	}
	panic(fmt.Sprintf("there is nothing at %v", path))
}

// TestWarnedOf: what is said in vain is told with its place, and the manifest is taken all the same.
func TestWarnedOf(t *testing.T) {
	const text = `apiVersion: continuo/v1
kind: Manifest
metadata: {name: m}
spec:
  target: {device: d}
  policy: {preset: reviewed, deadline: 5m}
  scores:
    - kind: hostname
      id: x
      policy: {onIntent: apply, onFailure: rollBack}
      spec: {name: a}
`
	want := []string{
		`a.yaml:6:40: /spec/policy/deadline: warning: deadline has no effect without onFailure: rollBack`,
		`a.yaml:10:26: /spec/scores/0/policy/onIntent: warning: onIntent: apply has no effect: the policy of the manifest is stricter, confirm`,
		`a.yaml:10:44: /spec/scores/0/policy/onFailure: warning: onFailure: rollBack has no effect here: it is a manifest that is rolled back, as a whole`,
	}
	_, ds := schemas.Validate("a.yaml", []byte(text))
	_, dds := source.Manifest("a.yaml", []byte(text))
	for _, found := range [][]schemas.Diagnostic{ds, dds} {
		var got []string
		for _, d := range found {
			got = append(got, d.String())
		}
		if !slices.Equal(got, want) || schemas.Errors(found) > 0 {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
