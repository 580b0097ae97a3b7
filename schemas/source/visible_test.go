package source

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What is wrong with a document is told in one line that is harmless on a terminal, whatever the document holds.
func TestDiagnosticsAreHarmless(t *testing.T) {
	const text = "apiVersion: continuo/v1\nkind: Manifest\n\"x\\e]0;title\\a\\nb\": 1\n"
	_, found := Manifest("dir/a\x1b[2J\n\xffb.yaml", []byte(text))
	if len(found) == 0 {
		t.Fatal("nothing was found")
	}
	for _, g := range found {
		s := g.String()
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x1b\a\n") || !strings.HasPrefix(s, `dir/a\x1b[2J\n\xffb.yaml:`) {
			t.Errorf("got %q", s)
		}
	}
	plain := Diagnostic{File: "größe \"x\".yaml", Line: 1, Column: 2, Text: `\ and "quotes"`}
	if got, want := plain.String(), "größe \"x\".yaml:1:2: \\ and \"quotes\""; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	mixed := Diagnostic{File: "\x1b", Text: `\ and "quotes" \"`}
	if got, want := mixed.String(), `\x1b:0:0: \ and "quotes" \"`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
