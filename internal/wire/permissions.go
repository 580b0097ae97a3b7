package wire

import (
	"fmt"
	"slices"
)

// A Role is what a user of the control account may do. A user has one.
type Role string

const (
	RoleViewer     Role = "viewer"     // reads everything, writes nothing: status commands, dashboards
	RolePublisher  Role = "publisher"  // a viewer who writes device and class documents, and their contents
	RoleOperator   Role = "operator"   // a viewer who asks devices for operations
	RoleApprover   Role = "approver"   // a viewer who consents to what devices asked for
	RoleAdmin      Role = "admin"      // a viewer who creates the streams, and writes trust roots
	RoleOwner      Role = "owner"      // all of these: a person who runs a fleet alone
	RoleController Role = "controller" // the control service: answers heartbeats, keeps the alive and control buckets
	RoleCI         Role = "ci"         // sees what publishing would change, and nothing that a device wrote
)

// Roles are all of them.
var Roles = []Role{RoleViewer, RolePublisher, RoleOperator, RoleApprover, RoleAdmin, RoleOwner, RoleController, RoleCI}

// OfSites says whether a user in this role can be bound to the devices of some sites.
func (r Role) OfSites() bool { return r == RolePublisher || r == RoleOperator || r == RoleApprover }

// MaxMessage is how many bytes one message of any user may have.
const MaxMessage = 1 << 20

const (
	maxDevicePayload = 64 << 10 // bytes of one message from a device
	maxDeviceSubs    = 48       // 4 + followed classes + inbox, with room
)

// Permissions are the subjects that a user may publish to and subscribe to; everything else is denied.
type Permissions struct {
	Publish, Subscribe []string

	MaxSubs    int // subscriptions of one connection; 0 means no bound of its own
	MaxPayload int // bytes of one message; 0 means that of every user
}

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
		MaxSubs:    maxDeviceSubs,
		MaxPayload: maxDevicePayload,
	}
}

// RolePermissions are those of a user of the control account in a role. Sites bound what he may write, if the role can be
// bound; none means the whole fleet, with what belongs to no site: classes, and taking away contents that nothing needs.
func RolePermissions(r Role, sites ...string) (Permissions, error) {
	if len(sites) > 0 && !r.OfSites() {
		return Permissions{}, fmt.Errorf("cannot bind role %q to sites: it has nothing of a site; bound can be %s, %s and %s", r, RolePublisher, RoleOperator, RoleApprover)
	}
	for _, site := range sites {
		if err := CheckName("a site", site); err != nil {
			return Permissions{}, err
		}
	}
	p := Permissions{Subscribe: []string{prefixInbox + ">"}}
	if !r.add(&p, sites) {
		return Permissions{}, fmt.Errorf("cannot give role %q: no such role", r)
	}
	if r != RoleViewer && r != RoleCI { // whoever can do something records it; who wrote what says the signature
		p.Publish = append(p.Publish, prefixAudit+controlSite+".*")
	}
	slices.Sort(p.Publish)
	slices.Sort(p.Subscribe)
	p.Publish, p.Subscribe = slices.Compact(p.Publish), slices.Compact(p.Subscribe)
	return p, nil
}

// add gives p what the role has, and says whether there is such a role.
func (r Role) add(p *Permissions, sites []string) bool {
	ofDevices := func(key string) {
		if len(sites) == 0 {
			p.Publish = append(p.Publish, prefixDesired+key+anyDevice)
		}
		for _, site := range sites {
			p.Publish = append(p.Publish, prefixDesired+key+site+".*")
		}
	}
	switch r {
	case RoleViewer:
		for _, s := range []string{StreamDesired, StreamActual, StreamJournal, StreamAudit, StreamAlive, StreamBlobs} {
			p.Publish = append(p.Publish, readStream(s)...)
			p.Publish = append(p.Publish, watchStream(s)...)
		}
		p.Subscribe = append(p.Subscribe, AllConfig, AllActual, AllInfo, AllRequests, AllJournal, AllAudit, prefixKV+BucketAlive+".>")
		return true
	case RolePublisher:
		ofDevices(keyDevice)
		p.Publish = append(p.Publish, prefixObject+">")
		if len(sites) == 0 {
			p.Publish = append(p.Publish, prefixDesired+keyClass+"*", prefixAPI+"STREAM.PURGE."+StreamBlobs)
		}
	case RoleOperator, RoleApprover: // apart are the keys that they sign with: the trust root names them
		ofDevices(keyApproval)
	case RoleAdmin:
		for _, s := range Streams(1) {
			// No update: a bound of a stream that is lowered deletes what is in it.
			p.Publish = append(p.Publish, prefixAPI+"STREAM.CREATE."+s.Name, prefixAPI+"STREAM.INFO."+s.Name)
		}
		p.Publish = append(p.Publish, prefixDesired+keyRoot+"*")
	case RoleOwner:
		for _, part := range []Role{RolePublisher, RoleOperator, RoleApprover, RoleAdmin} {
			part.add(p, nil)
		}
		return true
	case RoleController:
		// The answer to a device goes to a subject that the server made for this one request ("_R_."), and to the
		// inbox of a control user; publishing to a reply subject that the requester chose freely is what made a
		// privileged service overwrite other devices' documents, so nothing wider.
		p.Publish = append(p.Publish, "_R_.>", prefixInbox+">", prefixKV+BucketAlive+".>", prefixKV+BucketControl+".>")
		for _, s := range []string{StreamDesired, StreamActual, StreamJournal, StreamAlive, StreamControl} {
			p.Publish = append(p.Publish, readStream(s)...)
			p.Publish = append(p.Publish, watchStream(s)...)
		}
		p.Publish = append(p.Publish, readStream(StreamAudit)...)
		// A stream in memory does not outlive a single server that restarts, and holds nothing worth asking a person for.
		p.Publish = append(p.Publish, prefixAPI+"STREAM.CREATE."+StreamAlive)
		p.Subscribe = append(p.Subscribe, AllHeartbeats, AllRenewals, AllEnrollments, AllActual, AllConfig)
		return true
	case RoleCI:
		p.Publish = append(p.Publish, readStream(StreamDesired)...)
		return true
	default:
		return false
	}
	return RoleViewer.add(p, nil)
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

// A Mapping joins the device account to the control account. Another line can be added without touching any subject
// that exists.
type Mapping struct {
	Stream  bool   // pushed from control to devices; else a request from a device
	Control string // in the control account
	Device  string // in the device account
}

// Mappings are all of them.
func Mappings() []Mapping {
	get := func(key string) Mapping {
		return Mapping{Control: prefixDirectGet + StreamDesired + "." + prefixDesired + key, Device: prefixFetch + key}
	}
	same := func(subject string) Mapping { return Mapping{Control: subject, Device: subject} }
	return []Mapping{
		{Stream: true, Control: AllConfig, Device: AllConfig},
		get(keyDevice + anyDevice),
		get(keyClass + "*"),
		get(keyApproval + anyDevice),
		get(keyRoot + "*"),
		{Control: prefixDirectGet + StreamBlobs + "." + prefixBlobChunk + "*.*", Device: prefixFetch + keyBlob + "*.*"},
		{Control: AllActual, Device: prefixStatus + anyDevice},
		{Control: prefixDirectGet + StreamActual + "." + AllActual, Device: prefixStatusFetch + anyDevice},
		same(AllHeartbeats),
		same(AllJournal),
		same(AllInfo),
		same(AllAudit),
		same(AllRequests),
		same(AllRenewals),
		same(AllEnrollments),
	}
}

// SystemPermissions are those of who tells servers of accounts that have changed: a user of the system account, who may
// nothing else there.
func SystemPermissions() Permissions {
	return Permissions{Publish: []string{ClaimsUpdate, "$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP"}, Subscribe: []string{prefixInbox + ">"}}
}

// ClaimsUpdate is where a server takes the JWT of an account that has changed.
const ClaimsUpdate = "$SYS.REQ.CLAIMS.UPDATE"

// ClaimsLookup is where it gives the one that it has.
func ClaimsLookup(account string) string { return "$SYS.REQ.ACCOUNT." + account + ".CLAIMS.LOOKUP" }
