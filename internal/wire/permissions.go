package wire

import (
	"fmt"
	"slices"
)

// A Role is what a user of the control account may do. A user has one or more.
type Role string

const (
	RolePublisher  Role = "publisher"  // writes device and class documents
	RoleApprover   Role = "approver"   // writes approvals, and nothing else
	RoleViewer     Role = "viewer"     // reads everything, writes nothing: status commands, dashboards
	RoleController Role = "controller" // the control service: answers heartbeats, keeps the alive and control buckets
	RoleAdmin      Role = "admin"      // creates and changes the streams, and writes trust roots
)

// Operator is every role of a person who runs a fleet alone.
var Operator = []Role{RolePublisher, RoleApprover, RoleViewer, RoleAdmin}

// Permissions are the subjects that a user may publish to and subscribe to; everything else is denied.
type Permissions struct{ Publish, Subscribe []string }

// DevicePermissions are those of d. A device has no JetStream API and sees no other device; it may read every class,
// because a class holds no secret and a signed document says who follows it, and every content whose digest it knows.
func DevicePermissions(d Device) Permissions {
	return Permissions{
		Publish: []string{
			FetchSubject(DeviceKey(d)), FetchSubject(ApprovalKey(d)),
			prefixFetch + keyClass + "*", prefixFetch + keyRoot + "*", prefixFetch + keyBlob + "*.*",
			StatusFetchSubject(d), StatusSubject(d), HeartbeatSubject(d), JournalSubject(d), InfoSubject(d), AuditSubject(d), RequestSubject(d), RenewSubject(d),
		},
		Subscribe: []string{
			ConfigSubject(DeviceKey(d)), ConfigSubject(ApprovalKey(d)),
			prefixConfig + keyClass + "*", prefixConfig + keyRoot + "*",
			InboxPrefix(d) + ".>",
		},
	}
}

// RolePermissions are those of a user of the control account with all of the roles.
func RolePermissions(roles ...Role) (Permissions, error) {
	p := Permissions{Subscribe: []string{prefixInbox + ">"}}
	for _, r := range roles {
		if r != RoleViewer { // whoever can do something records it; who wrote what says the signature
			p.Publish = append(p.Publish, prefixAudit+controlSite+".*")
			p.Publish = append(p.Publish, readStream(StreamAudit)...)
		}
		switch r {
		case RolePublisher:
			p.Publish = append(p.Publish, prefixDesired+keyDevice+">", prefixDesired+keyClass+">")
			p.Publish = append(p.Publish, readStream(StreamDesired)...)
			// Contents, and to take away those that nothing needs any more. For that all documents are read.
			p.Publish = append(p.Publish, prefixObject+">", prefixAPI+"STREAM.PURGE."+StreamBlobs)
			p.Publish = append(p.Publish, readStream(StreamBlobs)...)
		case RoleApprover:
			p.Publish = append(p.Publish, prefixDesired+keyApproval+">")
			p.Publish = append(p.Publish, readStream(StreamDesired)...)
		case RoleViewer:
			p.Publish = append(p.Publish, prefixAPI+"INFO", prefixAPI+"STREAM.NAMES", prefixAPI+"STREAM.LIST")
			for _, s := range []string{StreamDesired, StreamActual, StreamJournal, StreamAudit, StreamAlive, StreamBlobs} {
				p.Publish = append(p.Publish, readStream(s)...)
				p.Publish = append(p.Publish, watchStream(s)...)
			}
			p.Subscribe = append(p.Subscribe, AllConfig, AllActual, AllInfo, AllRequests, AllJournal, AllAudit, prefixKV+BucketAlive+".>")
		case RoleController:
			// The answer to a device goes to a subject that the server made for this one request ("_R_."), and to the
			// inbox of a control user; publishing to a reply subject that the requester chose freely is what made a
			// privileged service overwrite other devices' documents, so nothing wider.
			p.Publish = append(p.Publish, "_R_.>", prefixInbox+">", prefixKV+BucketAlive+".>", prefixKV+BucketControl+".>")
			for _, s := range []string{StreamDesired, StreamActual, StreamJournal, StreamAlive, StreamControl} {
				p.Publish = append(p.Publish, readStream(s)...)
				p.Publish = append(p.Publish, watchStream(s)...)
			}
			// A stream in memory does not outlive a single server that restarts, and holds nothing worth asking a person for.
			p.Publish = append(p.Publish, prefixAPI+"STREAM.CREATE."+StreamAlive)
			p.Subscribe = append(p.Subscribe, AllHeartbeats, AllRenewals, AllActual, AllConfig, "$SRV.>")
		case RoleAdmin:
			p.Publish = append(p.Publish, prefixAPI+">", prefixDesired+keyRoot+"*", "$SRV.>")
		default:
			return Permissions{}, fmt.Errorf("cannot give role %q: no such role", r)
		}
	}
	slices.Sort(p.Publish)
	slices.Sort(p.Subscribe)
	p.Publish, p.Subscribe = slices.Compact(p.Publish), slices.Compact(p.Subscribe)
	return p, nil
}

// readStream allows to read single messages of a stream.
func readStream(s string) []string {
	return []string{
		prefixAPI + "STREAM.INFO." + s, prefixAPI + "STREAM.MSG.GET." + s,
		prefixDirectGet + s, prefixDirectGet + s + ".>",
	}
}

// watchStream allows consumers on a stream. They belong to the control side; a device never has one.
func watchStream(s string) []string {
	return []string{
		prefixAPI + "CONSUMER.CREATE." + s + ".>", prefixAPI + "CONSUMER.CREATE." + s, prefixAPI + "CONSUMER.INFO." + s + ".>",
		prefixAPI + "CONSUMER.DELETE." + s + ".>", prefixAPI + "CONSUMER.MSG.NEXT." + s + ".>",
		"$JS.ACK." + s + ".>", "$JS.FC." + s + ".>",
	}
}

// A mapping joins the device account to the control account. Another line can be added without touching any subject
// that exists.
type mapping struct {
	stream  bool   // pushed from control to devices; else a request from a device
	control string // in the control account
	device  string // in the device account
}

func mappings() []mapping {
	get := func(key string) mapping {
		return mapping{control: prefixDirectGet + StreamDesired + "." + prefixDesired + key, device: prefixFetch + key}
	}
	same := func(subject string) mapping { return mapping{control: subject, device: subject} }
	return []mapping{
		{stream: true, control: AllConfig, device: AllConfig},
		get(keyDevice + anyDevice),
		get(keyClass + "*"),
		get(keyApproval + anyDevice),
		get(keyRoot + "*"),
		{control: prefixDirectGet + StreamBlobs + "." + prefixBlobChunk + "*.*", device: prefixFetch + keyBlob + "*.*"},
		{control: AllActual, device: prefixStatus + anyDevice},
		{control: prefixDirectGet + StreamActual + "." + AllActual, device: prefixStatusFetch + anyDevice},
		same(AllHeartbeats),
		same(AllJournal),
		same(AllInfo),
		same(AllAudit),
		same(AllRequests),
		same(AllRenewals),
	}
}
