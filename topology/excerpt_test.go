package topology_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/topology"
)

func TestExcerpt(t *testing.T) {
	many := strings.Repeat("line\n", 100)
	tests := []struct{ name, in, want string }{
		{"empty", "", ""},
		{"whole", "a\nb\n", "a\nb"},
		{"last lines", "first\n" + many, strings.TrimSuffix(strings.Repeat("line\n", topology.LogLines), "\n")},
		{"colours", "\x1b[1;31mred\x1b[0m and \x1b[Kplain", "red and plain"},
		{"control characters", "a\x00b\rc\x07d\te", "abcd e"},
		{"no text", "ok\xff\xfe", "ok\uFFFD"},
		{"direction and line separators", "a\u202eb\u2028c", "abc"},
		{"one long line", strings.Repeat("x", 10_000) + "end", strings.Repeat("x", topology.LogBytes-3) + "end"},
		{"long lines", strings.Repeat("y", 3000) + "\n" + strings.Repeat("z", 3000), strings.Repeat("z", 3000)},
	}
	for _, tt := range tests {
		if got := topology.Excerpt(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got, want := topology.Exceeds(tt.in), strings.Contains(tt.name, "long") || tt.name == "last lines"; got != want {
			t.Errorf("%s: it is said to exceed: %v", tt.name, got)
		}
	}
}

func FuzzExcerpt(f *testing.F) {
	f.Add("a\nb")
	f.Add("\x1b[31m\xff" + strings.Repeat("\u00e9", 3000))
	f.Fuzz(func(t *testing.T, in string) {
		out := topology.Excerpt(in)
		if len(out) > topology.LogBytes || strings.Count(out, "\n") >= topology.LogLines || !utf8.ValidString(out) {
			t.Errorf("%q gives %d bytes: %q", in, len(out), out)
		}
		if i := strings.IndexFunc(out, func(c rune) bool { return unicode.IsControl(c) && c != '\n' }); i >= 0 {
			t.Errorf("%q gives %q", in, out)
		}
		if topology.Excerpt(out) != out {
			t.Errorf("%q is cut again", out)
		}
	})
}
