package continuo_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// licences is what may be linked, and how its text is told.
var licences = map[string]*regexp.Regexp{
	"Apache-2.0":   regexp.MustCompile(`Apache License\s+Version 2\.0`),
	"BSD-3-Clause": regexp.MustCompile(`(?s)Redistribution and use in source and binary forms.*Neither the name`),
	"BSD-2-Clause": regexp.MustCompile(`Redistribution and use in source and binary forms`),
	"MIT":          regexp.MustCompile(`Permission is hereby granted, free of charge`),
}

// licenceOf tells the licence of a module by its files.
func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !regexp.MustCompile(`(?i)^(licen[sc]e|copying)`).MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"Apache-2.0", "BSD-3-Clause", "BSD-2-Clause", "MIT"} { // the narrower comes first
			if licences[name].Match(text) {
				return name
			}
		}
	}
	return ""
}

// Each module that we name ourselves is in SECURITY.md with why it is there and its licence, and nothing else is. What
// those bring along has a licence of the same kinds.
func TestDependencies(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Tool []struct{ Path string }
	}
	text, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		t.Fatal(err)
	}
	wanted, known := map[string]bool{}, map[string]bool{}
	for _, r := range mod.Require {
		known[r.Path] = true
		wanted[r.Path] = !r.Indirect || slices.ContainsFunc(mod.Tool, func(tool struct{ Path string }) bool { return strings.HasPrefix(tool.Path, r.Path+"/") })
	}

	dirs := map[string]string{}
	for _, args := range [][]string{
		{"-deps", "-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}", "./..."},
		{"-f", "{{with .Module}}{{.Path}}\t{{.Dir}}{{end}}", "tool"},
	} {
		out, err := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if path, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && path != module {
				dirs[path] = dir
			}
		}
	}
	if len(dirs) < 20 {
		t.Fatalf("there are only %d modules", len(dirs))
	}
	for path, dir := range dirs {
		if licenceOf(t, dir) == "" {
			t.Errorf("%s has none of the licences %v: it cannot be linked", path, licences)
		}
	}

	told := map[string]bool{}
	for line := range strings.Lines(readText(t, "SECURITY.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "-") || cells[1] == " module " {
			continue
		}
		path, why, licence := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])
		switch {
		case told[path]:
			t.Errorf("%s is there twice", path)
		case !known[path]:
			t.Errorf("SECURITY.md has %s, which go.mod has not", path)
		case why == "":
			t.Errorf("SECURITY.md does not say why %s is there", path)
		case dirs[path] != "" && licenceOf(t, dirs[path]) != licence:
			t.Errorf("SECURITY.md says %s has the licence %s, and its files say %q", path, licence, licenceOf(t, dirs[path]))
		}
		told[path] = true
	}
	for path, direct := range wanted {
		if direct && !told[path] {
			t.Errorf("go.mod has %s: say in SECURITY.md why it is there, and its licence", path)
		}
	}
}
