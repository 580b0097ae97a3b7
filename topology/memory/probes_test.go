package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// probeHands are others on a device in memory.
type probeHands struct {
	hands
	calls *memory.Recorder
	ports *int
	ctx   context.Context
}

func (h probeHands) listen(e memory.Endpoint) (string, error) {
	address, err := h.Nobody()
	h.d.Listen(address, e)
	return address, err
}

func (h probeHands) Serve(_ string, status int, _ string) (string, error) {
	return h.listen(memory.Endpoint{Status: status})
}

func (h probeHands) Mute() (string, error) { return h.listen(memory.Endpoint{Mute: true}) }

func (h probeHands) Nobody() (string, error) {
	*h.ports++
	return fmt.Sprintf("127.0.0.1:%d", 40000+*h.ports), nil
}

func (h probeHands) Asked(address string) (n int, err error) {
	for _, c := range h.calls.Calls() {
		if url := "http://" + address; c.Resource == topology.Resource("tcp:"+address) || strings.HasPrefix(string(c.Resource), url) {
			n++
		}
	}
	return n, nil
}

func (h probeHands) SetModified(p string, at time.Time) error {
	now, err := h.d.Probes().Modified(h.ctx, p)
	h.d.Age(p, now.Sub(at))
	return err
}

func TestConformProbes(t *testing.T) { // H63, H74
	conform.Probes(t, func(t *testing.T) conform.ProbeBench {
		d := memory.New()
		d.Mkdir("/srv/conform")
		return conform.ProbeBench{Probes: d.Probes(), Dir: "/srv/conform", Hands: probeHands{hands{d}, d.Record(), new(int), t.Context()}}
	})
}
