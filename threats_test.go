package continuo_test

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rowsOf are the rows of the table below a heading of a document, by their cells.
func rowsOf(t *testing.T, file, heading string, columns int) (rows [][]string) {
	t.Helper()
	_, rest, ok := strings.Cut(readText(t, file), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("%s has no section %q", file, heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "| "), " | ")
		if len(cells) != columns {
			t.Errorf("%s: %.60q… has %d cells, want %d", file, line, len(cells), columns)
			continue
		}
		rows = append(rows, cells)
	}
	if len(rows) < 2 {
		t.Fatalf("%s: the section %q has no table", file, heading)
	}
	return rows[1:]
}

var inCode = regexp.MustCompile("`([^`]+)`")

// named are the words in code of a cell.
func named(cell string) (out []string) {
	for _, m := range inCode.FindAllStringSubmatch(cell, -1) {
		out = append(out, m[1])
	}
	return out
}

// functionsOf are the tests and fuzz targets of all packages, as folder:Name.
func functionsOf(t *testing.T, prefix string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:` + prefix + `)\w+)\(`)
	for _, file := range tree(t) {
		if strings.HasSuffix(file, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(readText(t, file), -1) {
				out[path.Dir(file)+":"+m[1]] = true
			}
		}
	}
	return out
}

// Each attacker of THREATS.md is there with what he can and cannot do, and what shows it exists.
func TestThreats(t *testing.T) {
	tests, makefile := functionsOf(t, "Test|Fuzz"), readText(t, "Makefile")
	n := 0
	for _, row := range rowsOf(t, "THREATS.md", "Attackers", 5) {
		shown := named(row[4])
		if len(shown) == 0 {
			t.Errorf("%s: nothing shows it", row[0])
		}
		for _, cell := range row {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("%s: a cell is empty", row[0])
			}
		}
		for _, name := range shown {
			target, make := strings.CutPrefix(name, "make:")
			if n++; make && !strings.Contains(makefile, "\n"+target+":") || !make && !tests[name] {
				t.Errorf("%s: there is no test %s", row[0], name)
			}
		}
	}
	if n < 60 {
		t.Errorf("the table names %d tests only", n)
	}
}

// decoding is what takes bytes apart.
var decoding = regexp.MustCompile(`\b(json|jsontext|yaml|msgpack|pem|jwt)\.(Unmarshal\w*|NewDecoder|Decode\w*|Load\w*|NewLoader)\(|\bscore\.Decode\(|\.DecodeString\(|` +
	`\bbinary\.(Read\(|\w+Endian\.Uint)|\border\.Uint|\bbufio\.New(Scanner|Reader)|\bdbus\.NewConn\(|\bdbus\.SystemBus|\bnkeys\.(Decode|FromSeed)\(|\bx509\.Parse`)

// trusts names folders whose decoders read what nobody else wrote: they run on the machine of who builds or tests.
var trusts = []string{"test/", "examples/", "schemas/gen/", "internal/release/", "internal/natstest/", "topology/conform/", "topology/memory/"}

// Every file that takes bytes apart is in the table of THREATS.md, with what bounds it, what is fuzzed and which test shows
// the bound; every folder with fuzz targets is there; and what the table names exists. Whoever adds a decoder gets here: give it a bound,
// a fuzz target, and a row, or add the file to the row of its kind.
func TestBounds(t *testing.T) {
	tests, targets := functionsOf(t, "Test"), functionsOf(t, "Fuzz")
	files, fuzzed := map[string]bool{}, map[string]bool{}
	for _, row := range rowsOf(t, "THREATS.md", "What is read, and its bounds", 7) {
		what := row[0]
		for _, pattern := range named(row[4]) {
			found, err := filepath.Glob(pattern)
			if err != nil || len(found) == 0 && !strings.Contains(pattern, "*") {
				t.Errorf("%s: there is no %s", what, pattern)
			}
			for _, file := range found {
				files[filepath.ToSlash(file)] = true
			}
		}
		if fuzz := named(row[5]); len(fuzz) == 0 && len(row[5]) < len("none: why") {
			t.Errorf("%s: no fuzz target, and nobody says why", what)
		}
		for _, name := range named(row[5]) {
			if fuzzed[name] = true; !targets[name] {
				t.Errorf("%s: there is no fuzz target %s", what, name)
			}
		}
		for _, name := range named(row[6]) {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", what, name)
			}
		}
		for i, column := range []string{"who says it", "how many bytes", "how deep or how many"} {
			if strings.TrimSpace(row[i+1]) == "" {
				t.Errorf("%s: the table does not tell %s", what, column)
			}
		}
	}
	folders := map[string]bool{}
	for name := range fuzzed {
		folder, _, _ := strings.Cut(name, ":")
		folders[folder] = true
	}
	for name := range targets {
		if folder, _, _ := strings.Cut(name, ":"); !folders[folder] {
			t.Errorf("no fuzz target of %s is in the table of bounds in THREATS.md: give %s its row", folder, name)
		}
	}
	n := 0
	for _, file := range tree(t) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") ||
			slices.ContainsFunc(trusts, func(dir string) bool { return strings.HasPrefix(file, dir) }) {
			continue
		}
		if what := decoding.FindString(readText(t, file)); what != "" {
			if n++; !files[file] {
				t.Errorf("%s takes bytes apart (%s), and has no row in the table of bounds in THREATS.md: name its bound, its fuzz target and its test there", file, what)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d files take bytes apart: is the expression right?", n)
	}
}
