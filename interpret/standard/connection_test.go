package standard_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/connection"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// canary is the value of every secret of these tests.
const canary = "canary-3f9a61c2"

func init() {
	maps.Copy(others, connectionOthers)
	maps.Copy(wishes, connectionWishes)
}

var connectionOthers = map[string][]func(reflect.Value){
	"ethernet.name":      {set("other")},
	"ethernet.interface": {set("eth1")},
	"ethernet.mac":       {set(score.MAC("02:00:5e:10:00:01"))},
	"ethernet.vlan":      {set(&score.VLAN{ID: 7, Parent: "eth1"})},
	"ethernet.ipv4":      {set((*score.IPConfig)(nil)), set(&score.IPConfig{Method: score.MethodDisabled})},
	"ethernet.ipv6":      {set((*score.IPConfig)(nil))},
	"ethernet.mtu":       {set(uint32(1400))},
	"ethernet.priority":  {set(int32(10))},
	"ethernet.state":     {set(score.Absent)},
	"ethernet.confirm":   {set(&score.Confirm{Connect: "192.0.2.1:53"})},
	"wifi.name":          {set("other")},
	"wifi.interface":     {set(""), set("wlan1")},
	"wifi.mac":           {set(score.MAC("02:00:5e:10:00:01"))},
	"wifi.ssid":          {set(score.SSID("Other"))},
	"wifi.security":      {set(score.SecuritySAE)},
	"wifi.password":      {set(score.SecretRef{Secret: "tls"}), set(score.SecretRef{})},
	"wifi.hidden":        {set(true)},
	"wifi.band":          {set(score.Band5)},
	"wifi.country":       {set("FR")},
	"wifi.ipv4":          {set(&score.IPConfig{Method: score.MethodDisabled})},
	"wifi.ipv6":          {set((*score.IPConfig)(nil))},
	"wifi.mtu":           {set(uint32(1400))},
	"wifi.priority":      {set(int32(10))},
	"wifi.state":         {set(score.Absent)},
	"wifi.confirm":       {set(&score.Confirm{Connect: "192.0.2.1:53"})},
}

var connectionWishes = map[score.Kind]func(*rand.Rand) score.Spec{
	score.KindEthernet: func(r *rand.Rand) score.Spec {
		e := score.Ethernet{Name: fmt.Sprintf("Wired connection %d", r.IntN(2)), Interface: "eth0", Priority: int32(r.IntN(3)), MTU: pick[uint32](r, 0, 1400)}
		if r.IntN(2) == 0 {
			e.Interface, e.VLAN = "eth0.7", &score.VLAN{ID: uint32(7 + r.IntN(2)), Parent: "eth0"}
		}
		e.IPv4 = pick(r, nil, &score.IPConfig{Method: score.MethodAuto, DNS: []score.IP{"192.0.2.53"}, Metric: 7},
			&score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{"192.0.2.10/24", "192.0.2.11/24"}, Gateway: "192.0.2.1"})
		e.IPv6 = pick(r, nil, &score.IPConfig{Method: score.MethodLinkLocal},
			&score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{"2001:db8::10/64"}, Gateway: "fe80::1"})
		return e
	},
	score.KindWifi: func(r *rand.Rand) score.Spec {
		w := score.Wifi{
			Name: pick(r, "home", "aa:bb:cc:dd:ee:ff", "☕"), SSID: pick(r, score.SSID("A"), "\xff\x00", "☕"), Security: score.SecurityOpen,
			Interface: pick(r, "", "wlan0"), Hidden: r.IntN(2) == 0, Country: pick(r, "DE", "FR"), Band: pick(r, "", score.Band5), Priority: 10,
		}
		if r.IntN(2) == 0 {
			w.Security, w.Password = pick(r, score.SecurityPSK, score.SecuritySAE), score.SecretRef{Secret: "wifi-psk"}
		}
		return w
	},
}

func wired() score.Ethernet {
	return score.Ethernet{
		Name: "Wired connection 1", Interface: "eth0",
		IPv4: &score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{"192.0.2.10/24"}, Gateway: "192.0.2.1"}, IPv6: &score.IPConfig{Method: score.MethodDisabled},
	}
}

func wireless(ssid score.SSID) score.Wifi {
	return score.Wifi{Name: "workshop", SSID: ssid, Security: score.SecurityPSK, Password: score.SecretRef{Secret: "wifi-psk"}, Country: "DE"}
}

// A connection that is as it should be is left alone, however often it is looked at (cases 98, 99).
func TestConnectionIsLeftAlone(t *testing.T) {
	r := newRig(t)
	s := wired()
	r.want(r.play(s), interpret.Changed, "")
	for range 4 {
		r.settled(s)
	}
	s.Priority = 7
	st := r.play(s)
	r.want(st, interpret.Changed, "")
	if got := fields(st); len(got) != 1 || got[0] != "priority mutate" {
		t.Errorf("changes are %v", got)
	}
	s.State = score.Absent
	st = r.play(s)
	r.want(st, interpret.Changed, "")
	if got := fields(st); len(got) != 1 || got[0] != "state remove" {
		t.Errorf("changes are %v", got)
	}
	r.settled(s)
}

// What is foreign on an interface is not touched, and has it again when ours is gone.
func TestConnectionBesideAForeignOne(t *testing.T) {
	r := newRig(t)
	foreign := topology.ConnectionConfig{Name: "by hand", Type: topology.ConnectionEthernet, Interface: "eth0", IPv4: topology.IPConfig{Method: "auto"}}
	r.PutConnection(foreign, "")
	s := wired()
	st := r.play(s)
	r.want(st, interpret.Changed, "")
	if got := fields(st); len(got) != 1 || got[0] != "connection disrupt" || r.Carries("eth0") != s.Name {
		t.Errorf("changes are %v, eth0 has %s", got, r.Carries("eth0"))
	}
	r.PutConnection(foreign, "") // somebody has it up again
	st = r.play(s)
	r.want(st, interpret.Changed, "")
	if got := fields(st); len(got) != 1 || got[0] != "link disrupt" {
		t.Errorf("changes are %v", got)
	}
	gone, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: s}, interpret.CauseAbsent, &open{})
	if err != nil {
		t.Fatal(err)
	}
	r.want(gone, interpret.Changed, "")
	if got := r.Carries("eth0"); got != "by hand" {
		t.Errorf("eth0 has %q", got)
	}
}

// A change after which the fleet is not reached is taken back, whether something is made, changed or removed, and so is
// one that fails (cases 104).
func TestConnectionIsTakenBack(t *testing.T) {
	unreached := &open{prove: topology.Faultf(topology.CodeUnreachable, "nobody is there")}
	tests := []struct {
		name   string
		change func(r rig, s score.Ethernet) interpret.ScoreStatus
		before bool // it was there before
	}{
		{"made", func(r rig, s score.Ethernet) interpret.ScoreStatus { return r.with(s, unreached, nil) }, false},
		{"changed", func(r rig, s score.Ethernet) interpret.ScoreStatus {
			s.IPv4 = &score.IPConfig{Method: score.MethodStatic, Addresses: []score.CIDR{"198.51.100.10/24"}}
			return r.with(s, unreached, nil)
		}, true},
		{"moved to a VLAN", func(r rig, s score.Ethernet) interpret.ScoreStatus {
			s.Interface, s.VLAN = "eth0.9", &score.VLAN{ID: 9, Parent: "eth0"}
			return r.with(s, unreached, nil)
		}, true},
		{"removed", func(r rig, s score.Ethernet) interpret.ScoreStatus {
			st, err := r.table.Remove(r.Context(), score.Score{ID: "x", Spec: s}, interpret.CauseAbsent, unreached)
			if err != nil {
				r.Fatal(err)
			}
			return st
		}, true},
		{"absent", func(r rig, s score.Ethernet) interpret.ScoreStatus {
			s.State = score.Absent
			return r.with(s, unreached, nil)
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			s := wired()
			if tt.before {
				r.want(r.play(s), interpret.Changed, "")
			}
			st := tt.change(r, s)
			r.want(st, interpret.RolledBack, topology.CodeConnectivity)
			if !strings.Contains(st.Message, "nobody is there") {
				t.Errorf("it says %q", st.Message)
			}
			if r.CheckpointOpen() {
				t.Error("the checkpoint is still open")
			}
			if o := read[connection.Observed](t, st); o.Present != tt.before {
				t.Errorf("it reports %s", st.Observed)
			}
			if tt.before {
				r.settled(s)
			} else if got := r.Carries("eth0"); got != "" {
				t.Errorf("eth0 has %s", got)
			}
		})
	}
}

// Where nothing can prove that the device is still reached, nothing is tried.
func TestConnectionWithoutProof(t *testing.T) {
	r := newRig(t)
	st := r.with(wired(), &blind{}, nil)
	r.want(st, interpret.Refused, "no_proof")
	if r.Carries("eth0") != "" || r.CheckpointOpen() || !strings.Contains(st.Message, "confirm.connect") {
		t.Errorf("eth0 has %q; it says %q", r.Carries("eth0"), st.Message)
	}
}

// blind is a gate that lets everything through and can prove nothing.
type blind struct{ open }

func (blind) Admit(context.Context, interpret.Action) (interpret.Verdict, error) {
	return interpret.Verdict{Allow: true, Mark: mark}, nil
}
func (blind) Done(context.Context, interpret.Action, interpret.ScoreStatus) error { return nil }

// A checkpoint that cannot be kept is taken back, and one that is over is, too.
func TestConnectionThatCannotBeKept(t *testing.T) {
	r := newRig(t)
	r.FailOnce(memory.OpCommitNetwork, "", topology.Faultf(topology.CodeNoSpace, "the disk is full"))
	r.want(r.play(wired()), interpret.RolledBack, topology.CodeNoSpace)
	if r.Carries("eth0") != "" || r.CheckpointOpen() {
		t.Error("it was not taken back")
	}
	r.FailOnce(memory.OpCheckpointNetwork, "", topology.Faultf(topology.CodeTimeout, "busy"))
	r.want(r.play(wired()), interpret.Failed, topology.CodeTimeout)
}

// A wrong password is told, not waited for, and what the radio had joined before it has again (cases 104); a radio that is
// off is called so (cases 105); what is not in reach is kept for when it is.
func TestWifi(t *testing.T) {
	r := newRig(t)
	r.SetSecret("wifi-psk", canary)
	r.Broadcast("Home", canary)
	r.Broadcast("Workshop", "another one")
	home := wireless("Home")
	home.Name = "home"
	r.want(r.play(home), interpret.Changed, "")
	r.settled(home)

	st := r.play(wireless("Workshop"))
	r.want(st, interpret.Failed, topology.CodeJobFailed)
	if r.Carries("wlan0") != "home" || !strings.Contains(st.Message, "password is wrong") {
		t.Errorf("wlan0 has %q; it says %q", r.Carries("wlan0"), st.Message)
	}

	far := wireless("Far away")
	r.want(r.play(far), interpret.Changed, "")
	st = r.play(far)
	r.want(st, interpret.Unchanged, "")
	if st.Converged() || r.Carries("wlan0") != "home" {
		t.Errorf("what is out of reach is in force: %s, and wlan0 has %s", st.Observed, r.Carries("wlan0"))
	}

	r.Plug("wlan0", false)
	r.want(r.play(home), interpret.Failed, topology.CodeRadioBlocked)
	hall := wireless("Home")
	hall.Name = "hall"
	r.want(r.play(hall), interpret.Failed, topology.CodeRadioBlocked)
	if r.CheckpointOpen() {
		t.Error("the checkpoint is still open")
	}
	r.Plug("wlan0", true)
	r.settled(home)
}

// A password that was changed reaches the connection, once; and it is in nothing that is reported.
func TestWifiPassword(t *testing.T) {
	r := newRig(t)
	s := wireless("Home")
	st := r.play(s)
	r.want(st, interpret.Failed, topology.CodeSecret)
	if st.Path != "/password" {
		t.Errorf("it is about %q", st.Path)
	}
	var said []interpret.ScoreStatus
	for _, value := range []string{canary, canary + "-2"} {
		r.SetSecret("wifi-psk", value)
		st := r.play(s)
		r.want(st, interpret.Changed, "")
		said = append(said, st, r.settled(s))
	}
	if got := fields(said[2]); len(got) != 1 || got[0] != "password disrupt" {
		t.Errorf("changes are %v", got)
	}
	for _, short := range []string{"short", "two\nlines here", strings.Repeat("x", 65)} {
		r.SetSecret("wifi-psk", short)
		st := r.play(s)
		r.want(st, interpret.Failed, topology.CodeSecret)
		said = append(said, st)
		if strings.Contains(encoded(t, st), short) {
			t.Errorf("it tells the password: %s", st.Message)
		}
	}
	if text := encoded(t, said); strings.Contains(text, canary) {
		t.Errorf("it tells the password: %s", text)
	}
}

// A cable that is pulled is no failure of the score, and what somebody took away by hand comes back.
func TestConnectionOfALooseCable(t *testing.T) {
	r := newRig(t)
	s := wired()
	r.want(r.play(s), interpret.Changed, "")
	r.Plug("eth0", false)
	st := r.play(s)
	r.want(st, interpret.Unchanged, "")
	if st.Converged() {
		t.Errorf("it converged: %s", st.Observed)
	}
	r.Plug("eth0", true)
	r.settled(s)
	r.DropAddresses("eth0")
	st = r.play(s)
	r.want(st, interpret.Changed, "")
	if got := fields(st); len(got) != 1 || got[0] != "addresses disrupt" {
		t.Errorf("changes are %v", got)
	}
	r.settled(s)
}
