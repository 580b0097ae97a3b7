package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

func TestUnitSettings(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"none", "", nil},
		{"a drop-in", "[Service]\nExecStart=\nExecStart=/bin/other --x=1\n  Environment = A=b\n", []string{"Service.Environment", "Service.ExecStart"}},
		{"sections", "[Unit]\r\nAfter=a\r\n[Service]\r\nType=simple\r\n", []string{"Service.Type", "Unit.After"}},
		{"comments", "[Unit]\n# Before=x\n;Wants=y\nAfter=z\n", []string{"Unit.After"}},
		{"a line that goes on", "[Service]\nExecStart=/bin/x \\\n# no=1\n  --a=b \\\n  --c=d\nType=simple\n", []string{"Service.ExecStart", "Service.Type"}},
		{"before any section", "After=x\n", nil},
	}
	for _, tt := range tests {
		if got := topology.UnitSettings(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	var many strings.Builder
	many.WriteString("[Service]\n")
	for i := range 1000 {
		fmt.Fprintf(&many, "Key%d=1\n", i)
	}
	if got := topology.UnitSettings(many.String()); len(got) != 64 {
		t.Errorf("got %d settings", len(got))
	}
}

func FuzzUnitSettings(f *testing.F) {
	f.Add("[Service]\nExecStart=/bin/x \\\n y\n")
	f.Fuzz(func(t *testing.T, in string) {
		got := topology.UnitSettings(in)
		if len(got) > 64 || !slices.IsSorted(got) {
			t.Errorf("got %q", got)
		}
	})
}
