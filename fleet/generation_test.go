package fleet_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// What a device says it holds is followed as far as a lost store explains it, and no further: else one device could use
// up the generations of its name, and stop everything that is published together with it (H36, cases 132).
func TestClaimedGenerations(t *testing.T) {
	tests := []struct {
		claim uint64
		want  string
	}{
		{math.MaxUint64, "1: a added 1"},
		{math.MaxUint64 - 1, "1: a added 1"},
		{1 << 63, "1: a added 1"},
		{1_000_000, "1000001: a added 1000001"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.claim), func(t *testing.T) {
			r := newRig(t, pi1)
			r.serve(fleet.ServeOptions{})
			nc := r.srv.ConnectDevice(pi1)
			ask := func(subject string, body []byte) {
				t.Helper()
				err := nats.ErrNoResponders // until the control service listens
				for deadline := time.Now().Add(patience); errors.Is(err, nats.ErrNoResponders) && time.Now().Before(deadline); {
					_, err = nc.Request(subject, body, patience)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			ask(wire.StatusSubject(pi1), fmt.Appendf(nil, `{"apiVersion":"continuo/v1","kind":"Status","device":"pi-1","phase":"idle","state":"converged","generation":%d,"manifests":[{"name":"a","generation":%[1]d,"state":"converged"}]}`, tt.claim))
			hb := wire.Heartbeat{Agent: "v0", Boot: "b", Instance: "i", Nonce: make([]byte, 16), Generation: tt.claim}
			b, err := hb.Encode()
			if err != nil {
				t.Fatal(err)
			}
			ask(wire.HeartbeatSubject(pi1), b)
			r.until(pi1, "heard", func(s fleet.DeviceState) bool { return s.Reported() == tt.claim && s.Heartbeat.Generation == tt.claim })
			if p := r.publish(manifest("a", "pi-1", file("f", "/etc/a", "x"))); actions(p[0]) != tt.want {
				t.Errorf("got %s, want %s", actions(p[0]), tt.want)
			}
		})
	}
}

// After the last generation there is no other: the publisher says so, and what to do.
func TestLastGeneration(t *testing.T) {
	r := newRig(t)
	m := manifest("a", "pi-1", file("f", "/etc/a", "x"))
	m.Metadata.Generation = 1
	var as score.Assignment
	as.APIVersion, as.Kind, as.Metadata.Name, as.Metadata.Generation = score.APIVersion, score.AssignmentKind, "pi-1", math.MaxUint64
	as.Spec.Complete, as.Spec.Scores, as.Spec.Manifests = true, 1, []score.Manifest{m}
	payload, err := score.Encode(as)
	if err != nil {
		t.Fatal(err)
	}
	st := wire.Statement{Kind: wire.KindDevice, Audience: pi1.String(), Generation: math.MaxUint64, Issued: 1, Media: wire.MediaAssignment}
	frame, err := wire.Seal(st, payload, r.keys.Operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.js().PublishMsg(t.Context(), &nats.Msg{Subject: wire.DesiredSubject(wire.DeviceKey(pi1)), Data: frame}); err != nil {
		t.Fatal(err)
	}
	_, err = r.Publish(t.Context(), []score.Manifest{manifest("a", "pi-1", file("f", "/etc/a", "y"))}, fleet.PublishOptions{Signer: r.keys.Operator})
	if err == nil || !strings.Contains(err.Error(), "none is above that") || !strings.Contains(err.Error(), "enroll the device anew") {
		t.Errorf("got %v", err)
	}
}
