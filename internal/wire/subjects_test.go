package wire

import (
	"strings"
	"testing"
)

// The subjects are a contract with servers, leaf nodes and other programs: they are spelled out here once more.
func TestSubjects(t *testing.T) { // H33, S51
	d := Device{"attic", "pi-1"}
	const digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	tests := map[string]string{
		string(DeviceKey(d)):            "d.attic.pi-1",
		string(ApprovalKey(d)):          "a.attic.pi-1",
		string(ClassKey("edge")):        "c.edge",
		string(RootKey(3)):              "t.root.3",
		ConfigSubject(DeviceKey(d)):     "cfg.d.attic.pi-1",
		FetchSubject(ClassKey("edge")):  "get.c.edge",
		StatusSubject(d):                "st.attic.pi-1",
		StatusFetchSubject(d):           "getst.attic.pi-1",
		HeartbeatSubject(d):             "hb.attic.pi-1",
		JournalSubject(d):               "ev.attic.pi-1",
		InfoSubject(d):                  "info.attic.pi-1",
		RenewSubject(d):                 "renew.attic.pi-1",
		RequestSubject(d):               "ask.attic.pi-1",
		AuditSubject(d):                 "audit.attic.pi-1",
		InboxPrefix(d):                  "_INBOX.attic.pi-1",
		DesiredSubject(DeviceKey(d)):    "$KV.desired.d.attic.pi-1",
		DesiredGetSubject(DeviceKey(d)): "$JS.API.DIRECT.GET.KV_desired.$KV.desired.d.attic.pi-1",
		ActualSubject(d):                "actual.attic.pi-1",
		ActualGetSubject(d):             "$JS.API.DIRECT.GET.ACTUAL.actual.attic.pi-1",
		AliveKey(d):                     "attic.pi-1",
		BlobFetchSubject(digest, 12):    "get.b." + digest + ".12",
		BlobChunkSubject(digest, 0):     "$O.blobs.C." + digest + ".0",
		BlobInfoSubject(digest):         "$O.blobs.M.YmE3ODE2YmY4ZjAxY2ZlYTQxNDE0MGRlNWRhZTIyMjNiMDAzNjFhMzk2MTc3YTljYjQxMGZmNjFmMjAwMTVhZA==",
		StreamBlobs:                     "OBJ_blobs",
		StreamDesired:                   "KV_desired",
		StreamAlive:                     "KV_alive",
		StreamControl:                   "KV_ctl",
	}
	for got, want := range tests {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestKeysComeApart(t *testing.T) {
	d := Device{"main", "pi-1"}
	for _, want := range []Target{
		{Kind: KindDevice, Device: d}, {Kind: KindApproval, Device: d}, {Kind: KindClass, Class: "edge"}, {Kind: KindRoot, Root: 12},
	} {
		var k Key
		switch want.Kind {
		case KindDevice:
			k = DeviceKey(d)
		case KindApproval:
			k = ApprovalKey(d)
		case KindClass:
			k = ClassKey("edge")
		case KindRoot:
			k = RootKey(12)
		}
		if got, err := k.Target(); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", k, got, err)
		}
	}
	for _, bad := range []Key{"", "d", "d.", "d.pi-1", "d.main.pi-1.x", "d.main.*", "c.", "c.a.b", "t.root.", "t.root.01", "t.root.-1", "t.root.x", "x.main.pi-1", "c.>"} {
		if got, err := bad.Target(); err == nil {
			t.Errorf("%q was read as %+v", bad, got)
		}
	}
}

func TestDeviceOf(t *testing.T) {
	d := Device{"attic", "pi-1"}
	for _, s := range []string{
		StatusSubject(d), StatusFetchSubject(d), HeartbeatSubject(d), JournalSubject(d), InfoSubject(d), AuditSubject(d), RequestSubject(d), RenewSubject(d), ActualSubject(d),
		ConfigSubject(DeviceKey(d)), DesiredSubject(ApprovalKey(d)), "$KV.alive." + AliveKey(d),
	} {
		if got, err := DeviceOf(s); err != nil || got != d {
			t.Errorf("%s: got %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "hb", "hb.pi-1", "hb.attic.pi-1.x", "hb.attic.*", "cfg.c.edge", "xhb.attic.pi-1"} {
		if got, err := DeviceOf(s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}

// No two subjects of any two devices, and nothing of a device's, can meet: not by prefix, not by wildcard.
func TestSubjectsOfTwoDevicesNeverMeet(t *testing.T) { // H33
	a, b := Device{"main", "pi-1"}, Device{"main", "pi-10"}
	for _, d := range []Device{b, {"main-1", "pi-1"}, {"pi-1", "main"}} {
		pa, pb := DevicePermissions(a), DevicePermissions(d)
		for _, x := range append(pa.Publish, pa.Subscribe...) {
			for _, y := range append(pb.Publish, pb.Subscribe...) {
				if collide(x, y) && !strings.Contains(x, ".c.") && !strings.Contains(x, ".t.") && x != "get.b.*.*" {
					t.Errorf("%s of %s meets %s of %s", x, a, y, d)
				}
			}
		}
	}
}

func collide(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		if x[i] == ">" || y[i] == ">" {
			return true
		}
		if x[i] != y[i] && x[i] != "*" && y[i] != "*" {
			return false
		}
	}
	return len(x) == len(y)
}
