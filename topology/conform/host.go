package conform

import (
	"context"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A HostBench is a host name to test. It is set back when the test is over.
type HostBench struct {
	Host topology.Host
	// Unused is a name that the device does not have.
	Unused string
}

// Host is the suite of a host name.
func Host(t *testing.T, bench func(*testing.T) HostBench) { suite(t, bench, hostTests) }

var hostTests = []test[HostBench]{
	{"renamed", func(t *testing.T, b HostBench) {
		before, err := b.Host.Hostname(t.Context())
		ok(t, err)
		if before.Static == "" || before.Static == b.Unused {
			t.Fatalf("the device is called %+v", before)
		}
		after(t, func(ctx context.Context) {
			if err := b.Host.SetHostname(ctx, before.Static); err != nil {
				t.Errorf("cannot set the name back to %s: %v", before.Static, err)
			}
		})
		for range 2 {
			ok(t, b.Host.SetHostname(t.Context(), b.Unused))
			now, err := b.Host.Hostname(t.Context())
			ok(t, err)
			equal(t, "name", now, topology.HostState{Static: b.Unused, Transient: b.Unused})
		}
	}},
	{"name that is none", func(t *testing.T, b HostBench) {
		before, err := b.Host.Hostname(t.Context())
		ok(t, err)
		for _, name := range []string{"two words", "semi;colon", "-"} {
			fails(t, b.Host.SetHostname(t.Context(), name), topology.CodeInvalid)
		}
		now, err := b.Host.Hostname(t.Context())
		ok(t, err)
		equal(t, "name", now, before)
	}},
	{"canceled", func(t *testing.T, b HostBench) {
		before, err := b.Host.Hostname(t.Context())
		ok(t, err)
		fails(t, b.Host.SetHostname(canceled(t), b.Unused), topology.CodeCanceled)
		now, err := b.Host.Hostname(t.Context())
		ok(t, err)
		equal(t, "name", now, before)
	}},
}
