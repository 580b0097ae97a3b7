package score_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/continuo-fleet/continuo/score"
)

// A body is a spec with one field, for registrations that have to fail.
type body[F any] struct {
	F F `json:"f"`
}

func (body[F]) Kind() score.Kind         { return score.Kind("body") }
func (body[F]) Check(*score.Report)      {}
func (body[F]) Claims() []score.Resource { return nil }

type hidden struct{ f string }

var _ = hidden{}.f

// What holds behaviour, anything, or a document of its own is no kind: each such type, at any depth (H20, H32).
func TestBehaviourIsNoData(t *testing.T) {
	for what, register := range map[string]func(){
		"func":                         func() { score.Register(score.Definition[body[func()]]{}) },
		"chan":                         func() { score.Register(score.Definition[body[chan int]]{}) },
		"any":                          func() { score.Register(score.Definition[body[any]]{}) },
		"interface":                    func() { score.Register(score.Definition[body[error]]{}) },
		"pointer to any":               func() { score.Register(score.Definition[body[*any]]{}) },
		"list of any":                  func() { score.Register(score.Definition[body[[]any]]{}) },
		"map of func":                  func() { score.Register(score.Definition[body[map[string]func()]]{}) },
		"float":                        func() { score.Register(score.Definition[body[float64]]{}) },
		"unexported field":             func() { score.Register(score.Definition[body[hidden]]{}) },
		"JSON":                         func() { score.Register(score.Definition[body[jsontext.Value]]{}) },
		"JSON of the standard library": func() { score.Register(score.Definition[body[json.RawMessage]]{}) },
		"bytes":                        func() { score.Register(score.Definition[body[[]byte]]{}) },
		"list of bytes":                func() { score.Register(score.Definition[body[[][4]byte]]{}) },
	} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, `kind "body" is not plain data: body.F`) {
					t.Errorf("%s: got %s", what, p)
				}
			}()
			register()
		}()
	}
}

// freeText is every field of a kind whose text no type and no list of words closes, and why it may be so. A field
// that is a command line, a script or a document in another language has no place here.
var freeText = map[string]string{
	"container.command":    "a list of arguments; no shell reads it",
	"container.entrypoint": "a list of arguments; no shell reads it",
	"container.user":       "a name or number, of a shape that Check holds",
	"container.workingDir": "a path in the container, of a shape that Check holds",
	"container.hostname":   "a name, of a shape that Check holds",
	"container.network":    "a name, of a shape that Check holds",
	"container.labels":     "names and values that are kept, and read by nobody of ours",
	"container.reloadOn":   "ids of scores of the same manifest",
	"container.image":      "a reference, of a shape that Check holds",
	"container.name":       "a name, of a shape that Check holds",
	"volume.name":          "a name, of a shape that Check holds",

	"containerNetwork.name": "a name, of a shape that Check holds",

	"container.restartOn": "ids of scores of the same manifest",
	"file.content":        "the bytes of the file: the thing itself, which the agent does not read",
	"file.group":          "a name of an account, of a shape that Check holds",
	"file.owner":          "a name of an account, of a shape that Check holds",
	"file.path":           "a path, of a shape that Check holds",
	"hostname.name":       "a name, of a shape that Check holds",
	"service.dropIns":     "the bytes of drop-ins, as service.unitFile, by names of a shape that Check holds",
	"service.reloadOn":    "ids of scores of the same manifest",
	"service.restartOn":   "ids of scores of the same manifest",
	"service.user":        "a name of an account, of a shape that Check holds",
	"service.unit":        "a name, of a shape that Check holds",
	"service.unitFile":    "the bytes of the unit file: the thing itself, native to the device; the service manager reads it, without a shell",
	"directory.entries":   "names of files, of a shape that Check holds",
	"directory.group":     "a name of an account, of a shape that Check holds",
	"directory.owner":     "a name of an account, of a shape that Check holds",
	"directory.path":      "a path, of a shape that Check holds",
	"file.contentFrom":    "a path in the fleet repository, of a shape that Check holds; no device gets it",
	"symlink.path":        "a path, of a shape that Check holds",
	"symlink.target":      "a path, of a shape that Check holds",
	"tool.name":           "a name, of a shape that Check holds",
	"tool.path":           "a path, of a shape that Check holds",
	"tool.version":        "a range of versions, of a grammar that Check holds",
	"job.name":            "a name, of a shape that Check holds",
}

// TestNoFieldIsACommandLine: who adds a field of free text to a kind has to say here what closes it (H20, H49).
func TestNoFieldIsACommandLine(t *testing.T) {
	left := map[string]bool{}
	for field := range freeText {
		left[field] = true
	}
	text := reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()
	var free func(reflect.Type) bool
	free = func(typ reflect.Type) bool {
		switch {
		case typ.Implements(text):
			return false // a type of its own, with its own grammar
		case typ.Kind() == reflect.String:
			return true
		case slices.Contains([]reflect.Kind{reflect.Slice, reflect.Pointer, reflect.Array, reflect.Map}, typ.Kind()):
			return free(typ.Elem())
		}
		return false
	}
	for _, k := range score.Kinds() {
		for f := range k.Type.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			field := string(k.Kind) + "." + name
			if f.Type == reflect.TypeFor[score.SecretRef]() {
				continue // a name, of a shape that Check holds
			}
			if f.Type.Kind() == reflect.Struct && !f.Type.Implements(text) {
				t.Errorf("%s is a struct: teach this test to look into it", field)
			}
			if strings.Contains(f.Tag.Get("jsonschema"), "enum=") || !free(f.Type) {
				continue
			}
			if !left[field] {
				t.Errorf("%s is free text, and freeText, in plaindata_test.go, does not say why", field)
			}
			delete(left, field)
		}
	}
	for field := range left {
		t.Errorf("freeText speaks of %s, which there is not", field)
	}
}

// A body is a list of typed scores, in the order of the document, none, one or many; one that is no list is refused (S26).
func TestBodyIsAList(t *testing.T) {
	const head = `{"apiVersion":"continuo/v1","kind":"Assignment","metadata":{"name":"pi"},"spec":{"complete":true,"scores":%d,"manifests":[` +
		`{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"m"},"spec":{"target":{"device":"pi"},"scores":%s}}]}}`
	one := func(i int) string {
		return fmt.Sprintf(`{"kind":"file","id":"f%d","spec":{"path":"/etc/f%d","content":"","mode":"0644"}}`, i, i)
	}
	for _, n := range []int{0, 1, 500} {
		var list []string
		for i := range n {
			list = append(list, one(n-i))
		}
		var a score.Assignment
		if err := score.Decode(fmt.Appendf(nil, head, n, "["+strings.Join(list, ",")+"]"), &a); err != nil {
			t.Fatal(err)
		}
		got := a.Spec.Manifests[0].Spec.Scores
		if len(got) != n {
			t.Fatalf("%d scores, want %d", len(got), n)
		}
		for i, s := range got {
			if f, ok := s.Spec.(score.File); !ok || f.Path != fmt.Sprintf("/etc/f%d", n-i) {
				t.Fatalf("score %d is %#v", i, s)
			}
		}
	}
	for _, scores := range []string{one(1), `"f"`, "7"} {
		var a score.Assignment
		if err := score.Decode(fmt.Appendf(nil, head, 1, scores), &a); err == nil {
			t.Errorf("%s is taken for a list", scores)
		}
	}
}
