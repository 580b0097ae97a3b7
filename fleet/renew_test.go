package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// enrolled lets pi1 in with a credential that is good for so long, and gives the file that it is in. Later ones are good for
// an hour.
func (d *door) enrolled(life time.Duration) (file string) {
	d.t.Helper()
	d.wait(life - time.Hour)
	ticket := d.invite(pi1, wire.MaxInvitation)
	a := ask(d.t, ticket, "board-1")
	d.present(ticket, a)
	d.approve(pi1, a)
	in := d.present(ticket, a)
	d.wait(time.Hour - life)
	file = filepath.Join(d.t.TempDir(), "device.creds")
	if err := keepIn(file, a.Creds(in.Credential), in.Back); err != nil {
		d.t.Fatal(err)
	}
	return file
}

func keepIn(file string, creds []byte, back string) error {
	if err := os.WriteFile(file+".back", []byte(back), 0o600); err != nil {
		return err
	}
	return os.WriteFile(file, creds, 0o600)
}

// runs starts the agent of pi1 on the credential in a file. kept hears of every other one.
func (d *door) runs(file string) (kept <-chan struct{}, lost <-chan error) {
	d.t.Helper()
	another, gone := make(chan struct{}, 16), make(chan error, 16)
	d.device(pi1, func(o *natslink.Options) {
		o.CredsFile, o.BackFile = file, file+".back"
		o.KeepCreds = func(creds []byte, back string) error {
			err := keepIn(file, creds, back)
			another <- struct{}{}
			return err
		}
		o.Notice = func(err error) {
			if err != nil {
				gone <- err
			}
		}
	})
	return another, gone
}

// A credential is renewed before it expires, and the device goes on: no connection is refused, and it stays alive (G64).
func TestRenewedInTime(t *testing.T) {
	d := newDoor(t, time.Hour)
	file := d.enrolled(12 * time.Second)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	kept, lost := d.runs(file)
	d.until(pi1, "alive", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Live })
	select {
	case <-kept:
	case <-time.After(patience):
		t.Fatal("it is not renewed")
	}
	after, err := os.ReadFile(file)
	if err != nil || string(after) == string(before) {
		t.Fatalf("the credential is the same, %v", err)
	}
	heard := time.Now()
	for deadline := heard.Add(patience); ; {
		states, err := d.Status(t.Context(), pi1)
		if err != nil {
			t.Fatal(err)
		}
		if states[0].LastHeard.After(heard) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it is not heard with the new one: %+v", states[0])
		}
	}
	select {
	case err := <-lost:
		t.Errorf("a connection failed: %v", err)
	default:
	}
}

// A device whose credential expired while it was away asks to be let in again, and an operator can do that without a visit
// (X14).
func TestBackAfterExpiry(t *testing.T) {
	d := newDoor(t, time.Hour)
	file := d.enrolled(2 * time.Second)
	creds, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); ; {
		nc, err := d.login(pi1, creds)
		if err != nil && strings.Contains(strings.ToLower(err.Error()), "auth") {
			break
		}
		if err == nil {
			nc.Close()
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not expire: %v", err)
		}
	}
	kept, _ := d.runs(file)
	var e fleet.Enrolled
	for deadline := time.Now().Add(patience); len(e.Waiting) == 0; e = d.show(pi1) {
		if time.Now().After(deadline) {
			t.Fatal("it does not ask")
		}
	}
	if w := e.Waiting[0]; w.ID != wire.RequestBack || w.Fingerprint != e.Fingerprint || w.Board.Serial != "" {
		t.Errorf("got %+v of %+v", w, e)
	}
	if former, err := d.control.Approve(t.Context(), pi1, e.Waiting[0], d.operators, d.keys.Operator, d.now()); err != nil || former != "" {
		t.Fatalf("former %q, %v", former, err)
	}
	select {
	case <-kept:
	case <-time.After(patience):
		t.Fatal("it gets no credential")
	}
	d.until(pi1, "alive", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Live })
}
