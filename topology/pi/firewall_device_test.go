//go:build device

package pi

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// TestMain makes this program what the timer of a checkpoint runs, and the end of a job, as continuo-agent is on a device.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "revert" {
		if _, err := Revert(context.Background(), os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == "job-ended" {
		if err := JobEnded(context.Background(), os.Args[2], os.Getenv); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// nftAdmin is an administrator with nft.
type nftAdmin struct{ state string }

func nft(lines string) (string, error) {
	file, err := os.CreateTemp("", "nft")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	if _, err := file.WriteString(lines); err != nil {
		return "", err
	}
	defer file.Close()
	return do("nft", "-f", file.Name())
}

func (nftAdmin) AddRule() error {
	_, err := nft("add rule inet continuo input tcp dport 1 counter log prefix \"x\" limit rate 1/second drop comment \"mine\"\n")
	return err
}

func (nftAdmin) Dismantle() error {
	out, err := do("nft", "-a", "list", "chain", "inet", "continuo", "input")
	if err != nil {
		return err
	}
	_, handle, found := strings.Cut(out, `iifname "lo" accept # handle `)
	if !found {
		return nil // it was dismantled before
	}
	handle, _, _ = strings.Cut(handle, "\n")
	_, err = do("nft", "delete", "rule", "inet", "continuo", "input", "handle", handle)
	return err
}

// theirs is what podman's netavark makes, and an administrator of his own.
const theirs = `table inet netavark {
	chain INPUT { type filter hook input priority filter; policy accept; ip saddr 192.0.2.0/24 meta l4proto { tcp, udp } th dport 53 accept; }
	chain FORWARD { type filter hook forward priority filter; policy accept; ct state invalid drop; }
	chain PREROUTING { type nat hook prerouting priority dstnat; policy accept; tcp dport 8080 dnat ip to 192.0.2.2:80; }
	chain POSTROUTING { type nat hook postrouting priority srcnat; policy accept; ip saddr 192.0.2.0/24 masquerade; }
}
table ip filter {
	set office { type ipv4_addr; elements = { 192.0.2.7 }; }
	chain INPUT { type filter hook input priority filter + 5; policy accept; ip saddr @office counter packets 7 bytes 420 accept; }
}
`

func (nftAdmin) Theirs() error {
	_, err := nft(theirs)
	return err
}

// Others is every table but ours, with the numbers that the kernel gave to everything in it.
func (nftAdmin) Others() (string, error) {
	out, err := do("nft", "list", "tables")
	if err != nil {
		return "", err
	}
	all := ""
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) != 3 || words[2] == "continuo" {
			continue
		}
		text, err := do("nft", "-a", "-nn", "list", "table", words[1], words[2])
		if err != nil {
			return "", err
		}
		all += text
	}
	return all, nil
}

func (a nftAdmin) NewProcess(t *testing.T) (topology.Firewall, topology.Recoverer) {
	d, err := Open(t.Context(), Options{State: a.state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d.Firewall(), d
}

func firewallBench(t *testing.T) conform.FirewallBench {
	box(t)
	a := nftAdmin{t.TempDir()}
	fw, rec := a.NewProcess(t)
	events := device(t).Events()
	t.Cleanup(func() {
		_, _ = do("nft", "delete", "table", "inet", "netavark")
		_, _ = do("nft", "delete", "table", "ip", "filter")
		if left, err := os.ReadDir(a.state + "/checkpoints"); err == nil && len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return conform.FirewallBench{Firewall: fw, Recoverer: rec, Events: events, Hands: a}
}

func TestConformFirewall(t *testing.T) {
	conform.Firewall(t, firewallBench)
	if units, err := do("systemctl", "list-units", "--all", "--no-legend", "continuo-firewall-*"); err != nil || units != "" {
		t.Errorf("units that are left: %q, %v", units, err)
	}
}

// What somebody put into our table comes back with a rollback, as it was; what could not come back lets nothing be changed.
func TestFirewallOfOthersInOurs(t *testing.T) {
	b := firewallBench(t)
	t.Cleanup(func() { _, _ = do("nft", "delete", "table", "inet", "continuo") })
	if err := b.Firewall.SetFirewall(t.Context(), topology.FirewallConfig{Rules: everyRule, Mark: "m/fw"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Hands.AddRule(); err != nil {
		t.Fatal(err)
	}
	sh(t, "nft add chain inet continuo more; nft add rule inet continuo more ip saddr 192.0.2.1 reject; nft insert rule inet continuo input iifname eth9 jump more")
	list := func() string { return sh(t, "nft -nn list table inet continuo") }
	before := list()
	cp, err := b.Firewall.CheckpointFirewall(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Firewall.SetFirewall(t.Context(), topology.FirewallConfig{Drop: true}); err != nil {
		t.Fatal(err)
	}
	if err := cp.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now := list(); now != before {
		t.Errorf("it is\n%s\nwas\n%s", now, before)
	}
	sh(t, "nft add set inet continuo s '{ type ipv4_addr; }'")
	_, err = b.Firewall.CheckpointFirewall(t.Context(), time.Minute)
	wantCode(t, err, topology.CodeForeign, "nft delete table")
}
