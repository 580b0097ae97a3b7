package interpret_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMustNotCompile builds the packages below testdata/compilefail, in one go. Each
// breaks one promise that the compiler keeps for us, at the line that says what the
// compiler has to answer: // want "regexp". Any other message is a fault of the case (H19, H11).
func TestMustNotCompile(t *testing.T) {
	dirs, err := filepath.Glob("testdata/compilefail/*")
	if err != nil || len(dirs) < 6 {
		t.Fatalf("found %d cases, %v", len(dirs), err)
	}
	wanted := map[string]*regexp.Regexp{} // by file:line
	args := []string{"build", "-gcflags=-e"}
	comment := regexp.MustCompile(`// want "(.*)"$`)
	for _, dir := range dirs {
		args = append(args, "./"+dir)
		file := filepath.Join(dir, "main.go")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		before := len(wanted)
		for i, line := range strings.Split(string(text), "\n") {
			if m := comment.FindStringSubmatch(line); m != nil {
				wanted[fmt.Sprintf("%s:%d", file, i+1)] = regexp.MustCompile(m[1])
			}
		}
		if len(wanted) != before+1 {
			t.Errorf("%s has %d lines that want something, not one", file, len(wanted)-before)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	if err == nil {
		t.Fatal("everything compiles")
	}
	said := regexp.MustCompile(`^(\S+\.go:[0-9]+):[0-9]+: (.*)$`)
	seen := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		m := said.FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case m == nil:
			if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "\t") {
				t.Errorf("the compiler also says: %s", line)
			}
		case wanted[m[1]] == nil:
			t.Errorf("the case is broken: %s", line)
		case !wanted[m[1]].MatchString(m[2]):
			t.Errorf("%s: got %q, want %s", m[1], m[2], wanted[m[1]])
		default:
			seen[m[1]] = true
		}
	}
	for at := range wanted {
		if !seen[at] {
			t.Errorf("%s compiles", at)
		}
	}
}
