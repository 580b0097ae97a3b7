package authority

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// What decides has nothing to act with: no device, no file, no network, no process; and what it is asked is all that it
// knows, so that the same question has the same answer (X76).
func TestNothingToActWith(t *testing.T) {
	allowed := map[string]bool{ // beside words and numbers: time is for windows, and given
		"cmp": true, "fmt": true, "maps": true, "math": true, "path": true, "slices": true, "strconv": true, "strings": true, "time": true,
		"github.com/continuo-fleet/continuo/interpret": true, "github.com/continuo-fleet/continuo/score": true,
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); !allowed[p] {
				t.Errorf("%s imports %s", name, p)
			}
		}
	}
	q, other := new(Question), new(Question)
	for n := 0; n < number; n += 9973 {
		ask(q, n)
		ask(other, n)
		if a, b := Decide(*q), Decide(*other); a != b || *q != *other {
			t.Fatalf("%+v: %+v, and then %+v", *q, a, b)
		}
	}
}
