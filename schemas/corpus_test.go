package schemas_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

var update = flag.Bool("update", false, "write the golden files")

// corpus returns the texts of testdata/dir by name.
func corpus(t *testing.T, dir string) (names []string, texts map[string][]byte) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no corpus in testdata/%s: %v", dir, err)
	}
	texts = map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		names, texts[filepath.Base(p)] = append(names, filepath.Base(p)), b
	}
	return names, texts
}

// goish finds what no author should have to read: types of Go, patterns, the engine's words.
var goish = regexp.MustCompile(`map\[|\[\][a-z]|interface ?\{|json\.|jsontext|float64|uint|\^|allOf|additionalProp|<nil>|score\.|!\(|doesn't`)

var manyMistakes = regexp.MustCompile(`-([0-9])\.(yaml|json)$`)

// TestBadManifests: every wrong manifest is refused with places, paths and words, and one
// mistake gives one or two problems. The corpus is a file per mistake; the golden file has
// what an author sees (H50, X93, X95; cases 1, 4, 6, 7, 9, 10, 12, 16, 18, 21, 22, 157).
func TestBadManifests(t *testing.T) {
	names, texts := corpus(t, "bad")
	if len(names) < 60 {
		t.Errorf("%d wrong manifests, want 60 at least", len(names))
	}
	var got bytes.Buffer
	for _, name := range names {
		_, ds := schemas.Validate(name, texts[name])
		want := 1
		if m := manyMistakes.FindStringSubmatch(name); m != nil {
			want, _ = strconv.Atoi(m[1])
		}
		if n := schemas.Errors(ds); n < want || n > want+1 {
			t.Errorf("%s: %d errors for %d mistakes: %v", name, n, want, ds)
		}
		lines := bytes.Count(texts[name], []byte("\n")) + 1
		for i, d := range ds {
			if d.Line < 1 || d.Line > lines || d.Column < 1 || d.Text == "" {
				t.Errorf("%s: no place or no words: %+v", name, d)
			}
			if i > 0 && d.Line < ds[i-1].Line {
				t.Errorf("%s: line %d comes after line %d", name, d.Line, ds[i-1].Line)
			}
			if bad := goish.FindString(d.Text); bad != "" {
				t.Errorf("%s: %q is not for people: %s", name, bad, d)
			}
			// A value that was written where the name of a secret belongs is not told any further, as in the log of a build
			if said := fmt.Sprint(d); strings.Contains(said, "VALUE") || strings.Contains(said, "12345678") {
				t.Errorf("%s: the message shows the secret: %s", name, said)
			}
			fmt.Fprintln(&got, d)
		}
	}
	golden(t, "testdata/bad.golden", got.Bytes())
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Errorf("%s differs from line %d on (-update writes it):\ngot  %s\nwant %s", file, i+1,
				strings.Join(g[min(i, len(g)):min(i+3, len(g))], "\n     "), strings.Join(w[min(i, len(w)):min(i+3, len(w))], "\n     "))
			return
		}
	}
}

// TestDeviceAgrees: what a device reads without the schema has the same verdict as what
// authors and CI see, for every text that is here (cases 4, 9).
func TestDeviceAgrees(t *testing.T) {
	for _, dir := range []string{"bad", "good"} {
		names, texts := corpus(t, dir)
		for _, name := range names {
			m, ds := schemas.Validate(name, texts[name])
			dm, dds := source.Manifest(name, texts[name])
			if (schemas.Errors(ds) == 0) != (schemas.Errors(dds) == 0) {
				t.Errorf("%s: authors see %v\na device sees %v", name, ds, dds)
			}
			if schemas.Errors(ds) == 0 && !reflect.DeepEqual(m, dm) {
				t.Errorf("%s: a device reads another manifest", name)
			}
			if len(ds) > 0 && len(dds) > 0 && ds[0].Line != dds[0].Line {
				t.Errorf("%s: a device sees it on another line: %s\nand authors: %s", name, dds[0], ds[0])
			}
		}
	}
}

func TestGoodManifests(t *testing.T) { // case 14, 15
	names, texts := corpus(t, "good")
	read := map[string]score.Manifest{}
	for _, name := range names {
		m, ds := schemas.Validate(name, texts[name])
		if len(ds) > 0 {
			t.Errorf("%s: %v", name, ds)
		}
		read[name] = m
	}
	for _, other := range []string{"c14-crlf.yaml", "c14-bom.yaml"} {
		if !reflect.DeepEqual(read["c14-lf.yaml"], read[other]) {
			t.Errorf("%s is another manifest than c14-lf.yaml:\n%+v\n%+v", other, read[other], read["c14-lf.yaml"])
		}
	}
	content := func(name string, i int) string { return read[name].Spec.Scores[i].Spec.(score.File).Content }
	for i, want := range []string{"one\ntwo\n", "a\r\nb"} {
		if got := content("c14-crlf.yaml", i); got != want {
			t.Errorf("CRLF: content is %q, want %q", got, want)
		}
	}
	for i, want := range []string{"text\n", "text", "text\n\n\n", ""} {
		if got := content("c15-newlines.yaml", i); got != want {
			t.Errorf("newlines: content is %q, want %q", got, want)
		}
	}
	if got := string(read["extensions.yaml"].Extensions["example.org/board"]); got != `{"rack":7,"note":null,"spare":true,"ratio":1.5,"list":["a",1]}` {
		t.Errorf("extension is %s", got)
	}
}

// TestExamples: every manifest among the examples is valid, as authors and as devices see it.
func TestExamples(t *testing.T) {
	n := 0
	for _, pattern := range []string{"../examples/*.yaml", "../examples/*/*.yaml", "../examples/*/*/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(b, []byte("\nkind: Manifest\n")) {
				continue
			}
			if strings.HasPrefix(p, "../examples/shelljob/") { // of builds with the tag; a release refuses it by name (H78, H80)
				if _, ds := schemas.Validate(p, b); len(ds) != 1 || !strings.Contains(ds[0].String(), `unknown kind "shellJob"`) {
					t.Errorf("%v", ds)
				}
				continue
			}
			n++
			if _, ds := schemas.Validate(p, b); len(ds) > 0 {
				t.Errorf("%v", ds)
			}
		}
	}
	if n < len(score.Kinds()) {
		t.Errorf("%d examples, want one for each of %d kinds", n, len(score.Kinds()))
	}
}

func TestMoreThanAHundred(t *testing.T) {
	_, texts := corpus(t, "good")
	text := string(texts["all-kinds.yaml"])
	for i := range 150 {
		text += fmt.Sprintf("    - {kind: hostname, id: h%d, spec: {nmae: a}}\n", i)
	}
	_, ds := schemas.Validate("x.yaml", []byte(text))
	if last := ds[len(ds)-1]; len(ds) != 101 || !strings.Contains(last.Text, "and 50 more") {
		t.Errorf("%d problems, the last is %s", len(ds), last)
	}
	lines := make([]int, 0, len(ds))
	for _, d := range ds {
		lines = append(lines, d.Line)
	}
	if !slices.IsSorted(lines) {
		t.Errorf("not in the order of the text: %v", lines)
	}
}

// TestGoLiterals: a wrong manifest that can be written in Go at all, because its types are
// right, is refused by its own Validate (H50, second half). The others do not compile.
func TestGoLiterals(t *testing.T) {
	names, texts := corpus(t, "bad")
	// In Go, zero is what is left out.
	leftOut := []string{"probe-threshold-zero.yaml"}
	n := 0
	for _, name := range names {
		if slices.Contains(leftOut, name) {
			continue
		}
		d := source.Read(name, texts[name])
		var m score.Manifest
		if source.Errors(d.Diagnostics()) > 0 || score.Decode(d.JSON(), &m) != nil || slices.ContainsFunc(m.Spec.Scores, opaque) {
			continue
		}
		n++
		if score.Errors(m.Validate()) == 0 {
			t.Errorf("%s: the same in Go is taken", name)
		}
	}
	if n < 30 {
		t.Errorf("%d literals only", n)
	}
}

func opaque(s score.Score) bool {
	_, is := s.Spec.(score.Opaque)
	return is
}

// FuzzValidate: authors and devices have one verdict on every text.
func FuzzValidate(f *testing.F) {
	for _, dir := range []string{"bad", "good"} {
		paths, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
		if err != nil || len(paths) == 0 {
			f.Fatalf("no seeds: %v", err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, ds := schemas.Validate("-", data)
		dm, dds := source.Manifest("-", data)
		if (schemas.Errors(ds) == 0) != (schemas.Errors(dds) == 0) {
			t.Errorf("authors see %v\na device sees %v", ds, dds)
		}
		if schemas.Errors(ds) == 0 && !reflect.DeepEqual(m, dm) {
			t.Errorf("authors have %+v\na device has %+v", m, dm)
		}
	})
}
