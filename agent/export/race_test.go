package export_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/export"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// hostile does something to the device right before its n-th read, or before each from then on.
func hostile(d *memory.Device, n int, always bool, do func(turn int)) *int {
	reads := 0
	d.Before(func(context.Context, memory.Call) error {
		if reads++; reads == n || always && reads > n {
			do(reads)
		}
		return nil
	})
	return &reads
}

// Whatever somebody does while it is read, what is returned was there at one time: as it was before, or as it is after.
// Nothing is torn, and if he does not stop it is refused (X53).
func TestExportWhileSomebodyChanges(t *testing.T) {
	disturb := map[string]func(d *memory.Device, turn int){
		"rewritten at the same size": func(d *memory.Device, turn int) {
			text := []string{"1", "2"}[turn%2] + "\n"
			d.Put("/srv/app/a.conf", text)
			d.Put("/srv/app/b.conf", text)
			d.Put("/srv/app/sub/c.conf", text)
		},
		"swapped for a symlink": func(d *memory.Device, turn int) {
			d.Put("/srv/secret.key", "hunter2")
			d.Delete("/srv/app/b.conf")
			d.Symlink("/srv/secret.key", "/srv/app/b.conf")
		},
		"its parent renamed": func(d *memory.Device, turn int) {
			d.Delete("/srv/app/sub")
			d.Put("/srv/app/other/c.conf", "0\n")
		},
		"its parent is another": func(d *memory.Device, turn int) {
			d.Delete("/srv/app/sub")
			d.Put("/srv/app/sub/c.conf", "0\n")
		},
		"a file added": func(d *memory.Device, turn int) {
			d.Delete("/srv/app/sub/new.conf")
			d.Put("/srv/app/sub/new.conf", "0\n")
		},
		"removed":    func(d *memory.Device, turn int) { d.Delete("/srv/app/a.conf") },
		"its rights": func(d *memory.Device, turn int) { d.Chmod("/srv/app/b.conf", 0o600|uint32(turn%2)<<2) },
	}
	fresh := func() *memory.Device {
		d := memory.New()
		for _, p := range []string{"/srv/app/a.conf", "/srv/app/b.conf", "/srv/app/sub/c.conf"} {
			d.Put(p, "0\n")
		}
		return d
	}
	export1 := func(t *testing.T, d *memory.Device) (string, *export.Refusal) {
		out, err := reader(d).Export(t.Context(), "live", "pi-7", []string{"/srv/app"})
		no, is := errors.AsType[*export.Refusal](err)
		if err != nil && !is {
			t.Fatal(err)
		}
		if err != nil && (len(out.Manifest.Spec.Scores) > 0 || out.Left != nil) {
			t.Errorf("something partial was returned: %+v", out)
		}
		return scoresOf(out), no
	}
	d := fresh()
	reads := hostile(d, 0, false, nil)
	before, _ := export1(t, d)
	total := *reads
	if total < 8 {
		t.Fatalf("it takes %d reads only", total)
	}
	for name, do := range disturb {
		t.Run(name, func(t *testing.T) {
			d := fresh()
			do(d, 2)
			after, refusedAfter := export1(t, d) // as it is when he has ended
			for n := 1; n <= total; n++ {
				d := fresh()
				hostile(d, n, false, func(int) { do(d, 2) })
				got, no := export1(t, d)
				if no == nil && got != before && got != after {
					t.Errorf("changed before read %d: what was returned was never there:\n%s", n, got)
				}
				if no != nil && refusedAfter == nil {
					t.Errorf("changed once, before read %d: refused by %v", n, no)
				}
				if no != nil && strings.Contains(no.Error(), "hunter2") {
					t.Errorf("the refusal tells a secret: %v", no)
				}
			}
			if name == "removed" || name == "swapped for a symlink" || strings.HasPrefix(name, "its parent renamed") {
				return // it can be done once only
			}
			d = fresh()
			hostile(d, 1, true, func(turn int) { do(d, turn) })
			got, no := export1(t, d)
			if no == nil {
				t.Fatalf("changed all the time, it gave %s", got)
			}
			if !slices.ContainsFunc(no.Findings, func(f export.Finding) bool { return f.Code == export.CodeChanged || f.Code == export.CodePrivate }) {
				t.Errorf("changed all the time, it was refused by %v", no)
			}
		})
	}
}

// What changes once is read again, and how often is bounded.
func TestExportTriesAgain(t *testing.T) {
	d := memory.New()
	d.Put("/srv/app/a.conf", "0")
	looks := 0
	d.Before(func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpContent {
			looks++
			return topology.Faultf(topology.CodeChanged, "it was changed while it was read")
		}
		return nil
	})
	refused(t, reader(d), export.CodeChanged, "/srv/app /srv/app/a.conf", "", "/srv/app", "/srv/app/a.conf")
	if looks != 3 {
		t.Errorf("it was read %d times, want 3", looks)
	}
	_, err := reader(d).Inventory(t.Context(), []string{"/srv/app"})
	if no, is := errors.AsType[*export.Refusal](err); !is || no.Findings[0].Code != export.CodeChanged {
		t.Errorf("inventory: %v", err)
	}
}
