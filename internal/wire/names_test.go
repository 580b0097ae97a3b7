package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestNames(t *testing.T) { // case 115
	tests := []struct{ name, in, want string }{
		{"plain", "pi-7", ""},
		{"one character", "7", ""},
		{"longest", strings.Repeat("a", 63), ""},
		{"too long", strings.Repeat("a", 64), "1 to 63 of a-z, 0-9 and -"},
		{"empty", "", "1 to 63"},
		{"MAC", "b8:27:eb:01:02:03", "1 to 63"},
		{"at", "pi@home", "1 to 63"},
		{"space", "kitchen pi", "1 to 63"},
		{"umlaut", "küche", "1 to 63"},
		{"dot", "a.b", "1 to 63"},
		{"leading dot", ".x", "1 to 63"},
		{"upper case", "A", "1 to 63"},
		{"slash", "a/b", "1 to 63"},
		{"underscore", "a_b", "1 to 63"},
		{"leading dash", "-a", "neither first nor last"},
		{"trailing dash", "a-", "neither first nor last"},
		{"star", "*", "1 to 63"},
		{"tail wildcard", ">", "1 to 63"},
		{"newline", "a\n", "1 to 63"},
		{"reserved", "all", "reserved"},
		{"reserved hub", "hub", "reserved"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := CheckName("a device id", tt.in)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "cannot use ") {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			for _, d := range []Device{{"main", tt.in}, {tt.in, "pi-1"}} {
				mustPanic(t, "HeartbeatSubject", func() { HeartbeatSubject(d) })
				mustPanic(t, "DeviceKey", func() { DeviceKey(d) })
				mustPanic(t, "DevicePermissions", func() { DevicePermissions(d) })
			}
			mustPanic(t, "ClassKey", func() { ClassKey(tt.in) })
		})
	}
}

func TestParseDevice(t *testing.T) {
	tests := []struct {
		in   string
		want Device
		ok   bool
	}{
		{"pi-1", Device{"main", "pi-1"}, true},
		{"attic.pi-1", Device{"attic", "pi-1"}, true},
		{"a.b.c", Device{}, false},
		{".pi-1", Device{}, false},
		{"attic.", Device{}, false},
		{"", Device{}, false},
	}
	for _, tt := range tests {
		got, err := ParseDevice(tt.in)
		if (err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("%q: got %v, %v", tt.in, got, err)
		}
		if tt.ok {
			if again, err := ParseDevice(got.String()); err != nil || again != got {
				t.Errorf("%q: %v does not survive: %v, %v", tt.in, got, again, err)
			}
		}
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s took a name that is none", what)
		}
	}()
	f()
}

// A device is one text in documents for programs.
func TestDeviceText(t *testing.T) {
	d := Device{Site: "cabin", ID: "pi-7"}
	b, err := json.Marshal(map[Device]Device{d: d})
	if err != nil || string(b) != `{"cabin.pi-7":"cabin.pi-7"}` {
		t.Fatalf("got %s, %v", b, err)
	}
	var back map[Device]Device
	if err := json.Unmarshal(b, &back); err != nil || back[d] != d {
		t.Errorf("got %v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"*.pi":"pi"}`), &back); err == nil {
		t.Error("a wildcard is a site")
	}
}
