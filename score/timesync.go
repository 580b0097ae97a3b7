package score

import (
	"regexp"
	"slices"
	"strings"
)

func init() {
	Register(Definition[TimeSync]{
		Doc:    "The time servers that the clock of the device follows, and its time zone.",
		Needs:  []Capability{CapTimeSync},
		Sample: TimeSync{Servers: []string{"192.0.2.123", "ntp.example.org"}, Fallback: []string{"pool.ntp.org"}, Timezone: "Europe/Berlin", Enabled: new(true)},
	})
}

// KindTimeSync is the kind of TimeSync.
const KindTimeSync Kind = "timeSync"

// TimeSync is what the clock of the device follows. What is left out is left as it is.
type TimeSync struct {
	// Servers to ask for the time, in this order: names or addresses. They take the place of those that the system has.
	Servers []string `json:"servers,omitempty" effect:"mutate" jsonschema:"example=192.0.2.123,example=ntp.example.org"`
	// Fallback lists servers to ask if there are no others, also none from DHCP.
	Fallback []string `json:"fallback,omitempty" effect:"mutate" jsonschema:"example=pool.ntp.org"`
	// Timezone is a name of the IANA time zone database that the device has.
	Timezone string `json:"timezone,omitempty" effect:"mutate" jsonschema:"maxLength=64,pattern=^[A-Za-z0-9+_-]+(/[A-Za-z0-9+_-]+)*$,example=Europe/Berlin"`
	// Enabled makes the clock follow time servers, now and from boot to boot, or keeps it from that.
	Enabled *bool `json:"enabled,omitempty" effect:"mutate"`
}

// Kind is KindTimeSync.
func (TimeSync) Kind() Kind { return KindTimeSync }

// TimesyncConf is the file that the choice of servers is in.
const TimesyncConf = "/etc/systemd/timesyncd.conf.d/50-continuo.conf"

// Claims is the one clock that a device has, with the unit that sets it and the file that tells it how.
func (t TimeSync) Claims() []Resource {
	out := []Resource{"timeSync"}
	if t.follows() {
		out = append(out, "unit:systemd-timesyncd.service", fileResource(TimesyncConf))
	}
	return out
}

// follows reports whether t says more than the time zone.
func (t TimeSync) follows() bool { return len(t.Servers)+len(t.Fallback) > 0 || t.Enabled != nil }

// AddTimeSync adds the clock to a draft.
func AddTimeSync[P TimeSyncing](d *Draft[P], id ID, t TimeSync) Ref[TimeSync] { return add(d, id, t) }

var (
	zoneRE       = regexp.MustCompile(`^[A-Za-z0-9+_-]+(/[A-Za-z0-9+_-]+)*$`)
	timeServerRE = regexp.MustCompile(`^[A-Za-z0-9:]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9:])?$`)
)

const maxTimeServers = 16

// Check refuses what is no server, and a wish for nothing.
func (t TimeSync) Check(r *Report) {
	if t.Timezone == "" && !t.follows() {
		r.Errorf("it says nothing: give servers, fallback, timezone or enabled")
	}
	if t.Timezone != "" && (len(t.Timezone) > 64 || !zoneRE.MatchString(t.Timezone) || !strings.Contains(t.Timezone, "/") && t.Timezone != "UTC") {
		r.At("timezone").Errorf("timezone %q: want a name of the IANA time zone database, such as Europe/Berlin or Etc/UTC", t.Timezone)
	}
	for _, list := range []struct {
		field   string
		servers []string
	}{{"servers", t.Servers}, {"fallback", t.Fallback}} {
		at := r.At(list.field)
		if len(list.servers) > maxTimeServers {
			at.Errorf("%s lists %d, and may list %d", list.field, len(list.servers), maxTimeServers)
		}
		for i, s := range list.servers {
			switch {
			case !timeServerRE.MatchString(s):
				at.At(i).Errorf("%q is neither a name nor an address of a time server", s)
			case slices.Index(list.servers, s) < i:
				at.At(i).Errorf("%q is listed twice", s)
			}
		}
	}
	if t.Enabled != nil && !*t.Enabled && len(t.Servers)+len(t.Fallback) > 0 {
		r.At("enabled").Warnf("servers have no effect with enabled: false, until something else lets the clock follow them")
	}
}
