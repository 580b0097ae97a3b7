package wire_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// What is in the audit stays there: nobody deletes a message or purges, with all the rights that there are, nobody allows it
// again, and no header of a device does (G90, X42).
func TestNobodyTakesAnythingOutOfTheAudit(t *testing.T) {
	s := natstest.Start(t, pi1, pi10)
	device, other := s.ConnectDevice(pi1), s.ConnectDevice(pi10)
	for _, nc := range []*nats.Conn{device, other} {
		d := pi1
		if nc == other {
			d = pi10
		}
		if ack := pubAck(t, request(t, nc, wire.AuditSubject(d), []byte("entry of "+d.String()))); ack.Error != nil || ack.Stream != wire.StreamAudit {
			t.Fatalf("%s: %+v", d, ack)
		}
	}
	for _, header := range []string{"Nats-Rollup", "Nats-TTL", "Nats-Incr"} {
		msg := nats.NewMsg(wire.AuditSubject(pi1))
		msg.Header.Set(header, map[string]string{"Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Incr": "1"}[header])
		msg.Data = []byte("x")
		reply, err := device.RequestMsg(msg, patience)
		if err != nil {
			t.Fatal(err)
		}
		if ack := pubAck(t, reply); ack.Error == nil {
			t.Errorf("%s was taken: %+v", header, ack)
		}
	}
	for name, nc := range map[string]*nats.Conn{"unbound": s.ConnectUnbound(quiet), "operator": s.ConnectOperator(quiet), "controller": s.ConnectController(quiet)} {
		js := newJetStream(t, nc)
		stream, err := js.Stream(t.Context(), wire.StreamAudit)
		if err != nil {
			t.Fatal(err)
		}
		if name == "unbound" { // the server answers, and refuses
			if err := stream.DeleteMsg(t.Context(), 1); err == nil {
				t.Errorf("the %s deleted an entry", name)
			}
			if err := stream.SecureDeleteMsg(t.Context(), 1); err == nil {
				t.Errorf("the %s overwrote an entry", name)
			}
			if err := stream.Purge(t.Context()); err == nil {
				t.Errorf("the %s purged the audit", name)
			}
			config := stream.CachedInfo().Config
			config.DenyDelete, config.DenyPurge = false, false
			if _, err := js.UpdateStream(t.Context(), config); err == nil {
				t.Errorf("the %s allowed deletes and purges again", name)
			}
		} else {
			for _, subject := range []string{"$JS.API.STREAM.MSG.DELETE.AUDIT", "$JS.API.STREAM.PURGE.AUDIT", "$JS.API.STREAM.UPDATE.AUDIT", "$JS.API.STREAM.DELETE.AUDIT", wire.AuditSubject(pi1)} {
				if err := publish(nc, subject); !errors.Is(err, nats.ErrPermissionViolation) {
					t.Errorf("the %s published to %s: %v", name, subject, err)
				}
			}
		}
		for i, want := range []string{"entry of main.pi-1", "entry of main.pi-10"} {
			if m, err := stream.GetMsg(t.Context(), uint64(i+1)); err != nil || string(m.Data) != want {
				t.Errorf("after the %s: %v, %v", name, m, err)
			}
		}
	}
}

// Every role lacks all that could touch what is stored. Who may do something writes its own audit, in no device's name.
func TestAuditPermissions(t *testing.T) { // X40, X42
	destroys := []string{"$JS.API.STREAM.MSG.DELETE.AUDIT", "$JS.API.STREAM.PURGE.AUDIT", "$JS.API.STREAM.DELETE.AUDIT", "$JS.API.STREAM.UPDATE.AUDIT", wire.AuditSubject(pi1), "audit.main.pi-1"}
	const own = "audit.control.ABC"
	for _, role := range wire.Roles {
		p, err := wire.RolePermissions(role)
		if err != nil {
			t.Fatal(err)
		}
		for _, subject := range destroys {
			if matchesAny(p.Publish, subject) {
				t.Errorf("a %s may publish to %s", role, subject)
			}
		}
		if got := matchesAny(p.Publish, own); got != (role != wire.RoleViewer && role != wire.RoleCI) {
			t.Errorf("a %s may write to %s: %v", role, own, got)
		}
		if got := matchesAny(p.Publish, "$JS.API.DIRECT.GET.AUDIT"); got != (role != wire.RoleCI) {
			t.Errorf("a %s may read the audit: %v", role, got)
		}
	}
	p := wire.DevicePermissions(pi1)
	for _, subject := range append(destroys, own, wire.AuditSubject(pi10)) {
		if matchesAny(p.Publish, subject) && subject != wire.AuditSubject(pi1) {
			t.Errorf("a device may publish to %s", subject)
		}
	}
	if slices.ContainsFunc(p.Subscribe, func(s string) bool { return strings.HasPrefix(s, "audit") }) {
		t.Error("a device may read the audit")
	}
}

func TestAuditWriters(t *testing.T) {
	kp, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	key, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	subject, err := wire.ControlAuditSubject(key)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := wire.AuditWriterOf(subject); err != nil || w.Key != key || w.String() != "control."+key {
		t.Errorf("%s: %+v, %v", subject, w, err)
	}
	if w, err := wire.AuditWriterOf(wire.AuditSubject(pi1)); err != nil || w.Device != pi1 || w.String() != "main.pi-1" {
		t.Errorf("%+v, %v", w, err)
	}
	for _, bad := range []string{"", "audit", "audit.control.x", "audit.control." + key + ".x", "ev.main.pi-1", "audit.main.*"} {
		if w, err := wire.AuditWriterOf(bad); err == nil {
			t.Errorf("%q was read as %v", bad, w)
		}
	}
	user, err := natstest.UserKey(t).PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	if s, err := wire.ControlAuditSubject(user); err == nil {
		t.Errorf("a connection key has the audit %s", s)
	}

	message := []byte(`{"sequence":1}`)
	header, err := wire.SignAudit(kp, message)
	if err != nil || !wire.AuditSigned(key, header, message) {
		t.Fatalf("the signature is not good: %v", err)
	}
	strange, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	otherKey, _ := strange.PublicKey()
	for name, good := range map[string]bool{
		"another message": wire.AuditSigned(key, header, []byte(`{"sequence":2}`)), "another key": wire.AuditSigned(otherKey, header, message),
		"no signature": wire.AuditSigned(key, nil, message), "rubbish": wire.AuditSigned(key, map[string][]string{"Continuo-Signature": {"AA=="}}, message),
		"no key": wire.AuditSigned("", header, message),
	} {
		if good {
			t.Errorf("%s passes", name)
		}
	}
}
