package score_test

import (
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func TestFirewallCheck(t *testing.T) { // issue 4: bad input
	span := func(first, more uint16) []score.PortSpan { return []score.PortSpan{{First: first, More: more}} }
	ssh := score.Allow{Ports: span(22, 0)}
	from := func(text ...string) []score.Allow { return []score.Allow{{Ports: span(22, 0), From: text}} }
	many := make([]score.PortSpan, 501)
	for i := range many {
		many[i].First = uint16(i + 1)
	}
	tests := []struct {
		name string
		fw   score.Firewall
		want []string
	}{
		{"plain", score.Firewall{Input: "drop", Allow: []score.Allow{ssh}}, nil},
		{"open", score.Firewall{Input: "accept"}, nil},
		{"no input", score.Firewall{Allow: []score.Allow{ssh}}, []string{`error /input: unknown input ""`}},
		{"close to a word", score.Firewall{Input: "dorp", Allow: []score.Allow{ssh}}, []string{`error /input: unknown input "dorp", did you mean "drop"?`}},
		{"no ssh", score.Firewall{Input: "drop", Allow: []score.Allow{{Ports: span(80, 10)}}}, []string{
			"warning /allow: nothing lets in ssh (port 22): who looks after the device by ssh cannot any more",
		}},
		{"ssh by udp", score.Firewall{Input: "drop", Allow: []score.Allow{{Ports: span(22, 0), Protocol: "udp"}}}, []string{
			"warning /allow: nothing lets in ssh (port 22): who looks after the device by ssh cannot any more",
		}},
		{"ssh in a run", score.Firewall{Input: "drop", Allow: []score.Allow{{Ports: span(20, 5)}}}, nil},
		{"ssh by interface", score.Firewall{Input: "drop", Allow: []score.Allow{{Interface: "eth0"}}}, nil},
		{"no effect", score.Firewall{Input: "accept", Allow: []score.Allow{ssh}}, []string{"warning /allow: allow has no effect with input: accept, which lets in everything"}},
		{"everything", score.Firewall{Input: "drop", Allow: []score.Allow{ssh, {Protocol: "udp"}}}, []string{"error /allow/1: it allows everything: give ports, from or an interface, or write input: accept"}},
		{"port 0", score.Firewall{Input: "drop", Allow: []score.Allow{ssh, {Ports: span(0, 0)}}}, []string{"error /allow/1/ports/0: port 0 is out of range: 1 to 65535"}},
		{"port too high", score.Firewall{Input: "drop", Allow: []score.Allow{ssh, {Ports: span(65535, 1)}}}, []string{"error /allow/1/ports/0: port 65535-65536 is out of range: 1 to 65535"}},
		{"protocol", score.Firewall{Input: "drop", Allow: []score.Allow{{Ports: span(22, 0), Protocol: "tpc"}}}, []string{`error /allow/0/protocol: unknown protocol "tpc", did you mean "tcp"?`}},
		{"address", score.Firewall{Input: "drop", Allow: from("192.0.2.1")}, []string{`error /allow/0/from/0: from is "192.0.2.1", an address without a prefix: write 192.0.2.1/32 for this address alone`}},
		{"address 6", score.Firewall{Input: "drop", Allow: from("2001:db8::1")}, []string{`error /allow/0/from/0: from is "2001:db8::1", an address without a prefix: write 2001:db8::1/128 for this address alone`}},
		{"host bits", score.Firewall{Input: "drop", Allow: from("192.0.2.0/24", "192.0.2.9/24")}, []string{`error /allow/0/from/1: from is "192.0.2.9/24", an address inside of the network: write 192.0.2.0/24`}},
		{"spelling", score.Firewall{Input: "drop", Allow: from("2001:DB8::/32")}, []string{`error /allow/0/from/0: from is "2001:DB8::/32": write 2001:db8::/32`}},
		{"mapped", score.Firewall{Input: "drop", Allow: from("::ffff:192.0.2.0/120")}, []string{`error /allow/0/from/0: from is "::ffff:192.0.2.0/120", an IPv4 address written as IPv6: write it as IPv4`}},
		{"name", score.Firewall{Input: "drop", Allow: from("office")}, []string{`error /allow/0/from/0: from is "office": want a network such as 192.0.2.0/24 or 2001:db8::/32`}},
		{"interface", score.Firewall{Input: "drop", Allow: []score.Allow{{Interface: "eth0; drop"}}}, []string{`error /allow/0/interface: interface "eth0; drop" must be letters, digits, '_', '.' and '-', at most 15, such as eth0`}},
		{"too many", score.Firewall{Input: "drop", Allow: []score.Allow{{Ports: many}}}, []string{"error /allow: allow comes to 501 rules, one for each port and network, and may come to 500: name fewer ports and networks, or larger ones"}},
		{"confirm", score.Firewall{Input: "drop", Allow: []score.Allow{ssh}, Confirm: &score.Confirm{Connect: "192.0.2.1"}}, []string{`error /confirm/connect: connect is "192.0.2.1": want a TCP address such as 192.0.2.1:53`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := score.NewReport()
			tt.fw.Check(r)
			var got []string
			for _, p := range r.Problems() {
				got = append(got, string(p.Severity)+" "+p.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestPortSpan(t *testing.T) {
	for text, want := range map[string]string{
		"22": "22", "8000-8010": "8000-8010", "022": "22", "7-7": "7",
		"": "", "-1": "", "1-": "", "2-1": "", "65536": "", "22/tcp": "", "1 -2": "", "+1": "",
	} {
		var p score.PortSpan
		err := p.UnmarshalText([]byte(text))
		if got := p.String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q is read as %s, %v", text, got, err)
		}
	}
}
