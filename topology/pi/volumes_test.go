package pi

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// What hardly ever changes is asked once in a while: to ask starts podman's service.
func TestMemo(t *testing.T) {
	var m memo[int]
	asked := 0
	ask := func() (int, error) { asked++; return asked, nil }
	for range 3 {
		if n, err := m.of("a", time.Hour, ask); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	m.forget("a")
	if n, _ := m.of("a", time.Hour, ask); n != 2 {
		t.Errorf("asked %d times", n)
	}
	if n, _ := m.of("a", 0, ask); n != 3 {
		t.Errorf("too old, and asked %d times", n)
	}
	if _, err := m.of("b", time.Hour, func() (int, error) { return 0, errors.New("no") }); err == nil {
		t.Error("a failure was lost")
	}
	if n, err := m.of("b", time.Hour, ask); n != 4 || err != nil {
		t.Errorf("a failure was remembered: %d, %v", n, err)
	}
}

// Podman finds things by the beginning of an id as well: what has another name is not there.
func TestVolumeOfAnotherName(t *testing.T) {
	p := fakePodman(t, 10*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"Name":"other","name":"other","Labels":{"`+ownerLabel+`":"m/s"}}`)
	})
	if st, err := p.volume(t.Context(), "ot"); st.Present || err != nil {
		t.Errorf("%+v, %v", st, err)
	}
	if b, err := p.bridge(t.Context(), "ot"); b != nil || err != nil {
		t.Errorf("%+v, %v", b, err)
	}
}

// Whatever podman answers, it is a network, or nonsense.
func FuzzNetwork(f *testing.F) {
	f.Add([]byte(`{"name":"a","driver":"bridge","created":"2026-11-30T00:00:00Z","subnets":[{"subnet":"192.0.2.0/24","gateway":"192.0.2.1"}],"dns_enabled":true,"labels":{"continuo.owner":"m/s"}}`))
	f.Add([]byte(`{"subnets":null}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		b := new(bridge)
		if into(b)(bytes.NewReader(text)) != nil {
			return
		}
		if st := b.state(); !st.Present || len(st.Subnets) > 16 || !slices.IsSorted(st.Subnets) || st.Mark != topology.Mark(b.Labels[ownerLabel]) {
			t.Errorf("%+v", st)
		}
	})
}
