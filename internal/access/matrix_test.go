package access_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

var (
	pi1    = wire.Device{Site: "main", ID: "pi-1"}
	pi10   = wire.Device{Site: "main", ID: "pi-10"} // pi-1 is a prefix of it
	office = wire.Device{Site: "office", ID: "pi-1"}
	digest = strings.Repeat("ab", 32)
)

// Who there is. "@main" is bound to the devices of that site; the device is main.pi-1, and the invited may become it.
const everybody = "viewer publisher publisher@main operator operator@main approver approver@main admin owner controller ci device invited system"

// people are those who read everything that is stored.
const people = "viewer publisher publisher@main operator operator@main approver approver@main admin owner"

// A row says who may publish to some subjects, and who may subscribe to them; nobody else may.
type row struct {
	of        string // what makes the subject, or names the stream
	subjects  []string
	publish   string
	subscribe string
}

// declared is every subject of the contract.
func declared() []row {
	const notes = "publisher publisher@main operator operator@main approver approver@main admin owner controller"
	return []row{
		// What devices have. Nobody else may write there, and nobody listens in their account.
		{"ConfigSubject", []string{wire.ConfigSubject(wire.DeviceKey(pi1)), wire.ConfigSubject(wire.ApprovalKey(pi1))}, "", people + " controller device"},
		{"ConfigSubject", []string{wire.ConfigSubject(wire.DeviceKey(pi10)), wire.ConfigSubject(wire.ApprovalKey(office)), "cfg.d.*.*"}, "", people + " controller"},
		{"ConfigSubject", []string{wire.ConfigSubject(wire.ClassKey("edge")), wire.ConfigSubject(wire.RootKey(1))}, "", people + " controller device"},
		{"FetchSubject", []string{wire.FetchSubject(wire.DeviceKey(pi1)), wire.FetchSubject(wire.ApprovalKey(pi1)), wire.FetchSubject(wire.ClassKey("edge")), wire.FetchSubject(wire.RootKey(1))}, "device", ""},
		{"FetchSubject", []string{wire.FetchSubject(wire.DeviceKey(pi10)), wire.FetchSubject(wire.ApprovalKey(office))}, "", ""},
		{"BlobFetchSubject", []string{wire.BlobFetchSubject(digest, 0)}, "device", ""},
		{"StatusSubject", []string{wire.StatusSubject(pi1)}, "device", ""},
		{"StatusSubject", []string{wire.StatusSubject(pi10), wire.StatusSubject(office)}, "", ""},
		{"StatusFetchSubject", []string{wire.StatusFetchSubject(pi1)}, "device", ""},
		{"StatusFetchSubject", []string{wire.StatusFetchSubject(pi10), wire.StatusFetchSubject(office)}, "", ""},
		{"HeartbeatSubject", []string{wire.HeartbeatSubject(pi1)}, "device", "controller"},
		{"HeartbeatSubject", []string{wire.HeartbeatSubject(pi10), wire.HeartbeatSubject(office)}, "", "controller"},
		{"JournalSubject", []string{wire.JournalSubject(pi1)}, "device", people},
		{"JournalSubject", []string{wire.JournalSubject(pi10), wire.JournalSubject(office)}, "", people},
		{"InfoSubject", []string{wire.InfoSubject(pi1)}, "device", people},
		{"InfoSubject", []string{wire.InfoSubject(pi10), wire.InfoSubject(office)}, "", people},
		{"AuditSubject", []string{wire.AuditSubject(pi1)}, "device", people},
		{"AuditSubject", []string{wire.AuditSubject(pi10), wire.AuditSubject(office)}, "", people},
		{"RequestSubject", []string{wire.RequestSubject(pi1)}, "device", people},
		{"RequestSubject", []string{wire.RequestSubject(pi10), wire.RequestSubject(office)}, "", people},
		{"AllRequests", []string{wire.AllRequests}, "", people},
		{"ControlAuditSubject", []string{"audit.control.ABC"}, notes, people},
		{"RenewSubject", []string{wire.RenewSubject(pi1)}, "device", "controller"},
		{"RenewSubject", []string{wire.RenewSubject(pi10), wire.RenewSubject(office)}, "", "controller"},
		{"InboxPrefix", []string{wire.InboxPrefix(pi1) + ".x"}, "controller", people + " controller ci system device"},
		{"InboxPrefix", []string{wire.InboxPrefix(pi10) + ".x", wire.InboxPrefix(office) + ".x"}, "controller", people + " controller ci system"},

		// Who was invited.
		{"EnrollSubject", []string{wire.EnrollSubject(pi1, "one")}, "invited", "controller"},
		{"EnrollSubject", []string{wire.EnrollSubject(pi1, "two"), wire.EnrollSubject(pi10, "one"), wire.EnrollSubject(office, "one")}, "", "controller"},
		{"EnrollInboxPrefix", []string{wire.EnrollInboxPrefix(pi1, "one") + ".x"}, "", "invited"},
		{"EnrollInboxPrefix", []string{wire.EnrollInboxPrefix(pi1, "two") + ".x", wire.EnrollInboxPrefix(pi10, "one") + ".x"}, "", ""},

		{"AskingSubject", []string{wire.AskingSubject(pi1, "one"), wire.AskingSubject(office, "one")}, "controller", ""},
		{"RecordSubject", []string{wire.RecordSubject(pi1), wire.RecordSubject(office)}, "controller", ""},
		{"AllAskings", []string{wire.AllAskings}, "controller", ""},
		{"AllRecords", []string{wire.AllRecords}, "controller", ""},

		// What people and the control service write.
		{"DesiredSubject", []string{wire.DesiredSubject(wire.DeviceKey(pi1)), wire.DesiredSubject(wire.DeviceKey(pi10))}, "publisher publisher@main owner", ""},
		{"DesiredSubject", []string{wire.DesiredSubject(wire.DeviceKey(office))}, "publisher owner", ""},
		{"DesiredSubject", []string{wire.DesiredSubject(wire.ClassKey("edge"))}, "publisher owner", ""},
		{"DesiredSubject", []string{wire.DesiredSubject(wire.ApprovalKey(pi1))}, "operator operator@main approver approver@main owner", ""},
		{"DesiredSubject", []string{wire.DesiredSubject(wire.ApprovalKey(office))}, "operator approver owner", ""},
		{"DesiredSubject", []string{wire.DesiredSubject(wire.RootKey(1))}, "admin owner", ""},
		{"DesiredSubject", []string{"$KV.desired.x", "$KV.desired.d.main", "$KV.desired.d.main.pi-1.x", "$KV.desired.t.x"}, "", ""},
		{"ActualSubject", []string{wire.ActualSubject(pi1), wire.ActualSubject(office)}, "", people + " controller"},
		{"AliveKey", []string{"$KV.alive." + wire.AliveKey(pi1)}, "controller", people},
		{"BucketControl", []string{"$KV.ctl.x", "$KV.ctl.device.x"}, "controller", ""},
		{"BlobChunkSubject", []string{wire.BlobChunkSubject(digest, 0)}, "publisher publisher@main owner", ""},
		{"BlobInfoSubject", []string{wire.BlobInfoSubject(digest)}, "publisher publisher@main owner", ""},
		{"DesiredGetSubject", []string{wire.DesiredGetSubject(wire.DeviceKey(office))}, people + " controller ci", ""},
		{"ActualGetSubject", []string{wire.ActualGetSubject(office)}, people + " controller", ""},

		// What is heard of all at once.
		{"AllConfig", []string{wire.AllConfig}, "", people + " controller"},
		{"AllRoots", []string{wire.AllRoots}, "", people + " controller device"},
		{"AllHeartbeats", []string{wire.AllHeartbeats}, "", "controller"},
		{"AllRenewals", []string{wire.AllRenewals}, "", "controller"},
		{"AllEnrollments", []string{wire.AllEnrollments}, "", "controller"},
		{"AllActual", []string{wire.AllActual}, "", people + " controller"},
		{"AllJournal", []string{wire.AllJournal}, "", people},
		{"AllInfo", []string{wire.AllInfo}, "", people},
		{"AllAudit", []string{wire.AllAudit}, "", people},
		{"AllControlAudit", []string{wire.AllControlAudit}, "", people},
		{"AllBlobInfo", []string{wire.AllBlobInfo}, "", ""}, // it is read with a consumer
		{"wildcards", []string{">", "*.>", "$KV.>", "$KV.desired.>", "$KV.ctl.>", "$JS.>", "$JS.API.>", "$JS.EVENT.>", "$SYS.>", "hb.>", "st.>", "get.>", "enroll.>", "_ENROLL.>", "_R_.>", "$O.>", "$O.blobs.>"}, "", ""},

		// The server itself.
		{"ClaimsUpdate", []string{wire.ClaimsUpdate}, "system", ""},
		{"ClaimsLookup", []string{wire.ClaimsLookup("ABC")}, "system", ""},
		{"server", []string{
			"$SYS.REQ.SERVER.PING", "$SYS.REQ.ACCOUNT.PING.CONNZ", "$SYS.REQ.CLAIMS.DELETE", "$SYS.REQ.CLAIMS.LIST", "$SYS.REQ.SERVER.X.RELOAD", "$SYS.REQ.SERVER.X.KICK", "$SYS.REQ.ACCOUNT.ABC.INFO",
			"$SYS.REQ.USER.INFO", "$SYS.ACCOUNT.ABC.CONNECT", "$SRV.PING", "$SRV.INFO.x",
		}, "", ""},
		{"replies", []string{"_R_.x.y"}, "controller", ""},
	}
}

var streams = []string{wire.StreamDesired, wire.StreamActual, wire.StreamJournal, wire.StreamAudit, wire.StreamAlive, wire.StreamControl, wire.StreamBlobs, "OTHER"}

// api is every request of JetStream that names a stream, as "%s".
var api = map[string][]string{
	"info":    {"STREAM.INFO.%s"},
	"create":  {"STREAM.CREATE.%s"},
	"purge":   {"STREAM.PURGE.%s"},
	"get":     {"STREAM.MSG.GET.%s", "DIRECT.GET.%s", "DIRECT.GET.%s.$KV.desired.d.office.pi-1"},
	"consume": {"CONSUMER.CREATE.%s", "CONSUMER.CREATE.%s.x", "CONSUMER.CREATE.%s.x.$KV.desired.d.office.pi-1", "CONSUMER.INFO.%s.x", "CONSUMER.MSG.NEXT.%s.x", "CONSUMER.DELETE.%s.x"},
	"nobody": {
		"STREAM.UPDATE.%s", "STREAM.DELETE.%s", "STREAM.MSG.DELETE.%s", "STREAM.SNAPSHOT.%s", "STREAM.RESTORE.%s", "STREAM.PEER.REMOVE.%s", "STREAM.LEADER.STEPDOWN.%s",
		"CONSUMER.DURABLE.CREATE.%s.x", "CONSUMER.LIST.%s", "CONSUMER.NAMES.%s", "CONSUMER.PAUSE.%s.x", "CONSUMER.UNPIN.%s.x", "CONSUMER.LEADER.STEPDOWN.%s.x",
	},
}

// apiOfAll are the requests that name none.
var apiOfAll = []string{"INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.TEMPLATE.NAMES", "ACCOUNT.PURGE.X", "META.LEADER.STEPDOWN", "SERVER.REMOVE", "ACCOUNT.STREAM.MOVE.X.Y"}

// mayAPI says who may make a request of one sort about one stream.
func mayAPI(sort, stream string) string {
	read := map[string]string{
		wire.StreamDesired: people + " controller ci", wire.StreamActual: people + " controller", wire.StreamJournal: people + " controller", wire.StreamAudit: people + " controller",
		wire.StreamAlive: people + " controller", wire.StreamBlobs: people, wire.StreamControl: "controller",
	}
	switch sort {
	case "get":
		return read[stream]
	case "info":
		if stream == wire.StreamControl {
			return read[stream] + " admin owner" // who sets up compares all streams
		}
		return read[stream]
	case "consume":
		if stream == wire.StreamAudit {
			return people
		}
		return strings.Replace(read[stream], " ci", "", 1)
	case "create":
		switch stream {
		case "OTHER":
			return ""
		case wire.StreamAlive:
			return "admin owner controller"
		}
		return "admin owner"
	case "purge":
		if stream == wire.StreamBlobs {
			return "publisher owner"
		}
	}
	return ""
}

// attempts is the whole matrix but who tries.
func attempts() []row {
	all := declared()
	for _, stream := range streams {
		for sort, forms := range api {
			for _, form := range forms {
				all = append(all, row{"API", []string{"$JS.API." + fmt.Sprintf(form, stream)}, mayAPI(sort, stream), ""})
			}
		}
		consumers := mayAPI("consume", stream)
		all = append(all, row{"API", []string{"$JS.ACK." + stream + ".x.1.1.1.1.1", "$JS.FC." + stream + ".x.y"}, consumers, ""})
	}
	for _, request := range apiOfAll {
		all = append(all, row{"API", []string{"$JS.API." + request}, "", ""})
	}
	return all
}

// Everybody tries everything, on a server that runs what the product writes, and exactly the declared pairs are allowed.
func TestMatrix(t *testing.T) { // H34, S31, S51, X40, X41, X46, G62, G65
	s := natstest.Start(t, pi1)
	all := attempts()
	pairs, allowed := 0, 0
	for who := range strings.FieldsSeq(everybody) {
		nc := s.Connect(user(t, s, who), quiet)
		for _, r := range all {
			for _, subject := range r.subjects {
				for doing, may := range map[string]string{"publish": r.publish, "subscribe": r.subscribe} {
					if doing == "publish" && strings.ContainsAny(subject, "*>") {
						continue // it would be no subject to publish to
					}
					err := try(nc, doing, subject)
					want := slices.Contains(strings.Fields(may), who)
					if err != nil && !errors.Is(err, nats.ErrPermissionViolation) || (err == nil) != want {
						t.Errorf("%s: %s to %s: %v, and may: %v", who, doing, subject, err, want)
					}
					pairs++
					if want {
						allowed++
					}
				}
			}
		}
		nc.Close()
	}
	t.Logf("%d pairs, %d of them allowed", pairs, allowed)
}

func user(t *testing.T, s *natstest.Server, who string) nkeys.KeyPair {
	t.Helper()
	kp := natstest.UserKey(t)
	var token string
	var err error
	switch who {
	case "device":
		return s.DeviceKey(pi1)
	case "invited":
		token, err = s.Keys().Issuer().Knock(pi1, "one", publicKey(t, kp), time.Time{})
	case "system":
		token, err = s.Keys().SystemUser(publicKey(t, kp))
	default:
		role, site, bound := strings.Cut(who, "@")
		if bound {
			return s.User(wire.Role(role), site)
		}
		return s.User(wire.Role(role))
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Know(kp, token)
	return kp
}

// try does one thing and gives what the server said about it; it says so before it answers the flush.
func try(nc *nats.Conn, doing, subject string) error {
	said := `Publish to "` + subject + `"`
	if doing == "publish" {
		// A request that is no request of any sort, so that nothing happens but the check.
		if err := nc.PublishRequest(subject, nc.NewInbox(), []byte("{")); err != nil {
			return err
		}
	} else {
		said = `Subscription to "` + subject + `"`
		sub, err := nc.Subscribe(subject, func(*nats.Msg) {})
		if err != nil {
			return err
		}
		defer sub.Unsubscribe()
	}
	if err := nc.FlushTimeout(patience); err != nil {
		return err
	}
	if err := nc.LastError(); err != nil && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(said)) {
		return err
	}
	return nil
}

// A subject, a stream or a role that is new has to be decided about here.
func TestMatrixIsWhole(t *testing.T) {
	var known []string
	for _, r := range declared() {
		known = append(known, r.of)
	}
	for _, r := range wire.Roles {
		if !slices.Contains(strings.Fields(everybody), string(r)) {
			t.Errorf("role %s is not in the matrix", r)
		}
		if r.OfSites() && !slices.Contains(strings.Fields(everybody), string(r)+"@main") {
			t.Errorf("role %s is not in the matrix as one of a site", r)
		}
	}
	for _, s := range wire.Streams(1) {
		if !slices.Contains(streams, s.Name) {
			t.Errorf("stream %s is not in the matrix", s.Name)
		}
	}
	files, err := filepath.Glob("../wire/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil || strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name := range f.Scope.Objects {
			subject := ast.IsExported(name) && (strings.HasSuffix(name, "Subject") || strings.HasSuffix(name, "InboxPrefix") || strings.HasPrefix(name, "All") && name != "AllRoles")
			if !subject {
				continue
			}
			found++
			if !slices.Contains(known, name) {
				t.Errorf("%s of %s is not in the matrix: say who may publish and subscribe", name, filepath.Base(file))
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d makers of subjects were found", found)
	}
}

// quiet keeps the refusals that a test provokes out of its output.
var quiet = nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})
