package fleet_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A trace is what a device does, in order: the subjects it publishes to, as its server sees them, and its writes.
type trace struct {
	mu   sync.Mutex
	done []string
}

func (tr *trace) add(what ...string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.done = append(tr.done, what...)
}

var publishes = regexp.MustCompile(`(?m)^H?PUB ([a-z]+)\.\S+`)

func (tr *trace) Write(b []byte) (int, error) {
	for _, m := range publishes.FindAllSubmatch(bytes.ReplaceAll(b, []byte("\r"), nil), -1) {
		tr.add(string(m[1]))
	}
	return len(b), nil
}

// tapped puts somebody between a device and its server who hears what the device sends, before the server does.
func tapped(t *testing.T, server string, hears io.Writer) func(*natslink.Options) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			device, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", strings.TrimPrefix(server, "nats://"))
			if err != nil {
				device.Close()
				continue
			}
			go func() { defer device.Close(); _, _ = io.Copy(device, up) }()
			go func() { defer up.Close(); _, _ = io.Copy(io.MultiWriter(hears, up), device) }()
		}
	}()
	return func(o *natslink.Options) { o.Servers = []string{"nats://" + l.Addr().String()} }
}

// One cycle with nothing but heartbeats to learn from: the device reports that it lives, hears of a generation, fetches
// it, makes it true, and reports that it holds it (S10).
func TestOrderOfOneCycle(t *testing.T) {
	r := newRig(t, pi1)
	s, err := r.js().Stream(t.Context(), wire.StreamDesired)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.RePublish = nil // no push
	if _, err := r.js().UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	r.serve(fleet.ServeOptions{Interval: 5 * time.Second})
	tr := &trace{}
	dev := memory.New()
	dev.Before(func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpWriteFile {
			tr.add("write")
		}
		return nil
	})
	dv := r.deviceOn(pi1, dev, store.NewMem(), tapped(t, r.srv.URL, tr))
	r.until(pi1, "alive", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Live && s.Status != nil })
	tr.mu.Lock()
	tr.done = nil
	tr.mu.Unlock()
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	if st := r.wait(pi1, 1); st.Verdict != fleet.Converged || dv.agent.Pulse().Generation != 1 {
		t.Fatalf("got %+v", st)
	}
	tr.mu.Lock()
	done := slices.Clone(tr.done)
	tr.mu.Unlock()
	at, rest := 0, done
	for _, want := range []string{"hb", "get", "write", "st"} {
		i := slices.Index(rest, want)
		if i < 0 {
			t.Fatalf("no %q after step %d of %v", want, at, done)
		}
		at, rest = at+1, rest[i+1:]
	}
	if n := strings.Count(strings.Join(done, " "), "get"); n != 1 || slices.Index(done, "get") < slices.Index(done, "hb") || slices.Index(done, "write") < slices.Index(done, "get") {
		t.Errorf("the order was %v", done)
	}
	t.Log(done)
}
