package score_test

import (
	"encoding"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// parse reads texts as values of a text type.
func parse[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](t testing.TB, texts ...string) (out []T) {
	t.Helper()
	for _, s := range texts {
		var v T
		if err := P(&v).UnmarshalText([]byte(s)); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func TestMode(t *testing.T) { // cases 1, X95
	for in, want := range map[string]score.Mode{"0644": 0o644, "644": 0o644, "4755": 0o4755, "04755": 0o4755, "0000": 0, "7777": 0o7777} {
		if got := parse[score.Mode](t, in)[0]; got != want {
			t.Errorf("%q is %v, want %v", in, got, want)
		}
	}
	for _, in := range []string{"", "0", "64", "0o644", "0x1a4", "0888", "-644", "+644", "0_644", " 0644", "10000", "17777", "000644", "u=rw"} {
		var m score.Mode
		err := m.UnmarshalText([]byte(in))
		if want := `want octal text such as "0644"`; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v", in, m, err)
		}
	}
	if got := score.Mode(0o4755).String() + score.Mode(0o644).String(); got != "47550644" {
		t.Errorf("got %s", got)
	}
}

func TestDuration(t *testing.T) { // cases 20
	for in, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "0s": 0, "10ms": 10 * time.Millisecond} {
		if got := parse[score.Duration](t, in)[0]; time.Duration(got) != want {
			t.Errorf("%q is %v, want %v", in, got, want)
		}
	}
	for _, in := range []string{"", "0", "90", "-1s", "+1s", "1 s", ".5s", "5.s", "1d", "99999999999h", "s"} {
		var d score.Duration
		if err := d.UnmarshalText([]byte(in)); err == nil || !strings.Contains(err.Error(), `want text such as "90s"`) {
			t.Errorf("%q: got %v, %v", in, d, err)
		}
	}
}

func TestPortSpellings(t *testing.T) { // cases 73
	tests := []struct{ in, canonical string }{
		{"8080:80", "8080:80"}, {"0.0.0.0:8080:80/tcp", "8080:80"}, {"08080:080", "8080:80"}, {"8080-8080:80", "8080:80"},
		{"127.0.0.1:6001:80", "127.0.0.1:6001:80"}, {"8080:80/udp", "8080:80/udp"},
		{"5000-5003:5000-5003/udp", "5000-5003:5000-5003/udp"}, {"[::1]:8080:80", "[::1]:8080:80"},
		{"[0:0:0:0:0:0:0:1]:8080:80", "[::1]:8080:80"}, {"[::]:8080:80", "[::]:8080:80"},
	}
	for _, tt := range tests {
		if got := parse[score.Port](t, tt.in)[0].String(); got != tt.canonical {
			t.Errorf("%q is %q, want %q", tt.in, got, tt.canonical)
		}
	}
	for _, in := range []string{"", "80", "8080", ":80", "8080:", "a:b", "99999:1", "8080:80/sctp", "8080:80/TCP", "5000-5003:5000-5001", "5003-5000:1-4",
		"localhost:8080:80", "1.2.3:8080:80", "::1:8080:80", "8080:80/udp\n", "8080 :80"} {
		var p score.Port
		if err := p.UnmarshalText([]byte(in)); err == nil || !strings.Contains(err.Error(), `want "8080:80", "127.0.0.1:8080:80" or "5000-5003:5000-5003/udp"`) {
			t.Errorf("%q: got %v, %v", in, p, err)
		}
	}
}

func TestVolumeSpellings(t *testing.T) {
	for in, want := range map[string]string{"/srv/web:/data": "/srv/web:/data", "/srv/web:/data:rw": "/srv/web:/data", "cache:/c:ro": "cache:/c:ro"} {
		if got := parse[score.Volume](t, in)[0].String(); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"", "/data", ":/data", "a:b", "a:/b:z", "a:/b:ro:rw", "a:/b:"} {
		var v score.Volume
		if err := v.UnmarshalText([]byte(in)); err == nil || !strings.Contains(err.Error(), `want "/srv/web:/data"`) {
			t.Errorf("%q: got %v, %v", in, v, err)
		}
	}
}

// fuzzText checks that any text is refused or read, without a panic; that what is read
// has the shape that the schema asks for; and that a value survives its own text.
func fuzzText[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](f *testing.F, pattern string, seeds ...string) {
	re := regexp.MustCompile(pattern)
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		var v, again T
		if P(&v).UnmarshalText([]byte(in)) != nil {
			if !reflect.ValueOf(v).IsZero() {
				t.Errorf("%q is refused, and has set %v", in, v)
			}
			return
		}
		if !re.MatchString(in) {
			t.Errorf("%q is read, and the schema refuses it", in)
		}
		out, err := any(v).(encoding.TextMarshaler).MarshalText()
		if err != nil || !re.Match(out) {
			t.Fatalf("%q is written as %q, %v", in, out, err)
		}
		if err := P(&again).UnmarshalText(out); err != nil || !reflect.DeepEqual(again, v) {
			t.Errorf("%q is %+v, and its text %q is %+v, %v", in, v, out, again, err)
		}
	})
}

func FuzzMode(f *testing.F) {
	fuzzText[score.Mode](f, score.ModePattern, "0644", "4755", "00644", "17777", "0o644", "")
}

func TestDurationText(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "1ms": time.Millisecond, "10s": 10 * time.Second, "1m": time.Minute, "10m": 10 * time.Minute, "1m30s": 90 * time.Second,
		"1h": time.Hour, "10h": 10 * time.Hour, "1h0m1s": time.Hour + time.Second, "24h10m": 24*time.Hour + 10*time.Minute, "-2h": -2 * time.Hour,
	} {
		if got := score.Duration(d).String(); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

func FuzzDuration(f *testing.F) {
	fuzzText[score.Duration](f, score.DurationPattern, "90s", "1h30m", "1.5h", "1µs", "1μs", "1ns", "0", "-1s")
}

func FuzzPort(f *testing.F) {
	fuzzText[score.Port](f, score.PortPattern, "8080:80", "[::1]:8080:80", "127.0.0.1:5000-5003:1-4/udp", "0.0.0.0:1:1/tcp", "[192.0.2.4]:1:1", "65535-0:1")
}

func FuzzVolume(f *testing.F) {
	fuzzText[score.Volume](f, score.VolumePattern, "/srv/web:/data:ro", "cache:/c", "a:/b:rw", "a\n:/b")
}
