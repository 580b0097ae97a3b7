package pi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// networkdContent is a .network file of ours. Its first lines say what it was made from, and the
// digest of the rest: a file that somebody edited is read back as another one.
type networkdContent struct {
	Config  topology.ConnectionConfig `json:"config"`
	Mark    topology.Mark             `json:"mark"`
	Removed bool                      `json:"removed,omitempty"` // while that is tried
	Digest  string                    `json:"digest,omitempty"`

	text string
}

const networkdHead = "# continuo: "

// networkdRank sorts higher priorities first.
func networkdRank(priority int32) string { return fmt.Sprintf("%04d", 1000-priority) }

func (f networkdContent) render() []byte {
	body := networkdBody(f.Config, f.Removed)
	sum := sha256.Sum256([]byte(body))
	f.Digest = hex.EncodeToString(sum[:])
	head, err := json.Marshal(f)
	if err != nil {
		panic("pi: a connection is not data: " + err.Error())
	}
	return []byte("# Written by continuo-agent. What is edited here is taken back.\n" + networkdHead + string(head) + "\n" + body)
}

// networkdParse reads a file back. One that is no longer what was written has a configuration
// that no score asks for.
func networkdParse(text []byte) (f networkdContent) {
	_, rest, _ := strings.Cut(string(text), "\n")
	head, body, _ := strings.Cut(rest, "\n")
	said, ok := strings.CutPrefix(head, networkdHead)
	sum := sha256.Sum256([]byte(body))
	if !ok || json.Unmarshal([]byte(said), &f) != nil || f.Digest != hex.EncodeToString(sum[:]) {
		f.Config.IPv4, f.Config.IPv6 = topology.IPConfig{Method: "edited by hand"}, topology.IPConfig{Method: "edited by hand"}
	}
	f.text = string(text)
	return f
}

// networkdBody writes a connection as systemd.network(5) has it.
func networkdBody(c topology.ConnectionConfig, removed bool) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("[Match]")
	if c.Interface != "" {
		line("Name=%s", c.Interface)
	}
	if c.MAC != "" {
		line("PermanentMACAddress=%s", c.MAC)
	}
	if removed {
		line("[Network]\nDescription=nothing while the removal of a connection is tried\nDHCP=no\nLinkLocalAddressing=no\nIPv6AcceptRA=no")
		return b.String()
	}
	if c.MTU != 0 {
		line("[Link]\nMTUBytes=%d", c.MTU)
	}
	line("[Network]\nDescription=%s", strings.ReplaceAll(c.Name, "%", "%%"))
	on := func(yes bool) string {
		if yes {
			return "yes"
		}
		return "no"
	}
	dhcp, local := "no", "no"
	if c.IPv4.Method == "auto" {
		dhcp = "ipv4"
	}
	four, six := c.IPv4.Method == "link-local", c.IPv6.Method != "disabled"
	switch {
	case four && six:
		local = "yes"
	case four:
		local = "ipv4"
	case six:
		local = "ipv6"
	}
	line("DHCP=%s\nLinkLocalAddressing=%s\nIPv6AcceptRA=%s", dhcp, local, on(c.IPv6.Method == "auto"))
	for _, f := range []topology.IPConfig{c.IPv4, c.IPv6} {
		for _, a := range f.Addresses {
			line("Address=%s", a)
		}
		for _, a := range f.DNS {
			line("DNS=%s", a)
		}
		if len(f.Search) > 0 {
			line("Domains=%s", strings.Join(f.Search, " "))
		}
	}
	for _, f := range []topology.IPConfig{c.IPv4, c.IPv6} {
		if f.Gateway.IsValid() {
			line("[Route]\nGateway=%s", f.Gateway)
			if f.Metric != 0 {
				line("Metric=%d", f.Metric)
			}
		}
		for _, r := range f.Routes {
			line("[Route]\nDestination=%s", r.To)
			if r.Via.IsValid() {
				line("Gateway=%s", r.Via)
			}
			if r.Metric != 0 {
				line("Metric=%d", r.Metric)
			}
		}
	}
	if c.IPv4.Metric != 0 {
		line("[DHCPv4]\nRouteMetric=%d", c.IPv4.Metric)
	}
	if c.IPv6.Metric != 0 {
		line("[IPv6AcceptRA]\nRouteMetric=%d", c.IPv6.Metric)
	}
	return b.String()
}
