package continuo_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// Adding a kind touches at most six files beside the folder of its interpreter and the lists of the tests: its type, the list of
// kinds, its example, the README, the changelog, and no other; who has no capability of its own to bring is named nowhere else.
func TestAKindTouchesFewFiles(t *testing.T) {
	const most = 6
	folders := map[score.Kind]string{"ethernet": "connection", "wifi": "connection"} // one interpreter for both
	plain := []score.Kind{"hostname", "hosts", "timeSync", "tool"}
	pkgs, types, seen := packages(t), filesIn(t, "score"), 0
	for _, k := range score.Kinds() {
		folder := folders[k.Kind]
		if folder == "" {
			folder = strings.ToLower(string(k.Kind))
		}
		own := "interpret/" + folder
		touched := []string{"README.md", "CHANGELOG.md", filepath.Join("examples", string(k.Kind)+".yaml")}
		if _, err := os.Stat(touched[2]); err != nil {
			t.Errorf("%s: %v", k.Kind, err)
		}
		for name, text := range types {
			if strings.Contains(text, "Register(Definition["+k.Type.Name()+"]{") {
				touched = append(touched, name)
			}
		}
		named := regexp.MustCompile(`\bscore\.(Kind)?` + k.Type.Name() + `\b`)
		for _, p := range pkgs {
			if p.name() != own && slices.Contains(p.Imports, module+"/"+own) {
				touched = append(touched, p.name())
			}
			if !slices.Contains(plain, k.Kind) || p.name() == own || strings.HasPrefix(p.name(), "examples/") {
				continue
			}
			for _, name := range p.GoFiles {
				if m := named.FindString(readText(t, filepath.Join(p.name(), name))); m != "" {
					t.Errorf("%s/%s names %s: what is about one kind belongs to its own folder", p.name(), name, m)
				}
			}
		}
		seen++
		if slices.Sort(touched); len(touched) > most || !slices.Contains(touched, "interpret/standard") {
			t.Errorf("%s touches %v beside its folder", k.Kind, touched)
		}
	}
	if seen < 14 {
		t.Errorf("%d kinds were looked at", seen)
	}
}

// filesIn reads the product's files of a folder, by their names.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	all, err := filepath.Glob(dir + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if !strings.HasSuffix(name, "_test.go") {
			out[name] = readText(t, name)
		}
	}
	return out
}
