package score_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func TestVersionRange(t *testing.T) {
	tests := []struct {
		of, version string
		has         bool
	}{
		{"", "anything", true}, {">= 4.4", "5.4.2", true}, {">= 4.4", "4.4", true}, {">= 4.4", "4.3.1", false}, {">=4.4", "4.10", true},
		{"> 5", "5.0.0", false}, {"> 5", "5.0.1", true}, {"= 5", "5.0", true}, {"!= 5", "5.1", true}, {"< 6", "5.99-rc1", true},
		{">= 4.4, < 6", "5.4.2+deb13u1", true}, {">= 4.4,<6", "6", false}, {"<= 257", "257.8-1~deb13u2", false}, {"<= 257.8", "257.8-1~deb13u2", true},
		{">= 6.1", "6.12.47+rpt-rpi-v8", true}, {">= 1.0", "v1.2", true}, {"< 2", "99999999999999999999999999", false},
	}
	for _, tt := range tests {
		if has, err := score.VersionRange(tt.of).Has(tt.version); err != nil || has != tt.has {
			t.Errorf("%q has %q: got %v, %v", tt.of, tt.version, has, err)
		}
	}
	for _, bad := range []struct{ of, version string }{{">= 1", ""}, {">= 1", "(devel)"}, {"~> 1", "1"}, {">= 1,", "1"}} {
		if has, err := score.VersionRange(bad.of).Has(bad.version); err == nil || has {
			t.Errorf("%q has %q: got %v, %v", bad.of, bad.version, has, err)
		}
	}
}

func FuzzVersionRange(f *testing.F) {
	f.Add(">= 4.4, < 6", "5.4.2")
	f.Add("=1", "1.0.0.0.0.0.0.0")
	f.Fuzz(func(t *testing.T, of, version string) {
		a, err := score.VersionRange(of).Has(version)
		b, again := score.VersionRange(of).Has(version + "-x")
		if err == nil && (again != nil || a != b) {
			t.Errorf("%q of %q: %v, with a suffix %v %v", version, of, a, b, again)
		}
	})
}
