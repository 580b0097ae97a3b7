package interpret_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// TestFactNames: what an author may name is what a device can tell (H10).
func TestFactNames(t *testing.T) {
	all := topology.Facts{
		Hostname: "pi-7", Model: "m", Serial: "s", OS: topology.OS{ID: "debian", Version: "13", Codename: "trixie", Name: "Debian"},
		Kernel: "6.12", Arch: "aarch64", CPUs: 4, MemoryMiB: 512,
	}
	if got := slices.Sorted(maps.Keys(all.Text())); !slices.Equal(got, score.FactNames) {
		t.Errorf("a device tells %v, a template may use %v", got, score.FactNames)
	}
	if got := (topology.Facts{BootID: "b"}).Text(); len(got) != 0 {
		t.Errorf("of nothing it tells %v", got)
	}
}
