package natstest

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// What the operator wrote is there after a stop and after a kill, and gone after a wipe.
func TestStoreLivesAsSaid(t *testing.T) {
	d := wire.Device{Site: "main", ID: "pi-1"}
	s := Start(t, d)
	write := func(value string) {
		t.Helper()
		js, err := jetstream.New(s.ConnectOperator())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), wire.DesiredSubject(wire.DeviceKey(d)), []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	read := func() string {
		t.Helper()
		msg, err := s.ConnectDevice(d).Request(wire.FetchSubject(wire.DeviceKey(d)), nil, patience)
		if err != nil {
			t.Fatal(err)
		}
		return string(msg.Data)
	}
	write("one")
	s.Stop()
	s.Restart()
	if got := read(); got != "one" {
		t.Errorf("after a stop: %q", got)
	}
	write("two")
	s.Kill()
	s.Restart()
	if got := read(); got != "two" {
		t.Errorf("after a kill: %q", got)
	}
	s.Stop()
	s.Wipe()
	s.Restart()
	s.CreateStreams()
	if got := read(); got != "" {
		t.Errorf("after a wipe: %q", got)
	}
}

// A device that is added can connect, and one that is removed is cut, while the others stay.
func TestDevicesComeAndGo(t *testing.T) {
	a, b := wire.Device{Site: "main", ID: "pi-1"}, wire.Device{Site: "main", ID: "pi-10"}
	s := StartEmpty(t, a)
	first := s.ConnectDevice(a)
	s.AddDevice(b)
	second := s.ConnectDevice(b)
	closed := second.StatusChanged()
	s.RemoveDevice(b)
	<-closed
	if err := first.Flush(); err != nil || first.Reconnects != 0 {
		t.Errorf("the other device: %v, %d reconnects", err, first.Reconnects)
	}
}
