package interpret_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
)

// exported lists the exported functions and methods that the files of a folder declare.
func exported(t *testing.T, dir string) (out []string) {
	t.Helper()
	sources(t, dir, false, func(_ string, f *ast.File) {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				typ := fn.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				switch generic := typ.(type) {
				case *ast.IndexListExpr:
					typ = generic.X
				case *ast.IndexExpr:
					typ = generic.X
				}
				name = typ.(*ast.Ident).Name + "." + name
			}
			out = append(out, name)
		}
	})
	slices.Sort(out)
	return out
}

// sources parses the files of dir, or of all folders below it too, that are no tests.
func sources(t *testing.T, dir string, below bool, visit func(path string, f *ast.File)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && (!below || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			n++
			visit(filepath.ToSlash(path), f)
		}
		return err
	})
	if err != nil || n == 0 {
		t.Fatalf("read %d files of %s: %v", n, dir, err)
	}
}

// There is one door to Apply and one to Remove, and a gate stands in both. What could be
// another is found here: whatever this package exports, what a kind exports, and who
// calls the doors. (That a Binding keeps its own to itself, the compiler holds: see
// testdata/compilefail/apply_without_gate.)
func TestOneDoor(t *testing.T) {
	want := []string{
		"AuditEntry.Bounded", "Bind", "Brief", "Conditions.Good", "DeviceStatus.ConvergedAt", "DeviceStatus.FoldDevice", "Digest.Fingerprint", "Digest.SHA256", "Digest.String", "Fold", "Looking", "ManifestStatus.Composite",
		"Of", "Operation.Answers", "Operation.Destroys", "Operation.StandsAlone", "Orphan.Pending", "Outcome.Converged", "Plan.Differs", "Plan.Seal", "PlannedAction.Gated", "Public", "Read", "RequestID", "ScoreStatus.Converged", "Seal", "Sealed",
		"Table.Fetches", "Table.Follows", "Table.Kinds", "Table.Looks", "Table.Observe", "Table.Observed", "Table.Play", "Table.Prefetch", "Table.Remove", "Table.Secrets", "Table.Stocked",
		"Task.Has", "Teller.Tell", "TellerOf", "Unstated", "Verbs", "Worst",
		"onlooker.Apply", "onlooker.RemovalEffect", "onlooker.Remove", // of nothing
		"readOnly.Admit", "readOnly.Done", "readOnly.Holds",
	}
	if got := exported(t, "."); !slices.Equal(got, want) {
		t.Errorf("package interpret exports\n%s\nwant\n%s\nWhat is new must not reach Apply or Remove but through a gate.", strings.Join(got, " "), strings.Join(want, " "))
	}
	if b := reflect.TypeFor[interpret.Binding](); b.NumMethod() > 0 || slices.ContainsFunc(reflect.VisibleFields(b), reflect.StructField.IsExported) {
		t.Errorf("a %s gives away something", b)
	}
	gate := reflect.TypeFor[interpret.Gate]()
	for _, door := range []string{"Play", "Remove"} {
		m, ok := reflect.TypeFor[*interpret.Table]().MethodByName(door)
		if !ok || m.Type.In(m.Type.NumIn()-1) != gate {
			t.Errorf("%s takes no gate", door)
		}
	}

	kinds, err := filepath.Glob("*/*.go")
	if err != nil || len(kinds) == 0 {
		t.Fatalf("no kinds: %v", err)
	}
	seen := map[string]bool{}
	for _, path := range kinds {
		dir := filepath.Dir(path)
		if seen[dir] || dir == "standard" {
			continue
		}
		seen[dir] = true
		for _, name := range exported(t, dir) {
			if !slices.Contains([]string{"Kind", "Ethernet", "Wifi", "Observed.Exists", "Observed.OwnedBy", "Observed.Conditions", "Digest"}, name) &&
				!strings.HasPrefix(name, "interpreter.") {
				t.Errorf("the kind %s exports %s", dir, name)
			}
		}
	}

	doors, gates := map[string][]string{}, []string{}
	sources(t, "..", true, func(path string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv != nil && n.Name.Name == "Admit" && !strings.HasPrefix(path, "../internal/") {
					gates = append(gates, path)
				}
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || sel.Sel.Name != "Play" && sel.Sel.Name != "Remove" {
					break
				}
				if x, ok := sel.X.(*ast.SelectorExpr); ok && x.Sel.Name == "Table" || sel.Sel.Name == "Play" {
					doors[sel.Sel.Name] = append(doors[sel.Sel.Name], path)
				}
			}
			return true
		})
	})
	if got := doors["Play"]; !slices.Equal(got, []string{"../agent/play.go", "../agent/putback.go", "../interpret/play.go"}) { // Observe is Play with a gate that is shut
		t.Errorf("Play is called in %v", got)
	}
	if got := doors["Remove"]; !slices.Equal(got, []string{"../agent/collect.go", "../agent/decommission.go"}) {
		t.Errorf("Remove is called in %v", got)
	}
	if want := []string{"../agent/decommission.go", "../agent/gate.go", "../agent/putback.go", "../agent/removal.go", "../interpret/gate.go"}; !slices.Equal(gates, want) {
		t.Errorf("there are gates in %v, want %v", gates, want)
	}
}
