//go:build device

package pi

import (
	"fmt"
	"reflect"
	"testing"
)

// What is picked of a unit is all that is read of it.
func TestPickedUnits(t *testing.T) {
	d := device(t)
	define(t, d.Services(), "ct-picked.service", sleeper+"MemoryMax=64M\nTasksMax=9\nIOWeight=7\nCPUQuota=20%\n")
	if err := d.Services().Start(t.Context(), "ct-picked.service", false); err != nil {
		t.Fatal(err)
	}
	l, err := d.services.bus.link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole := *l
	whole.units = l.calls
	for _, unit := range []string{"ct-picked.service", "dbus.service", "dbus.socket", "systemd-tmpfiles-clean.timer", "systemd-tmpfiles-clean.service", "-.mount", "multi-user.target", "nowhere.service"} {
		got, err := query(t.Context(), l, unit)
		if err != nil {
			t.Fatal(err)
		}
		want, err := query(t.Context(), &whole, unit)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) || got.Load == "" {
			t.Errorf("%s is picked as\n%+v, and is\n%+v", unit, got, want)
		}
	}
}

// What a look at a unit costs, with all of its answer and with what is read of it.
func BenchmarkQuery(b *testing.B) {
	d := device(b)
	l, err := d.services.bus.link(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	whole := *l
	whole.units = l.calls
	for i, link := range []*link{&whole, l} {
		b.Run(fmt.Sprintf("picked=%d", i), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := query(b.Context(), link, "dbus.service"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
