package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// Bounds a request that is answered; only failing tests reach it.
const patience = 30 * time.Second

var (
	pi1  = wire.Device{Site: "main", ID: "pi-1"}
	pi10 = wire.Device{Site: "main", ID: "pi-10"} // pi-1 is a prefix of it
)

// Every subject that the contract can produce for a device, tried with its own credential and with another's, both
// directions, on a server that runs from the generated configuration.
func TestDeviceReachesItsOwnSubjectsOnly(t *testing.T) { // H34, S31, S51, X40
	s := natstest.Start(t, pi1, pi10)
	for _, pair := range [][2]wire.Device{{pi1, pi10}, {pi10, pi1}} {
		nc := s.ConnectDevice(pair[0], quiet)
		for _, subject := range deviceViewPublish(pair[0]) {
			if err := publish(nc, subject); err != nil {
				t.Errorf("%s may not publish to its own %s: %v", pair[0], subject, err)
			}
		}
		for _, subject := range deviceViewSubscribe(pair[0]) {
			if err := subscribe(nc, subject); err != nil {
				t.Errorf("%s may not subscribe to its own %s: %v", pair[0], subject, err)
			}
		}
		// Own subjects the other way round: a device does not push to itself, nor answer for the control side.
		for _, subject := range deviceViewSubscribe(pair[0]) {
			if err := publish(nc, subject); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s published to %s: %v", pair[0], subject, err)
			}
		}
		for _, subject := range deviceViewPublish(pair[0]) {
			if err := subscribe(nc, subject); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s subscribed to %s: %v", pair[0], subject, err)
			}
		}
		other := pair[1]
		foreign := append(deviceViewPublish(other), deviceViewSubscribe(other)...)
		foreign = append(foreign, controlView(other)...)
		foreign = append(foreign, controlView(pair[0])...)
		for _, subject := range foreign {
			if isShared(subject) {
				continue
			}
			if err := publish(nc, subject); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s published to %s: %v", pair[0], subject, err)
			}
			if err := subscribe(nc, subject); !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s subscribed to %s: %v", pair[0], subject, err)
			}
		}
	}
}

func deviceViewPublish(d wire.Device) []string {
	return []string{
		wire.FetchSubject(wire.DeviceKey(d)), wire.FetchSubject(wire.ApprovalKey(d)), wire.FetchSubject(wire.ClassKey("edge")), wire.FetchSubject(wire.RootKey(1)), wire.BlobFetchSubject(digest, 0),
		wire.StatusSubject(d), wire.StatusFetchSubject(d), wire.HeartbeatSubject(d), wire.JournalSubject(d), wire.InfoSubject(d), wire.AuditSubject(d), wire.RequestSubject(d), wire.RenewSubject(d),
	}
}

func deviceViewSubscribe(d wire.Device) []string {
	return []string{
		wire.ConfigSubject(wire.DeviceKey(d)), wire.ConfigSubject(wire.ApprovalKey(d)), wire.ConfigSubject(wire.ClassKey("edge")), wire.ConfigSubject(wire.RootKey(1)),
		wire.InboxPrefix(d) + ".x",
	}
}

func controlView(d wire.Device) []string {
	return []string{
		wire.DesiredSubject(wire.DeviceKey(d)), wire.DesiredSubject(wire.ApprovalKey(d)), wire.DesiredSubject(wire.ClassKey("edge")), wire.DesiredSubject(wire.RootKey(1)),
		wire.DesiredGetSubject(wire.DeviceKey(d)), wire.ActualSubject(d), wire.ActualGetSubject(d), "$KV.alive." + wire.AliveKey(d), "$KV.ctl.device." + d.ID,
		wire.BlobChunkSubject(digest, 0), wire.BlobInfoSubject(digest), "$JS.API.DIRECT.GET.OBJ_blobs." + wire.BlobChunkSubject(digest, 0), "$JS.API.DIRECT.GET.OBJ_blobs",
	}
}

// isShared tells what every device may read.
func isShared(subject string) bool {
	for _, prefix := range []string{"cfg.c.", "cfg.t.", "get.c.", "get.t.", "get.b."} {
		if strings.HasPrefix(subject, prefix) {
			return true
		}
	}
	return false
}

// Each line of the device view, from the device to where it ends in the control account and back.
func TestImportsLeadWhereTheySay(t *testing.T) {
	s := natstest.Start(t, pi1, pi10)
	operator, device := s.ConnectOperator(), s.ConnectDevice(pi1)
	js := newJetStream(t, operator)

	pushed := make(chan *nats.Msg, 16)
	for _, subject := range deviceViewSubscribe(pi1)[:4] {
		if _, err := device.ChanSubscribe(subject, pushed); err != nil {
			t.Fatal(err)
		}
	}
	if err := device.Flush(); err != nil {
		t.Fatal(err)
	}
	keys := []wire.Key{wire.DeviceKey(pi1), wire.ClassKey("edge"), wire.ApprovalKey(pi1), wire.RootKey(1)}
	for i, k := range append([]wire.Key{wire.DeviceKey(pi10)}, keys...) {
		msg := nats.NewMsg(wire.DesiredSubject(k))
		msg.Header = wire.Announce(wire.Statement{Generation: uint64(i), Digest: []byte{1}})
		msg.Data = []byte("document " + string(k))
		if _, err := js.PublishMsg(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
	}
	for i, k := range keys { // pi-10's came first: it must not be among them
		msg := <-pushed
		a, ok := wire.ParseAnnouncement(msg.Subject, msg.Header)
		if !ok || a.Key != k || a.Generation != uint64(i+1) || a.Digest != "01" || a.Deleted || string(msg.Data) != "document "+string(k) {
			t.Errorf("pushed %s %q: %+v, want %s", msg.Subject, msg.Data, a, k)
		}
		got := request(t, device, wire.FetchSubject(k), nil)
		if string(got.Data) != "document "+string(k) || got.Header.Get(wire.HeaderDigest) != "01" {
			t.Errorf("fetched %s: %q %v", k, got.Data, got.Header)
		}
	}
	if got := request(t, device, wire.FetchSubject(wire.ClassKey("none-such")), nil); got.Header.Get("Status") != "404" {
		t.Errorf("a class that is not there: %v", got.Header)
	}
	if got := request(t, device, wire.FetchSubject(wire.DeviceKey(pi1)), []byte(`{"last_by_subj":"$KV.desired.d.main.pi-10"}`)); got.Header.Get("Status") != "408" {
		t.Errorf("a body on a fetch: %v %q", got.Header, got.Data)
	}

	kv, err := js.KeyValue(t.Context(), wire.BucketDesired)
	if err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(t.Context(), string(wire.DeviceKey(pi1))); err == nil {
		msg := <-pushed
		if a, ok := wire.ParseAnnouncement(msg.Subject, msg.Header); !ok || !a.Deleted {
			t.Errorf("a deleted key: %+v", a)
		}
	} else {
		t.Errorf("cannot delete a key: %v", err)
	}

	// Status, with the check of what it was before.
	ack := pubAck(t, writeStatus(t, device, pi1, "0", "one"))
	if ack.Stream != wire.StreamActual || ack.Error != nil {
		t.Fatalf("status: %+v", ack)
	}
	if ack := pubAck(t, writeStatus(t, device, pi1, "0", "two")); ack.Error == nil || ack.Error.ErrorCode != 10071 {
		t.Errorf("status over another: %+v", ack)
	}
	if got := request(t, device, wire.StatusFetchSubject(pi1), nil); string(got.Data) != "one" {
		t.Errorf("own status: %q", got.Data)
	}
	if ack := pubAck(t, request(t, device, wire.JournalSubject(pi1), []byte("entry"))); ack.Stream != wire.StreamJournal {
		t.Errorf("journal: %+v", ack)
	}

	controller := s.ConnectController()
	for _, all := range []string{wire.AllHeartbeats, wire.AllRenewals} {
		if _, err := controller.QueueSubscribe(all, "control", func(msg *nats.Msg) {
			d, err := wire.DeviceOf(msg.Subject)
			if err == nil {
				err = msg.Respond([]byte(d.String()))
			}
			if err != nil {
				t.Error(err)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := controller.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{wire.HeartbeatSubject(pi1), wire.RenewSubject(pi1)} {
		if got := request(t, device, subject, nil); string(got.Data) != "main.pi-1" {
			t.Errorf("%s answered %q", subject, got.Data)
		}
	}

	info, err := js.Stream(t.Context(), wire.StreamDesired)
	if err != nil {
		t.Fatal(err)
	}
	if n := info.CachedInfo().State.Consumers; n != 0 {
		t.Errorf("%d consumers on %s", n, wire.StreamDesired)
	}
}

// Roles of the control account stay apart where the bucket can keep them apart.
func TestRoles(t *testing.T) {
	document, class, approval, root := wire.DesiredSubject(wire.DeviceKey(pi1)), wire.DesiredSubject(wire.ClassKey("edge")), wire.DesiredSubject(wire.ApprovalKey(pi1)), wire.DesiredSubject(wire.RootKey(1))
	const alive, create, purge, drop = "$KV.alive.main.pi-1", "$JS.API.STREAM.CREATE.AUDIT", "$JS.API.STREAM.PURGE.KV_desired", "$JS.API.STREAM.PURGE.OBJ_blobs"
	chunk := wire.BlobChunkSubject(digest, 0)
	all := []string{document, class, approval, root, alive, create, purge, chunk, drop, "actual.main.pi-1", "_R_.x"}
	tests := []struct {
		role  wire.Role
		allow []string
	}{
		{wire.RolePublisher, []string{document, class, chunk, drop}},
		{wire.RoleOperator, []string{approval}},
		{wire.RoleApprover, []string{approval}},
		{wire.RoleViewer, nil},
		{wire.RoleController, []string{alive, "_R_.x"}},
		{wire.RoleAdmin, []string{root, create}},
		{wire.RoleOwner, []string{document, class, chunk, drop, approval, root, create}},
		{wire.RoleCI, nil},
	}
	for _, tt := range tests {
		t.Run(string(tt.role), func(t *testing.T) {
			p, err := wire.RolePermissions(tt.role)
			if err != nil {
				t.Fatal(err)
			}
			allowed := strings.Join(tt.allow, " ")
			for _, subject := range all {
				want := strings.Contains(" "+allowed+" ", " "+subject+" ")
				if got := matchesAny(p.Publish, subject); got != want {
					t.Errorf("publish to %s: %v, want %v", subject, got, want)
				}
			}
		})
	}
	if _, err := wire.RolePermissions("king"); err == nil || !strings.Contains(err.Error(), `"king"`) {
		t.Errorf("unknown role: %v", err)
	}
}

// A viewer and the controller get what they need through the client library.
func TestControlUsersCanWork(t *testing.T) {
	s := natstest.Start(t, pi1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	kv, err := newJetStream(t, s.ConnectController()).KeyValue(ctx, wire.BucketAlive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(ctx, wire.AliveKey(pi1), []byte("x")); err != nil {
		t.Errorf("the controller cannot write the alive bucket: %v", err)
	}
	w, err := newJetStream(t, s.ConnectOperator()).KeyValue(ctx, wire.BucketAlive)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := w.WatchAll(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if e := <-watch.Updates(); e == nil || e.Key() != wire.AliveKey(pi1) {
		t.Errorf("watched %v", e)
	}
	if err := watch.Stop(); err != nil {
		t.Error(err)
	}
}

func publish(nc *nats.Conn, subject string) error {
	if err := nc.PublishRequest(subject, nc.NewInbox(), nil); err != nil {
		return err
	}
	return verdict(nc, `Publish to "`+subject+`"`)
}

func subscribe(nc *nats.Conn, subject string) error {
	sub, err := nc.Subscribe(subject, func(*nats.Msg) {})
	if err != nil {
		return err
	}
	err = verdict(nc, `Subscription to "`+subject+`"`)
	if err == nil {
		err = sub.Unsubscribe()
	}
	return err
}

// verdict is what the server said about doing just this; it says so before it answers the flush.
func verdict(nc *nats.Conn, doing string) error {
	if err := nc.FlushTimeout(patience); err != nil {
		return err
	}
	if err := nc.LastError(); err != nil && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(doing)) {
		return err
	}
	return nil
}

func matchesAny(allow []string, subject string) bool {
	for _, a := range allow {
		x, y := strings.Split(a, "."), strings.Split(subject, ".")
		for i := range x {
			if i >= len(y) || x[i] != ">" && x[i] != "*" && x[i] != y[i] {
				break
			}
			if x[i] == ">" || i == len(x)-1 && len(x) == len(y) {
				return true
			}
		}
	}
	return false
}

func request(t *testing.T, nc *nats.Conn, subject string, body []byte) *nats.Msg {
	t.Helper()
	msg, err := nc.Request(subject, body, patience)
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
	return msg
}

func writeStatus(t *testing.T, nc *nats.Conn, d wire.Device, last, body string) *nats.Msg {
	t.Helper()
	msg := nats.NewMsg(wire.StatusSubject(d))
	msg.Header.Set("Nats-Expected-Last-Subject-Sequence", last)
	msg.Data = []byte(body)
	reply, err := nc.RequestMsg(msg, patience)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

type ack struct {
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
	Error  *struct {
		ErrorCode   uint16 `json:"err_code"`
		Description string `json:"description"`
	} `json:"error"`
}

func pubAck(t *testing.T, msg *nats.Msg) ack {
	t.Helper()
	var a ack
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		t.Fatalf("%q: %v", msg.Data, err)
	}
	return a
}

func newJetStream(t *testing.T, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// quiet keeps the refusals that a test provokes out of its output.
var quiet = nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
