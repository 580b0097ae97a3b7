package score_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func TestBytes(t *testing.T) { // cases 20
	tests := []struct {
		in        string
		want      score.Bytes
		canonical string
	}{
		{"256Mi", 256 << 20, "256Mi"}, {"1Gi", 1 << 30, "1Gi"}, {"512Ki", 512 << 10, "512Ki"}, {"1024Ki", 1 << 20, "1Mi"},
		{"2048Gi", 2 << 40, "2Ti"}, {"1536Mi", 1536 << 20, "1536Mi"},
	}
	for _, tt := range tests {
		if got := parse[score.Bytes](t, tt.in)[0]; got != tt.want || got.String() != tt.canonical {
			t.Errorf("%q is %d and %s, want %d and %s", tt.in, got, got, tt.want, tt.canonical)
		}
	}
	for _, in := range []string{"", "256", "256M", "256MB", "256MiB", "1.5Gi", "-1Mi", "+1Mi", " 1Mi", "1 Mi", "1mi", "Mi", "0x1Mi", "1Mi\n", "0Mi", "007Ki"} {
		var b score.Bytes
		if err := b.UnmarshalText([]byte(in)); err == nil || !strings.Contains(err.Error(), `want text such as "256Mi"`) {
			t.Errorf("%q: got %v, %v", in, b, err)
		}
	}
	var b score.Bytes
	if err := b.UnmarshalText([]byte("999999999999999Ti")); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v, %v", b, err)
	}
	for _, none := range []score.Bytes{0, 1000} {
		if out, err := none.MarshalText(); err == nil || !strings.Contains(err.Error(), "multiple of 1Ki") {
			t.Errorf("got %s, %v", out, err)
		}
	}
}

func TestPercent(t *testing.T) { // cases 20
	for in, want := range map[string]score.Percent{"50%": 50, "200%": 200, "1%": 1, "99999%": 99999} {
		if got := parse[score.Percent](t, in)[0]; got != want || got.String() != in {
			t.Errorf("%q is %v", in, got)
		}
	}
	for _, in := range []string{"", "50", "0%", "050%", "0.5%", "-1%", "50 %", "100000%", "%", "50%%"} {
		var p score.Percent
		if err := p.UnmarshalText([]byte(in)); err == nil || !strings.Contains(err.Error(), `want text such as "50%"`) {
			t.Errorf("%q: got %v, %v", in, p, err)
		}
	}
}

func FuzzBytes(f *testing.F) {
	fuzzText[score.Bytes](f, score.BytesPattern, "256Mi", "1Gi", "0Ki", "1024Ti", "999999999999999Ti", "256", "1.5Gi")
}

func FuzzPercent(f *testing.F) {
	fuzzText[score.Percent](f, score.PercentPattern, "50%", "0%", "99999%", "1e2%")
}
