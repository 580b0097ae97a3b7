//go:build device && linux

package device

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// What is not genuine is refused, reported once, and changes nothing; the agent lives on and takes the next genuine
// document (H36, S34; cases 132, 142).
func TestRubbishIsRefused(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.converged(s.publish(file("conf", "/etc/kiosk/app.conf", "old\n")))
	old := s.stored()
	s.converged(s.publish(file("conf", "/etc/kiosk/app.conf", "right\n")))
	now := s.stored()
	pid := s.agentPID()

	stranger, err := nkeys.CreateAccount()
	s.must(err)
	as := score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind}
	as.Metadata.Name, as.Metadata.Generation = s.id.ID, 9
	as.Spec.Complete = true
	seal := func(signer wire.Signer, change func(*wire.Statement)) []byte {
		t.Helper()
		payload, err := score.Encode(as)
		s.must(err)
		st := wire.Statement{
			Kind: wire.KindDevice, Audience: s.id.String(), Name: s.id.ID, Generation: 9,
			Issued: wire.UnixSeconds(time.Now()), Encoding: wire.EncodingGzip, Media: wire.MediaAssignment,
		}
		change(&st)
		b, err := wire.Seal(st, payload, signer)
		s.must(err)
		return b
	}
	asIs := func(*wire.Statement) {}
	flipped := func(at int) []byte {
		b := bytes.Clone(now)
		b[(at+len(b))%len(b)] ^= 0x10
		return b
	}
	for _, tt := range []struct {
		name string
		body []byte
		code interpret.Code // empty: any of those for damage
	}{
		{"unknown key", seal(stranger, asIs), interpret.Code(wire.CodeUntrusted)},
		{"control key", seal(s.keys.Control, asIs), interpret.Code(wire.CodeUntrusted)},
		{"another device", seal(s.keys.Operator, func(st *wire.Statement) { st.Audience = "main.pi-70" }), interpret.Code(wire.CodeWrongAudience)},
		{"older generation", old, interpret.Code(wire.CodeRegressed)},
		{"same generation, other content", seal(s.keys.Operator, func(st *wire.Statement) { st.Generation = 2 }), ""},
		{"nothing", nil, ""},
		{"hostile length", []byte("\xdd\xff\xff\xff\xff"), ""},
		{"zeros", make([]byte, 512<<10), ""},
		{"text", []byte(strings.Repeat("continuo", 1000)), ""},
		{"first byte", flipped(0), ""},
		{"byte 40", flipped(40), ""},
		{"middle byte", flipped(len(now) / 2), ""},
		{"last byte", flipped(-1), ""},
		{"cut short", now[:len(now)-7], ""},
		{"with a tail", append(bytes.Clone(now), 0), ""},
	} {
		before := s.state().Status.Problems
		s.store(tt.body)
		if tt.code != "" {
			s.problem(tt.code)
		}
		after := s.quietly().Status
		// That the store itself is older than the device is a problem beside.
		after.Problems = slices.DeleteFunc(after.Problems, func(p interpret.Problem) bool { return p.Code == natslink.CodeControlPlane })
		if len(after.Problems) > len(before)+1 {
			t.Errorf("%s: more than one report: %v", tt.name, after.Problems)
		}
		if after.Generation != 2 || after.State != interpret.StateConverged {
			t.Errorf("%s: it reports generation %d, %s", tt.name, after.Generation, after.State)
		}
		n := len(after.Problems)
		s.store(tt.body) // the same again is no news
		again := slices.DeleteFunc(s.quietly().Status.Problems, func(p interpret.Problem) bool { return p.Code == natslink.CodeControlPlane })
		if len(again) != n {
			t.Errorf("%s: reported twice: %v", tt.name, again)
		}
	}
	t.Logf("problems after all of it: %v", s.state().Status.Problems)
	s.drifts("right")
	if got := s.agentPID(); got != pid {
		t.Errorf("the agent is process %s, and was %s", got, pid)
	}

	s.store(now) // what the device holds is there again
	s.quietly()
	s.converged(s.publish(file("conf", "/etc/kiosk/app.conf", "new\n")))
	s.holds("new")
	s.until("no problems after a genuine document", func(st fleet.DeviceState) error {
		if len(st.Status.Problems) != 0 {
			return fmt.Errorf("it reports %v", st.Status.Problems)
		}
		return nil
	})
}

// stored is what is stored for the device now, byte for byte.
func (s *site) stored() []byte {
	s.t.Helper()
	js, err := jetstream.New(s.srv.ConnectUnbound())
	s.must(err)
	stream, err := js.Stream(s.t.Context(), wire.StreamDesired)
	s.must(err)
	m, err := stream.GetLastMsgForSubject(s.t.Context(), wire.DesiredSubject(wire.DeviceKey(s.id)))
	s.must(err)
	return m.Data
}

// store writes bytes where the device's document is, as somebody with an operator's rights on the server could.
func (s *site) store(body []byte) {
	s.t.Helper()
	nc := s.srv.ConnectUnbound()
	defer nc.Close()
	js, err := jetstream.New(nc)
	s.must(err)
	_, err = js.PublishMsg(s.t.Context(), &nats.Msg{Subject: wire.DesiredSubject(wire.DeviceKey(s.id)), Data: body})
	s.must(err)
}

// quietly waits until the device has had time to take, and to report, what was pushed to it.
func (s *site) quietly() fleet.DeviceState {
	s.t.Helper()
	s.still(400 * time.Millisecond)
	return s.state()
}
