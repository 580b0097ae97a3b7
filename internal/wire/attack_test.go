package wire_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// What a device would need to turn JetStream against others, and the wildcards.
func TestDeviceHasNoAPI(t *testing.T) { // X41
	s := natstest.Start(t, pi1, pi10)
	nc := s.ConnectDevice(pi1, quiet)
	for _, subject := range []string{
		"$JS.API.INFO", "$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.INFO.KV_desired", "$JS.API.STREAM.MSG.GET.KV_desired",
		"$JS.API.STREAM.PURGE.ACTUAL", "$JS.API.STREAM.DELETE.KV_desired", "$JS.API.STREAM.CREATE.MINE", "$JS.API.DIRECT.GET.KV_desired", "$JS.API.DIRECT.GET.ACTUAL",
		"$JS.API.CONSUMER.CREATE.KV_desired", "$JS.API.CONSUMER.CREATE.KV_desired.x.$KV.desired.d.main.pi-10", "$JS.API.CONSUMER.MSG.NEXT.KV_desired.x",
		"$JS.ACK.KV_desired.x", "$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.INFO", "_R_.x.y", "_INBOX.x", "st.main.pi-1.x", "st.main", "get.d.main.pi-1.x", "get.t.root.1.x",
	} {
		if err := publish(nc, subject); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("published to %s: %v", subject, err)
		}
	}
	for _, subject := range []string{
		">", "*.>", "cfg.>", "cfg.d.>", "cfg.d.main.*", "cfg.*.main.pi-1", "cfg.a.>", "_INBOX.>", "_INBOX.*.>", "_INBOX.main.>", "_INBOX.main.pi-10.>", "_INBOX.main.*.>",
		"hb.>", "st.>", "actual.>", "$KV.>", "$JS.>", "$SYS.>", "_R_.>", "renew.>", "ev.>",
	} {
		if err := subscribe(nc, subject); !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("subscribed to %s: %v", subject, err)
		}
	}
	if got := nc.MaxPayload(); got != 64<<10 {
		t.Errorf("a device may publish %d bytes", got)
	}
	if nc, err := nats.Connect(s.URL); err == nil {
		nc.Close()
		t.Error("somebody without a key connected")
	}
}

// A reply subject is where the server or a privileged service publishes for the device. It must stay in the account of
// devices, so that nothing is stored for another device.
func TestHostileReplySubject(t *testing.T) {
	s := natstest.Start(t, pi1, pi10)
	operator, device := s.ConnectOperator(), s.ConnectDevice(pi1)
	js := newJetStream(t, operator)
	for _, d := range []wire.Device{pi1, pi10} {
		if _, err := js.Publish(t.Context(), wire.DesiredSubject(wire.DeviceKey(d)), []byte("document of "+d.String())); err != nil {
			t.Fatal(err)
		}
	}
	controller := s.ConnectController()
	answered := make(chan bool, 8)
	if _, err := controller.QueueSubscribe(wire.AllHeartbeats, "control", func(msg *nats.Msg) {
		if err := msg.Respond([]byte("answer")); err != nil {
			t.Error(err)
		}
		if err := controller.Flush(); err != nil {
			t.Error(err)
		}
		answered <- true
	}); err != nil {
		t.Fatal(err)
	}
	if err := controller.Flush(); err != nil {
		t.Fatal(err)
	}
	targets := append(controlView(pi10), wire.StatusSubject(pi10))
	for _, target := range targets {
		for _, own := range []string{wire.StatusSubject(pi1), wire.FetchSubject(wire.DeviceKey(pi1)), wire.StatusFetchSubject(pi1), wire.JournalSubject(pi1), wire.AuditSubject(pi1)} {
			if err := device.PublishRequest(own, target, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := device.PublishRequest(wire.HeartbeatSubject(pi1), target, nil); err != nil {
			t.Fatal(err)
		}
		<-answered
	}
	request(t, device, wire.StatusFetchSubject(pi1), nil) // all of the above is behind it
	other := s.ConnectDevice(pi10)
	if got := request(t, other, wire.FetchSubject(wire.DeviceKey(pi10)), nil); string(got.Data) != "document of main.pi-10" {
		t.Errorf("another device's document is %q", got.Data)
	}
	if got := request(t, other, wire.StatusFetchSubject(pi10), nil); got.Header.Get("Status") != "404" {
		t.Errorf("another device's status is %q", got.Data)
	}
	stream, err := js.Stream(t.Context(), wire.StreamDesired)
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.LastSeq; n != 2 {
		t.Errorf("%d messages were stored as desired state, 2 were published", n)
	}
}

// What a message header could do to the statuses of others.
func TestHostileHeaders(t *testing.T) {
	s := natstest.Start(t, pi1, pi10)
	device, other := s.ConnectDevice(pi1), s.ConnectDevice(pi10)
	if ack := pubAck(t, writeStatus(t, other, pi10, "0", "status of pi-10")); ack.Error != nil {
		t.Fatalf("%+v", ack.Error)
	}
	tests := []struct {
		header, value string
		code          uint16
	}{
		{"Nats-Rollup", "all", 10111},
		{"Nats-Rollup", "sub", 10111},
		{"Nats-TTL", "1s", 10166},
		{"Nats-Schedule", "@at 2030-01-01T00:00:00Z", 10188},
		{"Nats-Incr", "1", 10168},
	}
	for _, tt := range tests {
		msg := nats.NewMsg(wire.StatusSubject(pi1))
		msg.Header.Set(tt.header, tt.value)
		msg.Data = []byte("x")
		reply, err := device.RequestMsg(msg, patience)
		if err != nil {
			t.Fatalf("%s: %v", tt.header, err)
		}
		if ack := pubAck(t, reply); ack.Error == nil || ack.Error.ErrorCode != tt.code {
			t.Errorf("%s: %+v, want code %d", tt.header, ack, tt.code)
		}
	}
	if got := request(t, other, wire.StatusFetchSubject(pi10), nil); string(got.Data) != "status of pi-10" {
		t.Errorf("another device's status is %q", got.Data)
	}
}
