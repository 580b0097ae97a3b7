package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func heartbeat() Heartbeat {
	return Heartbeat{
		Version: ProtocolVersion, Agent: "0.1.0", Build: "5f3c9a1", Boot: "3f0c2f8e-6f0b-4c52-a4f7-0a4f9b6b6c11", Instance: "b1946ac92492d234",
		Nonce: bytes.Repeat([]byte{1}, 16), Generation: 7, Digest: bytes.Repeat([]byte{2}, 32), Outcome: "pending", Health: "degraded",
		Ledger: "rebuilt", Store: "readonly", Pending: 2, Uptime: 86400, Serial: "10000000c0ffee00",
	}
}

func control() ControlEnvelope {
	return ControlEnvelope{
		Version: ProtocolVersion, Nonce: bytes.Repeat([]byte{1}, 16), Now: UnixSeconds(now), Generation: 8, Digest: bytes.Repeat([]byte{3}, 32), Size: 2048,
		Interval: 60, Poll: 600, Reconnect: 120, Blocked: true, Approvals: 1, Operation: 9, Classes: Generations{"edge": 3, "base": 12, "kiosk": 1},
		Conflict: ConflictHold,
	}
}

func TestHeartbeatComesBack(t *testing.T) { // X13
	for _, want := range []Heartbeat{heartbeat(), {Version: ProtocolVersion}} {
		b, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := DecodeHeartbeat(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// Whatever is put into it, a heartbeat has at most 1 KiB, is UTF-8, and is read by the other side.
func TestHeartbeatStaysSmall(t *testing.T) { // S11
	for _, text := range []string{strings.Repeat("x", 500), strings.Repeat("ü", 500), strings.Repeat("\xff", 500), strings.Repeat("a\xf0", 300)} {
		h := heartbeat()
		v := reflect.ValueOf(&h).Elem()
		for i := range v.NumField() {
			switch f := v.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(text)
			case reflect.Uint64, reflect.Uint32:
				f.SetUint(1<<f.Type().Bits() - 1)
			}
		}
		b, err := h.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeHeartbeat(b)
		if err != nil || len(b) > MaxHeartbeat || !utf8.ValidString(got.Agent) || len(got.Agent) > 64 || len(got.Outcome) > 32 {
			t.Errorf("%d bytes: %+v, %v", len(b), got, err)
		}
	}
	b, err := heartbeat().Encode()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a usual heartbeat has %d bytes", len(b))
	if len(b) > 400 {
		t.Errorf("a usual heartbeat has %d bytes", len(b))
	}
	for _, h := range []Heartbeat{{Nonce: make([]byte, 17)}, {Digest: make([]byte, 33)}} {
		if _, err := h.Encode(); err == nil {
			t.Errorf("%+v was encoded", h)
		}
	}
}

func TestHeartbeatOfAnotherVersion(t *testing.T) { // H29
	b, err := encode(&Heartbeat{Version: ProtocolVersion + 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = DecodeHeartbeat(b)
	wantCode(t, err, CodeUnsupportedVersion)
	_, err = DecodeHeartbeat(unhex("80")) // no version at all
	wantCode(t, err, CodeUnsupportedVersion)
	_, err = DecodeHeartbeat(make([]byte, MaxHeartbeat+1))
	wantCode(t, err, CodeTooLarge)
}

func TestControlEnvelope(t *testing.T) { // S24
	keys := keySet(t, "h", KindHeartbeat)
	b, err := SealControl(control(), dev1, signer(t, 'h'))
	if err != nil {
		t.Fatal(err)
	}
	got, err := OpenControl(b, keys, dev1, control().Nonce)
	if err != nil || !reflect.DeepEqual(got, control()) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if !got.Time().Equal(now) {
		t.Errorf("time %v", got.Time())
	}
	_, err = OpenControl(b, keys, dev2, control().Nonce)
	wantCode(t, err, CodeWrongAudience)
	_, err = OpenControl(b, keys, dev1, []byte("another nonce"))
	wantCode(t, err, CodeWrongAudience)
	_, err = OpenControl(b, keySet(t, "h", KindDevice), dev1, control().Nonce)
	wantCode(t, err, CodeUntrusted)

	// All that may be missing is missing: the defaults.
	b, err = SealControl(ControlEnvelope{}, dev1, signer(t, 'h'))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := OpenControl(b, keys, dev1, nil); err != nil || !reflect.DeepEqual(got, ControlEnvelope{Version: ProtocolVersion}) {
		t.Errorf("got %+v, %v", got, err)
	}

	sealed := func(media string, payload []byte) []byte {
		t.Helper()
		return seal(t, Statement{Kind: KindHeartbeat, Audience: dev1.String(), Generation: 1, Media: media}, payload, "h")
	}
	for name, tt := range map[string]struct {
		in   []byte
		want Code
	}{
		"another major": {sealed(MediaControl, unhex("81a17602")), CodeUnsupportedVersion},
		"another media": {sealed("application/json", unhex("81a17601")), CodeUnsupportedVersion},
		"noise inside":  {sealed(MediaControl, unhex("ddffffffff")), CodeMalformed},
		"huge":          {sealed(MediaControl, make([]byte, maxControl+1)), CodeTooLarge},
	} {
		_, err := OpenControl(tt.in, keys, dev1, nil)
		t.Run(name, func(t *testing.T) { wantCode(t, err, tt.want) })
	}
	if got, err := OpenControl(sealed(MediaControl, unhex("82a6667574757265c3a17601")), keys, dev1, nil); err != nil || got.Version != 1 {
		t.Errorf("an unknown field: %+v, %v", got, err)
	}

	many := ControlEnvelope{Classes: Generations{}}
	for i := range maxClasses + 1 {
		many.Classes[fmt.Sprint("class-", i)] = 1
	}
	if _, err := SealControl(many, dev1, signer(t, 'h')); err == nil {
		t.Error("too many classes were sealed")
	}
	if _, err := SealControl(control(), Device{"*", "pi"}, signer(t, 'h')); err == nil {
		t.Error("sealed for no device")
	}
}

func TestClamp(t *testing.T) { // S24
	for name, tt := range map[string]struct {
		bound Bound
		in    uint32
		want  time.Duration
	}{
		"not said":   {HeartbeatBound, 0, 30 * time.Second},
		"too often":  {HeartbeatBound, 1, 5 * time.Second},
		"lowest":     {HeartbeatBound, 5, 5 * time.Second},
		"between":    {HeartbeatBound, 60, time.Minute},
		"highest":    {HeartbeatBound, 3600, time.Hour},
		"too rarely": {HeartbeatBound, 3601, time.Hour},
		"largest":    {HeartbeatBound, 1<<32 - 1, time.Hour},
		"poll":       {PollBound, 1<<32 - 1, 24 * time.Hour},
		"poll none":  {PollBound, 0, 5 * time.Minute},
		"reconnect":  {ReconnectBound, 0, time.Minute},
	} {
		if got := tt.bound.Clamp(tt.in); got != tt.want {
			t.Errorf("%s: got %s, want %s", name, got, tt.want)
		}
	}
}

func TestParseAnnouncement(t *testing.T) {
	subject := ConfigSubject(DeviceKey(dev1))
	tests := []struct {
		name    string
		subject string
		header  map[string][]string
		want    Announcement
		ok      bool
	}{
		{"as published", subject, Announce(Statement{Generation: 7, Digest: []byte{0xab}}), Announcement{DeviceKey(dev1), 7, "ab", false}, true},
		{"no headers", subject, nil, Announcement{Key: DeviceKey(dev1)}, true},
		{"no number", subject, map[string][]string{HeaderGeneration: {"-1"}}, Announcement{Key: DeviceKey(dev1)}, true},
		{"empty header", subject, map[string][]string{HeaderGeneration: {}}, Announcement{Key: DeviceKey(dev1)}, true},
		{"deleted", subject, map[string][]string{"KV-Operation": {"DEL"}}, Announcement{Key: DeviceKey(dev1), Deleted: true}, true},
		{"purged", subject, map[string][]string{"KV-Operation": {"PURGE"}}, Announcement{Key: DeviceKey(dev1), Deleted: true}, true},
		{"aged out", subject, map[string][]string{"Nats-Marker-Reason": {"MaxAge"}}, Announcement{Key: DeviceKey(dev1), Deleted: true}, true},
		{"no config", "hb.main.pi-1", nil, Announcement{}, false},
		{"no key", "cfg.x.main.pi-1", nil, Announcement{}, false},
	}
	for _, tt := range tests {
		got, ok := ParseAnnouncement(tt.subject, tt.header)
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: got %+v, %v", tt.name, got, ok)
		}
	}
}
