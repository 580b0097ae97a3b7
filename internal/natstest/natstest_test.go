package natstest

import (
	"testing"

	"github.com/nats-io/nats.go"
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

// A device that is added can connect, and one that is removed is cut, while the others stay and still get what is
// published.
func TestDevicesComeAndGo(t *testing.T) {
	a, b := wire.Device{Site: "main", ID: "pi-1"}, wire.Device{Site: "main", ID: "pi-10"}
	s := Start(t, a)
	js, err := jetstream.New(s.ConnectOperator())
	if err != nil {
		t.Fatal(err)
	}
	first := s.ConnectDevice(a)
	pushed := make(chan *nats.Msg, 8)
	if _, err := first.ChanSubscribe(wire.ConfigSubject(wire.DeviceKey(a)), pushed); err != nil {
		t.Fatal(err)
	}
	if err := first.Flush(); err != nil {
		t.Fatal(err)
	}
	check := func(value string) {
		t.Helper()
		if _, err := js.Publish(t.Context(), wire.DesiredSubject(wire.DeviceKey(a)), []byte(value)); err != nil {
			t.Fatal(err)
		}
		if msg := <-pushed; string(msg.Data) != value {
			t.Errorf("pushed %q, want %q", msg.Data, value)
		}
		msg, err := first.Request(wire.FetchSubject(wire.DeviceKey(a)), nil, patience)
		if err != nil || string(msg.Data) != value {
			t.Errorf("fetched %v, %v, want %q", msg, err, value)
		}
	}
	check("before")
	s.AddDevice(b)
	second := s.ConnectDevice(b)
	if msg, err := second.Request(wire.FetchSubject(wire.DeviceKey(b)), nil, patience); err != nil || msg.Header.Get("Status") != "404" {
		t.Errorf("the new device fetched %v, %v", msg, err)
	}
	check("after one was added")
	cut := second.StatusChanged()
	s.RemoveDevice(b)
	<-cut
	check("after one was removed")
	if first.Reconnects != 0 {
		t.Errorf("the other device had to reconnect %d times", first.Reconnects)
	}
}
