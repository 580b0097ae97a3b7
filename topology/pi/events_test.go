package pi

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func TestEventsBelowRoot(t *testing.T) {
	root := t.TempDir()
	d, err := Open(t.Context(), Options{Root: root + "/"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	heard := make(chan topology.Resource, 1000)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	resources := []topology.Resource{"file:/etc/app/conf", "file:/other", "unit:x.service", "hostname"}
	go func() { done <- d.Events().Watch(ctx, resources, func(r topology.Resource) { heard <- r }) }()
	deadline := time.After(time.Minute)
	for _, want := range []topology.Resource{"file:/other", "file:/etc/app/conf", "unit:x.service"} {
		for got := topology.Resource(""); got != want; {
			switch want {
			case "unit:x.service":
				put(t, root+"/etc/systemd/system/x.service", "x")
			default:
				put(t, root+string(want[len("file:"):]), "x")
			}
			select {
			case got = <-heard:
			case <-time.After(100 * time.Millisecond): // the watch had not begun
				_ = os.RemoveAll(root + "/etc")
			case <-deadline:
				t.Fatalf("no event for %s", want)
			}
		}
	}
	stop()
	wantCode(t, <-done, topology.CodeCanceled)
}

func TestManyUnitsNeedFewRules(t *testing.T) {
	w := watch{files: map[string][]topology.Resource{}, dirs: map[string]bool{}, keys: map[string][]topology.Resource{}}
	w.add("unit:a.service")
	w.add("container:b")
	if n := len(w.matches()); n != 3 {
		t.Errorf("%d rules for two units: %q", n, w.matches())
	}
	for i := range 200 {
		w.add(topology.Resource("unit:u" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".service"))
	}
	if n := len(w.matches()); n > 4 {
		t.Errorf("%d rules for 200 units", n)
	}
}
