package natstest

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A server with TLS takes nobody who does not check it, and has the names it was given.
func TestTLS(t *testing.T) {
	d := wire.Device{Site: "main", ID: "pi-1"}
	s := StartTLS(t, []string{"localhost"}, d)
	s.CreateStreams()
	s.ConnectDevice(d)
	login := nats.UserCredentials(s.Creds(s.DeviceKey(d)))
	if nc, err := nats.Connect(s.URL, login); err == nil {
		nc.Close()
		t.Error("a client that does not know the authority trusted the server")
	}
	for _, tt := range []struct {
		name string
		ok   bool
	}{{"localhost", true}, {"ip6-localhost", false}} {
		nc, err := nats.Connect(s.URL, login, nats.RootCAs(s.CA), nats.Secure(), func(o *nats.Options) error {
			o.TLSConfig.ServerName = tt.name
			return nil
		})
		if err == nil {
			nc.Close()
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
