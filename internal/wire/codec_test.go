package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Field types and ranges hold, where the library's own decoding wraps around or takes nil for anything.
func TestDecodeHoldsTypes(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"negative for unsigned", "82a17601a6757074696d65ff", `"uptime": -1 is negative`},
		{"negative in 8 bytes", "82a17601a6757074696d65d3ffffffffffffffff", "negative"},
		{"out of range", "82a17601a770656e64696e67cf0000000100000000", "out of range"},
		{"float for number", "82a17601a6757074696d65cb3ff0000000000000", "not an integer"},
		{"NaN for number", "82a17601a6757074696d65cb7ff8000000000001", "not an integer"},
		{"nil for number", "82a17601a6757074696d65c0", "not an integer"},
		{"text for number", "82a17601a6757074696d65a131", "not an integer"},
		{"number for text", "82a17601a56167656e7401", "not text"},
		{"bytes for text", "82a17601a56167656e74c40161", "not text"},
		{"nil for text", "82a17601a56167656e74c0", "not text"},
		{"text for bytes", "82a17601a56e6f6e6365a161", "not bytes"},
		{"not UTF-8", "82a17601a56167656e74a1ff", "UTF-8"},
		{"no map", "01", "not a map"},
		{"nil", "c0", "not a map"},
		{"array", "9101", "not a map"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := DecodeHeartbeat(unhex(tt.in))
			var r *Refusal
			if !errors.As(err, &r) || r.Code != CodeMalformed || !strings.Contains(r.Detail, tt.want) {
				t.Fatalf("got %+v, %v, want %s", h, err, tt.want)
			}
			if !reflect.DeepEqual(h, Heartbeat{}) {
				t.Errorf("something came with the refusal: %+v", h)
			}
		})
	}
}

// An unknown field of any form is ignored, a missing one is zero, and an integer may be as wide as its writer likes.
func TestDecodeTolerates(t *testing.T) { // S24, S29, H29
	tests := []struct {
		name, in string
		want     Heartbeat
	}{
		{"only the version", "81a17601", Heartbeat{Version: 1}},
		{"wide integer", "81a176d30000000000000001", Heartbeat{Version: 1}},
		{"unknown number", "82a17601a37a7a7a07", Heartbeat{Version: 1}},
		{"unknown map", "82a37a7a7a82a16101a162920102a17601", Heartbeat{Version: 1}},
		{"unknown timestamp", "82a37a7a7ad6ff00000000a17601", Heartbeat{Version: 1}},
		{"other case is another field", "82a17601a54167656e74a178", Heartbeat{Version: 1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeHeartbeat(unhex(tt.in))
			if err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

func TestFieldThatCannotTravelStopsTheProgram(t *testing.T) {
	for _, v := range []any{
		struct{ A any }{}, struct{ A float64 }{}, struct{ A int }{}, struct{ A []string }{}, struct{ A map[string]string }{}, struct{ A *uint64 }{}, struct{ A struct{} }{},
	} {
		mustPanic(t, reflect.TypeOf(v).String(), func() { checkField(reflect.TypeOf(v).Field(0)) })
	}
}
