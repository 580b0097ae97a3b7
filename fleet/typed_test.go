package fleet_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/score"
)

// S41: who may not, what is not there, and a connection that is closed are three errors that a program can tell apart.
func TestRefusalsAreTyped(t *testing.T) {
	d := fleet.Device{Site: "main", ID: "pi-1"}
	r := newRig(t, d)
	as := map[string]func(error) bool{
		"not allowed": func(err error) bool { return errors.Is(err, nats.ErrPermissionViolation) },
		"not there": func(err error) bool {
			return errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, nats.ErrStreamNotFound) || errors.Is(err, nats.ErrNoResponders)
		},
		"closed": func(err error) bool { return errors.Is(err, nats.ErrConnectionClosed) },
	}
	is := func(what string, errs ...error) {
		t.Helper()
		for i, err := range errs {
			var got []string
			for name, f := range as {
				if f(err) {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, []string{what}) {
				t.Errorf("%d is %v, want %s: %v", i, got, what, err)
			}
		}
	}
	publish := func(f *fleet.Fleet) error {
		_, err := f.Publish(t.Context(), []score.Manifest{manifest("m", d.ID, file("a", "/etc/a", "1"))}, r.options())
		return err
	}
	status := func(f *fleet.Fleet) error {
		_, err := f.Status(t.Context())
		return err
	}

	device := r.connect(r.srv.DeviceKey(d))
	is("not allowed", publish(device), status(device))
	device.Close()
	is("closed", publish(device), status(device))
	js := r.js()
	for name := range js.StreamNames(t.Context()).Name() {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	is("not there", publish(r.Fleet), status(r.Fleet))
}
