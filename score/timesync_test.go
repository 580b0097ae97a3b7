package score_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func init() {
	freeText["timeSync.servers"] = "names and addresses, of a shape that Check holds"
	freeText["timeSync.fallback"] = freeText["timeSync.servers"]
	freeText["timeSync.timezone"] = "a name, of a shape that Check holds"
}

func TestTimeSyncCheck(t *testing.T) {
	tests := []struct {
		name string
		spec score.TimeSync
		want []string
	}{
		{"all", score.TimeSync{Servers: []string{"192.0.2.1", "ntp.example.org", "2001:db8::1", "::1"}, Fallback: []string{"a"}, Timezone: "America/Argentina/Buenos_Aires", Enabled: new(true)}, nil},
		{"zone", score.TimeSync{Timezone: "Etc/GMT+5"}, nil},
		{"off", score.TimeSync{Enabled: new(false)}, nil},
		{"nothing", score.TimeSync{}, []string{"error : it says nothing: give servers, fallback, timezone or enabled"}},
		{"UTC", score.TimeSync{Timezone: "UTC"}, nil},
		{"abbreviation", score.TimeSync{Timezone: "CEST"}, []string{`error /timezone: timezone "CEST": want a name of the IANA time zone database, such as Europe/Berlin or Etc/UTC`}},
		{"path", score.TimeSync{Timezone: "../../etc/shadow"}, []string{`error /timezone: timezone "../../etc/shadow": want a name of the IANA time zone database, such as Europe/Berlin or Etc/UTC`}},
		{"abbreviation with a space", score.TimeSync{Timezone: "Europe / Berlin"}, []string{`error /timezone: timezone "Europe / Berlin": want a name of the IANA time zone database, such as Europe/Berlin or Etc/UTC`}},
		{"two in one", score.TimeSync{Servers: []string{"a.example.org b.example.org"}}, []string{`error /servers/0: "a.example.org b.example.org" is neither a name nor an address of a time server`}},
		{"line break", score.TimeSync{Fallback: []string{"a\nRootDistanceMaxSec=9"}}, []string{`error /fallback/0: "a\nRootDistanceMaxSec=9" is neither a name nor an address of a time server`}},
		{"empty", score.TimeSync{Servers: []string{""}}, []string{`error /servers/0: "" is neither a name nor an address of a time server`}},
		{"twice", score.TimeSync{Servers: []string{"a", "b", "a"}}, []string{`error /servers/2: "a" is listed twice`}},
		{"many", score.TimeSync{Fallback: strings.Split(strings.Repeat("a ", 17)+"a", " ")[:17]}, nil},
		{"servers and off", score.TimeSync{Servers: []string{"a"}, Enabled: new(false)}, []string{"warning /enabled: servers have no effect with enabled: false, until something else lets the clock follow them"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := score.NewReport()
			tt.spec.Check(r)
			var got []string
			for _, p := range r.Problems() {
				got = append(got, string(p.Severity)+" "+p.String())
			}
			if tt.name == "many" {
				if len(got) == 0 || got[0] != "error /fallback: fallback lists 17, and may list 16" {
					t.Errorf("got %q", got)
				}
				return
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
