package pi

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func TestTimesyncFile(t *testing.T) {
	for _, want := range []topology.TimeServers{
		{}, {Servers: []string{"192.0.2.1"}}, {Fallback: []string{"a.example.org", "2001:db8::1"}}, {Servers: []string{"a", "b"}, Fallback: []string{"c"}},
	} {
		text := timesyncText(want)
		got := readTimesync(text)
		if !slices.Equal(got.Servers, want.Servers) || !slices.Equal(got.Fallback, want.Fallback) {
			t.Errorf("%s\nis read as %+v", text, got)
		}
		for _, edit := range []string{"PollIntervalMaxSec=60\n", "NTP=192.0.2.9\n", "#\n", " "} {
			changed := string(text) + edit
			if again := string(timesyncText(readTimesync([]byte(changed)))); again == changed {
				t.Errorf("%q is taken for ours", changed)
			}
		}
	}
}

func TestTimeOffset(t *testing.T) {
	message := func(change func([]any)) []any {
		m := []any{uint32(0), uint32(4), uint32(4), uint32(2), int32(-20), uint64(1), uint64(1), []byte{1, 2, 3, 4},
			uint64(1_000_000), uint64(3_000_000), uint64(3_000_010), uint64(1_000_020), false, uint64(7), uint64(3)}
		change(m)
		return m
	}
	tests := []struct {
		name    string
		message any
		want    time.Duration
		ok      bool
	}{
		{"two seconds behind", message(func([]any) {}), 1999995 * time.Microsecond, true},
		{"no packet yet", message(func(m []any) { m[ntpPackets] = uint64(0) }), 0, false},
		{"spike", message(func(m []any) { m[ntpSpike] = true }), 0, false},
		{"server that does not know", message(func(m []any) { m[ntpStratum] = uint32(16) }), 0, false},
		{"other types", message(func(m []any) { m[ntpOrigin], m[ntpReceive] = "x", nil }), 999995 * time.Microsecond, true},
		{"absurd", message(func(m []any) { m[ntpReceive] = uint64(1 << 62) }), 1 << 62 / time.Microsecond * time.Microsecond, true},
		{"short", message(func([]any) {})[:10], 0, false},
		{"nothing", nil, 0, false},
		{"text", "x", 0, false},
	}
	for _, tt := range tests {
		d, ok := offset(tt.message)
		if d != tt.want || ok != tt.ok {
			t.Errorf("%s: %s, %v, want %s, %v", tt.name, d, ok, tt.want, tt.ok)
		}
	}
}

func FuzzTimesyncFile(f *testing.F) {
	f.Add([]byte("[Time]\nNTP=a b\n"))
	f.Add(timesyncText(topology.TimeServers{Servers: []string{"a"}, Fallback: []string{"b", "c"}}))
	f.Add([]byte("NTP"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := readTimesync(data)
		text := timesyncText(s)
		if again := readTimesync(text); !slices.Equal(again.Servers, s.Servers) || !slices.Equal(again.Fallback, s.Fallback) {
			t.Errorf("%q is read as %+v", text, again)
		}
		if strings.Count(string(text), "\n") > 6 {
			t.Errorf("a server spans lines: %q", text)
		}
	})
}
