package natslink

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

func info(serial string) interpret.DeviceInfo {
	return interpret.DeviceInfo{APIVersion: score.APIVersion, Kind: interpret.InfoKind, Device: pi1.ID, Facts: topology.Facts{Serial: serial}}
}

// What a device says it is is kept beside its status, and the last word of it alone.
func TestInform(t *testing.T) {
	r := newRig(t)
	l, _, _ := r.run(r.options())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r.report(l, status("instance-1", 1))
	for _, serial := range []string{"one", "two"} {
		if err := l.Inform(ctx, info(serial)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := r.js.Stream(ctx, wire.StreamActual)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(ctx, wire.InfoSubject(pi1))
	if err != nil {
		t.Fatal(err)
	}
	var got interpret.DeviceInfo
	if err := json.Unmarshal(m.Data, &got); err != nil || got.Facts.Serial != "two" {
		t.Errorf("got %s, %v", m.Data, err)
	}
	if i, err := s.Info(ctx); err != nil || i.State.Msgs != 2 {
		t.Errorf("the stream holds %d messages, %v", i.State.Msgs, err)
	}
	r.wantStored("instance-1/1", 1)
	// One that does not fit loses its lists, and is sent.
	big := info("three")
	big.Facts.Interfaces = []topology.Interface{{Name: strings.Repeat("x", maxReport)}}
	if err := l.Inform(ctx, big); err != nil {
		t.Error(err)
	}
}

// The clock of the device is measured against the time that the fleet signs (X45).
func TestClockIsMeasured(t *testing.T) {
	r := newRig(t)
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope {
		return &wire.ControlEnvelope{Version: 1, Now: wire.UnixSeconds(time.Now().Add(-90 * time.Second))}
	})
	o := r.options()
	o.tune.heartbeat = 20 * time.Millisecond
	_, h, _ := r.run(o)
	h.until(t, "90 s ahead", func() bool { return h.ahead != nil && (*h.ahead-90*time.Second).Abs() < 2*time.Second })
}

func TestOffset(t *testing.T) {
	asked := time.Now()
	at := func(d time.Duration) time.Time { return time.Unix(asked.Unix(), 0).Add(d) }
	exact := time.Unix(asked.Unix(), 0).Sub(asked) // of the second that asked is in
	for _, tt := range []struct {
		name          string
		trip          time.Duration
		told          time.Time
		ahead, within time.Duration
	}{
		{"none", 0, at(0), -exact - 500*time.Millisecond, 500 * time.Millisecond},
		{"a slow line", 4 * time.Second, at(2 * time.Second), -exact - 500*time.Millisecond, 2500 * time.Millisecond},
		{"ahead", time.Second, at(-time.Hour), time.Hour - exact, time.Second},
		{"behind", time.Second, at(time.Hour), -time.Hour - exact, time.Second},
	} {
		if ahead, within := offset(asked, asked.Add(tt.trip), tt.told); ahead != tt.ahead || within != tt.within {
			t.Errorf("%s: %s ± %s, want %s ± %s", tt.name, ahead, within, tt.ahead, tt.within)
		}
	}
}
