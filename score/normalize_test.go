package score_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

var allNormalizations = [][]score.Normalization{
	nil, {score.NormalizeCRLF}, {score.NormalizeTrailingNewline},
	{score.NormalizeCRLF, score.NormalizeTrailingNewline}, {score.NormalizeTrailingNewline, score.NormalizeCRLF},
}

func TestNormalize(t *testing.T) { // K16, X50: 1,000 random values, and twins
	r := rand.New(rand.NewPCG(5, 8))
	alphabet := []string{"\r", "\n", "\r\n", "a", " ", "\u00e9", "\x00", "\xff"}
	for range 1000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteString(alphabet[r.IntN(len(alphabet))])
		}
		in := b.String()
		for _, what := range allNormalizations {
			once := score.Normalize([]byte(in), what)
			if twice := score.Normalize(bytes.Clone(once), what); !bytes.Equal(once, twice) {
				t.Errorf("%v: %q is %q, and then %q", what, in, once, twice)
			}
			if b.String() != in {
				t.Fatal("the value was changed")
			}
		}
		unix := strings.ReplaceAll(in, "\r", "")
		windows := strings.ReplaceAll(unix, "\n", "\r\n")
		crlf := []score.Normalization{score.NormalizeCRLF}
		if a, b := score.Normalize([]byte(unix), crlf), score.Normalize([]byte(windows), crlf); !bytes.Equal(a, b) {
			t.Errorf("the twins %q and %q are %q and %q", unix, windows, a, b)
		}
		tail := []score.Normalization{score.NormalizeTrailingNewline}
		if a, b := score.Normalize([]byte(unix), tail), score.Normalize([]byte(unix+"\n"), tail); !bytes.Equal(a, b) {
			t.Errorf("%q with and without another newline is %q and %q", unix, a, b)
		}
	}
	for _, tt := range []struct {
		in   string
		what []score.Normalization
		want string
	}{
		{"a\r\nb\r\n", allNormalizations[1], "a\nb\n"},
		{"a\r\r\nb", allNormalizations[1], "a\nb"},
		{"a\rb\r", allNormalizations[1], "a\rb\r"}, // no end of a line
		{"a\n\n", allNormalizations[2], "a"},
		{"a\r\n\r\n", allNormalizations[3], "a"},
		{"\n a \n", allNormalizations[3], "\n a "},
		{"a\r\n", nil, "a\r\n"},
	} {
		if got := string(score.Normalize([]byte(tt.in), tt.what)); got != tt.want {
			t.Errorf("%v: %q is %q, want %q", tt.what, tt.in, got, tt.want)
		}
	}
}
