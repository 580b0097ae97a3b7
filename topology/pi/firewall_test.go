package pi

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/internal/nftables"
	"github.com/continuo-fleet/continuo/topology"
)

// everyRule says all that a rule can say.
var everyRule = []topology.FirewallRule{
	{Established: true},
	{Interface: "lo"},
	{Protocol: "icmp"},
	{Protocol: "ipv6-icmp"},
	{Protocol: "ipv6-icmp", Types: topology.PortRange{First: 130, Last: 136}},
	{Protocol: "ipv6-icmp", Types: topology.PortRange{First: 128, Last: 128}},
	{Protocol: "udp", FromPorts: topology.PortRange{First: 67, Last: 67}, Ports: topology.PortRange{First: 68, Last: 68}},
	{Protocol: "tcp", Ports: topology.PortRange{First: 8000, Last: 8010}, From: netip.MustParsePrefix("192.0.2.0/24"), Interface: "eth0"},
	{Protocol: "tcp", Ports: topology.PortRange{First: 22, Last: 22}, From: netip.MustParsePrefix("192.0.2.128/25")},
	{Protocol: "udp", Ports: topology.PortRange{First: 53, Last: 53}, From: netip.MustParsePrefix("2001:db8::/33")},
	{Protocol: "tcp", From: netip.MustParsePrefix("2001:db8::1/128")},
	{From: netip.MustParsePrefix("198.51.100.7/32")},
	{From: netip.MustParsePrefix("0.0.0.0/0"), Interface: "a-long-name.123", Protocol: "udp"},
	{From: netip.MustParsePrefix("::/0"), Established: true},
	{},
}

func TestFirewallRulesAreReadBack(t *testing.T) {
	for _, want := range everyRule {
		if got := ruleOf(nftables.NewRule(exprs(want))); got != want {
			t.Errorf("%s is read back as %s", want, got)
		}
	}
	e := exprs(everyRule[7])
	for i := range e {
		for name, changed := range map[string][]nftables.Expr{
			"without": slices.Delete(slices.Clone(e), i, i+1),
			"twice":   slices.Insert(slices.Clone(e), i, e[i]),
		} {
			if got := ruleOf(nftables.NewRule(changed)); got == everyRule[7] {
				t.Errorf("%s its expression %d it is read as %s", name, i, got)
			}
		}
	}
	e[len(e)-1].Verdict = drop
	if got := ruleOf(nftables.NewRule(e)); got.Foreign == "" {
		t.Errorf("a rule that drops is read as %s", got)
	}
}

// What rules say of themselves is what nft says of them, and what the kernel gives back is what it was given.
func TestFirewallInKernel(t *testing.T) {
	needRoot(t)
	runtime.LockOSThread() // and never unlocked: the thread ends with the test, and its network with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	d, err := Open(t.Context(), Options{State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if st, err := d.Firewall().Firewall(t.Context()); err != nil || st.Present {
		t.Fatalf("before: %+v, %v", st, err)
	}
	if err := d.Firewall().SetFirewall(t.Context(), topology.FirewallConfig{Drop: true, Rules: everyRule, Mark: "kiosk/fw"}); err != nil {
		t.Fatal(err)
	}
	want := topology.FirewallState{Present: true, Mark: "kiosk/fw", Drop: true, Rules: everyRule}
	if st, err := d.Firewall().Firewall(t.Context()); err != nil || !reflect.DeepEqual(st, want) {
		t.Errorf("got  %+v, %v\nwant %+v", st, err, want)
	}
	list, err := exec.Command("nft", "list", "table", "inet", "continuo").CombinedOutput()
	if err != nil {
		t.Logf("not compared with the words of nft: %v", err)
		return
	}
	lines := strings.Split(string(list), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	for _, r := range everyRule {
		if r.Types.First == 128 {
			continue // nft has a word for it
		}
		if !slices.Contains(lines, r.String()) {
			t.Errorf("nft has no line %q:\n%s", r, list)
		}
	}
	if !slices.Contains(lines, `comment "continuo: kiosk/fw"`) {
		t.Errorf("nft shows no owner:\n%s", list)
	}
}

// A checkpoint that cannot be read opens the device, and is over.
func TestRevertFirewall(t *testing.T) {
	needRoot(t)
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	f := &firewall{dir: t.TempDir()}
	good := topology.FirewallConfig{Drop: true, Rules: everyRule[:3], Mark: "kiosk/fw"}
	set := func(c topology.FirewallConfig) *nftables.Table {
		t.Helper()
		if err := f.SetFirewall(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		table, err := f.read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	whole, err := json.Marshal(firewallWas{1, set(good)})
	if err != nil {
		t.Fatal(err)
	}
	broken := *set(good)
	broken.Chains[0].Rules[0].Exprs = []byte{1, 2, 3}
	unusable, err := json.Marshal(firewallWas{1, &broken})
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(firewallWas{1, &nftables.Table{Name: "theirs"}})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		content []byte
		suffix  string
		rules   int // afterwards
		err     bool
	}{
		{"whole", whole, "", 3, false},
		{"claimed by one that was killed", whole, claimedSuffix, 3, false},
		{"of nothing", []byte(`{"Version":1}`), "", 0, false},
		{"cut off", whole[:len(whole)/2], "", 0, false},
		{"empty", nil, "", 0, false},
		{"zeros", make([]byte, 4096), "", 0, false},
		{"of another version", []byte(`{"Version":2,"Table":{"Name":"continuo"}}`), "", 0, false},
		{"of another table", other, "", 0, false},
		{"that the kernel refuses", unusable, "", 0, true},
	}
	for _, tt := range tests { // in one goroutine: only its thread has the network
		path := filepath.Join(f.dir, "firewall-1.json")
		if err := os.WriteFile(path+tt.suffix, tt.content, 0o600); err != nil {
			t.Fatal(err)
		}
		set(topology.FirewallConfig{Drop: true, Mark: "kiosk/bad"})
		was, err := Revert(t.Context(), path)
		st, readErr := f.Firewall(t.Context())
		if !was || (err != nil) != tt.err || readErr != nil || st.Present != (tt.rules > 0) || len(st.Rules) != tt.rules {
			t.Errorf("%s: %v, %v; now %+v, %v", tt.name, was, err, st, readErr)
		}
		if was, err := Revert(t.Context(), path); was || err != nil {
			t.Errorf("%s: again: %v, %v", tt.name, was, err)
		}
		if left, err := os.ReadDir(f.dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left: %v, %v", tt.name, left, err)
		}
	}
}

// Whoever runs revert by hand with something else than a checkpoint loses nothing.
func TestRevertTakesCheckpointsOnly(t *testing.T) {
	for _, name := range []string{"firewall.json", "agent.yaml", "firewall-1.json.bak"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if was, err := Revert(t.Context(), path); was || err == nil {
			t.Errorf("%s: %v, %v", name, was, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzFirewall(f *testing.F) {
	for _, r := range everyRule {
		f.Add(nftables.NewRule(exprs(r)).Exprs, []byte("\x00\x14continuo: kiosk/fw\x00"))
	}
	f.Fuzz(func(t *testing.T, rule, comment []byte) {
		r := ruleOf(nftables.Rule{Exprs: rule})
		if r.Foreign == "" && !reflect.DeepEqual(ruleOf(nftables.NewRule(exprs(r))), r) {
			t.Errorf("%s is read back as another one", r)
		}
		if len(r.String()) > 400 {
			t.Errorf("%d bytes about one rule", len(r.String()))
		}
		if m := commented(comment); len(m) > 255 {
			t.Errorf("a mark of %d bytes", len(m))
		}
	})
}
