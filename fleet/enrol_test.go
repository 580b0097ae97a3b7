package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// A door is a fleet that lets devices in, with a clock that can be moved.
type door struct {
	*rig
	control   *fleet.Fleet
	operators fleet.KeySet
	trust     *natslink.Trust

	mu    sync.Mutex
	ahead time.Duration
}

func (d *door) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Add(d.ahead)
}

func (d *door) wait(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead += by
}

func newDoor(t *testing.T, life time.Duration) *door {
	t.Helper()
	d := &door{rig: newRig(t, pi1)}
	operator, control, err := d.keys.Trusted()
	if err != nil {
		t.Fatal(err)
	}
	if d.operators, err = fleet.ApprovalKeys(operator); err != nil {
		t.Fatal(err)
	}
	d.trust = trusting(t, operator, control)
	d.control = d.connect(d.srv.Controller)
	d.serve(fleet.ServeOptions{Interval: 5 * time.Second, Admission: &fleet.Admission{Issuer: d.srv.Keys().Issuer(), Operators: d.operators, Life: life, Clock: d.now}})
	return d
}

// invite is what an operator does.
func (d *door) invite(dev fleet.Device, life time.Duration) wire.Ticket {
	d.t.Helper()
	now := d.now()
	i, err := wire.SealInvitation(wire.Invitation{ID: "i-" + strings.ToLower(rand()), Device: dev, Until: now.Add(life)}, now, d.keys.Operator)
	if err != nil {
		d.t.Fatal(err)
	}
	kp := natstest.UserKey(d.t)
	token, err := d.srv.Keys().Issuer().Knock(dev, i.ID, publicOf(d.t, kp), i.Until)
	if err != nil {
		d.t.Fatal(err)
	}
	seed, err := kp.Seed()
	if err != nil {
		d.t.Fatal(err)
	}
	return wire.Ticket{Kind: wire.TicketKind, Device: dev, ID: i.ID, Until: i.Until, Servers: []string{d.srv.URL}, Invitation: i.Frame, Knock: wire.Knock{JWT: token, Seed: string(seed)}}
}

func publicOf(t *testing.T, kp nkeys.KeyPair) string {
	t.Helper()
	key, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ask(t *testing.T, ticket wire.Ticket, serial string) natslink.Asking {
	t.Helper()
	a, err := natslink.Ask(ticket, wire.Board{Serial: serial, Model: "Raspberry Pi 4"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// present presents a request, as often as it takes until the control service is there.
func (d *door) present(ticket wire.Ticket, a natslink.Asking) wire.LetIn {
	d.t.Helper()
	in, err := d.tryPresent(ticket, a)
	for deadline := time.Now().Add(patience); errors.Is(err, nats.ErrNoResponders) && time.Now().Before(deadline); {
		in, err = d.tryPresent(ticket, a)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return in
}

func (d *door) tryPresent(ticket wire.Ticket, a natslink.Asking) (wire.LetIn, error) {
	return natslink.Present(d.t.Context(), natslink.Options{Servers: ticket.Servers, Device: ticket.Device, Trust: d.trust}, ticket.Knock, a)
}

func (d *door) show(dev fleet.Device) fleet.Enrolled {
	d.t.Helper()
	all, err := d.control.Devices(d.t.Context(), d.operators, d.now())
	if err != nil {
		d.t.Fatal(err)
	}
	for _, e := range all {
		if e.Device == dev {
			return e
		}
	}
	return fleet.Enrolled{Device: dev}
}

// approve approves who has this fingerprint.
func (d *door) approve(dev fleet.Device, a natslink.Asking) {
	d.t.Helper()
	fingerprint, err := a.Fingerprint()
	if err != nil {
		d.t.Fatal(err)
	}
	for _, w := range d.show(dev).Waiting {
		if w.Fingerprint == fingerprint {
			if _, err := d.control.Approve(d.t.Context(), dev, w, d.operators, d.keys.Operator, d.now()); err != nil {
				d.t.Fatal(err)
			}
			return
		}
	}
	d.t.Fatalf("%s does not ask", fingerprint)
}

// login connects with the credential that was given.
func (d *door) login(dev fleet.Device, creds []byte, opts ...nats.Option) (*nats.Conn, error) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "device.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		d.t.Fatal(err)
	}
	nc, err := nats.Connect(d.srv.URL, append(opts, nats.UserCredentials(file), nats.NoReconnect(), nats.CustomInboxPrefix(wire.InboxPrefix(dev)))...)
	if err == nil {
		d.t.Cleanup(nc.Close)
	}
	return nc, err
}

// A device asks with a key of its own, waits for an operator who sees the same fingerprint, and is the device then. Until
// that, and with the invitation alone, it reads nothing (S48).
func TestEnrol(t *testing.T) {
	d := newDoor(t, time.Hour)
	d.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	ticket := d.invite(pi1, time.Hour)
	a := ask(t, ticket, "board-1")
	if in := d.present(ticket, a); in.State != wire.StateWaiting || in.Credential != "" {
		t.Fatalf("got %+v", in)
	}
	e := d.show(pi1)
	if len(e.Waiting) != 1 || e.Waiting[0].Board.Serial != "board-1" || e.Key() != "" {
		t.Fatalf("got %+v", e)
	}
	nc, err := nats.Connect(d.srv.URL, nats.UserJWTAndSeed(ticket.Knock.JWT, ticket.Knock.Seed), nats.CustomInboxPrefix(wire.EnrollInboxPrefix(pi1, ticket.ID)))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, subject := range []string{wire.FetchSubject(wire.DeviceKey(pi1)), wire.StatusSubject(pi1), wire.HeartbeatSubject(pi1), wire.RenewSubject(pi1), wire.EnrollSubject(pi10, ticket.ID), wire.EnrollSubject(pi1, "another")} {
		if m, err := nc.Request(subject, a.Request, 300*time.Millisecond); err == nil {
			t.Errorf("who is invited gets an answer on %s: %d bytes", subject, len(m.Data))
		}
	}
	if _, err := nats.Connect(d.srv.URL); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("without a credential: %v", err)
	}
	d.approve(pi1, a)
	in := d.present(ticket, a)
	if in.State != wire.StateApproved || in.Credential == "" || in.Back == "" {
		t.Fatalf("got %+v", in)
	}
	again := d.present(ticket, a) // the answer was lost, or the device crashed
	if again.State != wire.StateApproved {
		t.Errorf("asked again: %+v", again)
	}
	dev, err := d.login(pi1, a.Creds(in.Credential))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := dev.Request(wire.FetchSubject(wire.DeviceKey(pi1)), nil, patience); err != nil || len(m.Data) == 0 {
		t.Errorf("its document: %v", err)
	}
	if e := d.show(pi1); len(e.Waiting) > 0 || e.Board.Serial != "board-1" || e.Fingerprint == "" {
		t.Errorf("got %+v", e)
	}
}

// What is presented under an invitation beside or after the request of the device is refused, and lets nobody in.
func TestEnrolRefusals(t *testing.T) {
	d := newDoor(t, time.Hour)
	refused := func(what string, ticket wire.Ticket, a natslink.Asking, code wire.Code) {
		t.Helper()
		if in := d.present(ticket, a); in.State != wire.StateRefused || in.Code != code || in.Credential != "" {
			t.Errorf("%s: got %+v, want %s", what, in, code)
		}
	}
	// Somebody else has the file, and was faster: the device is told, and the operator sees another fingerprint.
	ticket := d.invite(pi1, time.Hour)
	thief, device := ask(t, ticket, "board-9"), ask(t, ticket, "board-1")
	if in := d.present(ticket, thief); in.State != wire.StateWaiting {
		t.Fatalf("got %+v", in)
	}
	refused("a second request", ticket, device, wire.CodeEquivocation)
	e := d.show(pi1)
	if len(e.Waiting) != 1 {
		t.Fatalf("got %+v", e)
	}
	if f, _ := device.Fingerprint(); e.Waiting[0].Fingerprint == f {
		t.Error("the operator is shown the wrong key")
	}
	if err := d.control.Reject(t.Context(), pi1, e.Waiting[0]); err != nil {
		t.Fatal(err)
	}
	refused("what was rejected", ticket, thief, wire.CodeUntrusted)
	refused("the invitation is used up", ticket, device, wire.CodeUntrusted)

	// Under an invitation that somebody wrote who may not.
	forged := d.invite(pi1, time.Hour)
	stranger, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	i, err := wire.SealInvitation(wire.Invitation{ID: forged.ID, Device: pi1, Until: forged.Until}, d.now(), stranger)
	if err != nil {
		t.Fatal(err)
	}
	forged.Invitation = i.Frame
	refused("a forged invitation", forged, ask(t, forged, "b"), wire.CodeUntrusted)
	// Under the invitation of another device, or another one of the same.
	other := d.invite(pi10, time.Hour)
	mixed := d.invite(pi1, time.Hour)
	mixed.Invitation = other.Invitation
	refused("the invitation of another device", mixed, ask(t, mixed, "b"), wire.CodeWrongAudience)
	mixed.Invitation = ticket.Invitation
	refused("another invitation", mixed, ask(t, mixed, "b"), wire.CodeWrongAudience)

	// After its time, by the clock of the fleet as well as by the server's.
	late := d.invite(pi1, wire.MinInvitation)
	asked := ask(t, late, "b")
	if in := d.present(late, asked); in.State != wire.StateWaiting {
		t.Fatalf("got %+v", in)
	}
	d.approve(pi1, asked)
	d.wait(wire.MinInvitation)
	refused("an invitation that is over", late, asked, wire.CodeExpired)
	if _, err := wire.SealInvitation(wire.Invitation{ID: "x", Device: pi1, Until: d.now().Add(5 * time.Hour)}, d.now(), d.keys.Operator); err == nil {
		t.Error("an invitation for five hours")
	}
}

// Who may write to the store as he likes lets nobody in: a record that no operator signed is none, and a request that is
// kept is verified again.
func TestForgedRecord(t *testing.T) {
	d := newDoor(t, time.Hour)
	ticket := d.invite(pi1, time.Hour)
	a := ask(t, ticket, "board-1")
	d.present(ticket, a)
	stranger, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	req, err := wire.OpenRequest(a.Request, pi1, ticket.ID)
	if err != nil {
		t.Fatal(err)
	}
	forged, err := wire.SealRecord(wire.Record{Generation: 99, Device: pi1, Key: req.Key, Request: req.Digest, Approved: d.now()}, d.now(), stranger)
	if err != nil {
		t.Fatal(err)
	}
	js, err := d.srv.ConnectUnbound().JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(wire.RecordSubject(pi1), forged); err != nil {
		t.Fatal(err)
	}
	if in, err := d.tryPresent(ticket, a); err == nil && in.Credential != "" {
		t.Errorf("a forged record lets somebody in: %+v", in)
	}
	if e := d.show(pi1); e.Unusable == "" || e.Key() != "" {
		t.Errorf("got %+v", e)
	}
	if _, err := js.Publish(wire.AskingSubject(pi10, "x"), []byte(`{"request":"e30="}`)); err != nil {
		t.Fatal(err)
	}
	if e := d.show(pi10); len(e.Waiting) > 0 {
		t.Errorf("a forged request is shown: %+v", e)
	}
}

// A new board under a name that is known: the operator decides, the old credential is dead and its connection is cut, and
// a record of before that somebody puts back makes it live no more (X90).
func TestReplacedBoard(t *testing.T) {
	d := newDoor(t, time.Hour)
	first := d.invite(pi1, time.Hour)
	a := ask(t, first, "board-1")
	d.present(first, a)
	d.approve(pi1, a)
	in := d.present(first, a)
	cut := make(chan struct{})
	_, err := d.login(pi1, a.Creds(in.Credential), nats.ClosedHandler(func(*nats.Conn) { close(cut) }))
	if err != nil {
		t.Fatal(err)
	}
	second := d.invite(pi1, time.Hour)
	b := ask(t, second, "board-2")
	d.present(second, b)
	e := d.show(pi1)
	if e.Board.Serial != "board-1" || len(e.Waiting) != 1 || e.Waiting[0].Board.Serial != "board-2" {
		t.Fatalf("got %+v", e)
	}
	former, err := d.control.Approve(t.Context(), pi1, e.Waiting[0], d.operators, d.keys.Operator, d.now())
	if err != nil || former != e.Key() {
		t.Fatalf("former %s, %v", former, err)
	}
	d.srv.Revoke(access.Fleet, former)
	select {
	case <-cut:
	case <-time.After(patience):
		t.Fatal("the old connection lives")
	}
	if _, err := d.login(pi1, a.Creds(in.Credential)); err == nil {
		t.Error("the old credential lets in")
	}
	if in := d.present(second, b); in.State != wire.StateApproved {
		t.Errorf("got %+v", in)
	}
	if in := d.present(first, a); in.Credential != "" {
		t.Errorf("the old request gets another credential: %+v", in)
	}
}

// letIn lets pi-1 in and connects as it.
func (d *door) letIn() (wire.Ticket, natslink.Asking, *nats.Conn) {
	d.t.Helper()
	ticket := d.invite(pi1, time.Hour)
	a := ask(d.t, ticket, "board-1")
	d.present(ticket, a)
	d.approve(pi1, a)
	nc, err := d.login(pi1, a.Creds(d.present(ticket, a).Credential))
	if err != nil {
		d.t.Fatal(err)
	}
	return ticket, a, nc
}

// A credential is renewed with itself, for the same key, without an operator; a retired device gets none.
func TestRenewAndRetire(t *testing.T) {
	d := newDoor(t, time.Hour)
	ticket, a, nc := d.letIn()
	kp, err := nkeys.FromSeed([]byte(a.Seed))
	if err != nil {
		t.Fatal(err)
	}
	renew := func(kp nkeys.KeyPair) wire.LetIn {
		t.Helper()
		nonce := []byte("0123456789abcdef")
		b, err := wire.SealRequest(wire.Request{Device: pi1, ID: wire.RequestRenew, Key: publicOf(t, kp), Nonce: nonce}, kp)
		if err != nil {
			t.Fatal(err)
		}
		m, err := nc.Request(wire.RenewSubject(pi1), b, patience)
		if err != nil {
			t.Fatal(err)
		}
		_, control, err := d.keys.Trusted()
		if err != nil {
			t.Fatal(err)
		}
		keys, err := fleet.ControlKeys(control)
		if err != nil {
			t.Fatal(err)
		}
		in, err := wire.OpenLetIn(m.Data, keys, pi1, nonce)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	in := renew(kp)
	if in.State != wire.StateApproved {
		t.Fatalf("got %+v", in)
	}
	if _, err := d.login(pi1, a.Creds(in.Credential)); err != nil {
		t.Error(err)
	}
	if in := renew(natstest.UserKey(t)); in.State != wire.StateRefused || in.Code != wire.CodeKeyRevoked {
		t.Errorf("another key: %+v", in)
	}
	if key, err := d.control.Retire(t.Context(), pi1, d.operators, d.keys.Operator, d.now()); err != nil || key != publicOf(t, kp) {
		t.Fatalf("%s, %v", key, err)
	}
	if in := renew(kp); in.State != wire.StateRefused || in.Credential != "" {
		t.Errorf("a retired device: %+v", in)
	}
	if in := d.present(ticket, a); in.State != wire.StateRefused {
		t.Errorf("a retired device asks: %+v", in)
	}
	if e := d.show(pi1); !e.Retired {
		t.Errorf("got %+v", e)
	}
	if _, err := d.control.Retire(t.Context(), pi10, d.operators, d.keys.Operator, d.now()); err == nil || !strings.Contains(err.Error(), "never enrolled") {
		t.Errorf("got %v", err)
	}
}

// Of a device that was enrolled it is known which board it has: the card in another board is told to hold (case 134).
func TestCardInAnotherBoard(t *testing.T) {
	d := newDoor(t, time.Hour)
	_, _, nc := d.letIn()
	for board, want := range map[string]string{"board-1": wire.ConflictOther, "board-2": wire.ConflictHold} {
		for deadline := time.Now().Add(patience); ; {
			for _, other := range []string{"board-1", "board-2"} { // both are heard
				if _, err := d.beat(nc, pi1, other, func(hb *wire.Heartbeat) { hb.Serial = other }); err != nil {
					t.Fatal(err)
				}
			}
			c, err := d.beat(nc, pi1, board, func(hb *wire.Heartbeat) { hb.Serial = board })
			if err != nil {
				t.Fatal(err)
			}
			if c.Conflict == want {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s hears %q", board, c.Conflict)
			}
		}
	}
}

// Many devices are let in one after the other.
func TestEnrolMany(t *testing.T) {
	d := newDoor(t, time.Hour)
	for i := range 10 {
		dev := fleet.Device{Site: "main", ID: fmt.Sprintf("many-%d", i)}
		ticket := d.invite(dev, time.Hour)
		a := ask(t, ticket, fmt.Sprint("board-", i))
		d.present(ticket, a)
		d.approve(dev, a)
		if in := d.present(ticket, a); in.State != wire.StateApproved {
			t.Fatalf("%s: %+v", dev, in)
		}
	}
	all, err := d.control.Devices(t.Context(), d.operators, d.now())
	if err != nil || len(all) != 10 {
		t.Errorf("%d devices, %v", len(all), err)
	}
}
