package interpret_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// What is told of a content: its digest if that is no news to anybody, else what only this device can make again (G58).
func TestTell(t *testing.T) {
	const pin = "4711"
	sum := topology.SumOf([]byte(pin))
	tests := []struct {
		name           string
		content        topology.Sum
		public, sealed bool
		stated         topology.Sum
		unstated       bool
		want           string // sha256, keyed or nothing
	}{
		{name: "unknown", want: "nothing"},
		{name: "unknown, and nothing is stated", public: true, want: "nothing"},
		{name: "public", content: sum, public: true, want: "sha256"},
		{name: "private", content: sum, want: "keyed"},
		{name: "private, as stated", content: sum, stated: sum, want: "sha256"},
		{name: "private, and another one is stated", content: sum, stated: topology.SumOf(nil), want: "keyed"},
		{name: "sealed", content: sum, public: true, sealed: true, want: "keyed"},
		{name: "sealed, as stated", content: sum, public: true, sealed: true, stated: sum, want: "sha256"},
		{name: "private, as a backup states", content: sum, stated: sum, unstated: true, want: "keyed"},
		{name: "public, as a backup states", content: sum, public: true, stated: sum, unstated: true, want: "sha256"},
		{name: "sealed, as a backup states", content: sum, public: true, sealed: true, stated: sum, unstated: true, want: "keyed"},
	}
	teller := interpret.TellerOf(memory.New())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			if tt.sealed {
				ctx = interpret.Seal(ctx)
			}
			if tt.unstated {
				ctx = interpret.Unstated(ctx)
			}
			d := teller.Tell(ctx, tt.content, tt.public, tt.stated)
			got := "nothing"
			switch {
			case d.SHA256() == string(sum) && d.Fingerprint() == "" && d.String() == d.SHA256():
				got = "sha256"
			case d.Fingerprint() != "" && d.SHA256() == "" && d.String() == interpret.Keyed+d.Fingerprint():
				got = "keyed"
			case d != interpret.Digest{} || d.String() != "":
				t.Fatalf("got %v", d)
			}
			if got != tt.want {
				t.Errorf("told is %s, want %s", got, tt.want)
			}
			if got == "keyed" && strings.Contains(d.String(), string(sum[:8])) {
				t.Errorf("%s holds the digest", d)
			}
			if d != teller.Tell(ctx, tt.content, tt.public, tt.stated) {
				t.Error("told is another one the second time")
			}
		})
	}
	if d := interpret.TellerOf("a device without secrets").Tell(t.Context(), sum, false, ""); d.String() != "" && !strings.HasPrefix(d.String(), interpret.Keyed) || d.SHA256() != "" {
		t.Errorf("without a key %v is told", d)
	}
}

// A digest that nobody made up his mind about comes out nowhere.
func TestSumIsNotText(t *testing.T) {
	st := topology.FileState{Type: topology.Regular, SHA256: topology.SumOf([]byte("4711"))}
	hidden := string(st.SHA256[:8])
	for _, said := range []string{fmt.Sprint(st), fmt.Sprintf("%v %+v %s %q", st, st, st.SHA256, st.SHA256)} {
		if strings.Contains(said, hidden) {
			t.Errorf("said is %s", said)
		}
	}
	if b, err := json.Marshal(st); err == nil {
		t.Errorf("encoded as %s", b)
	}
}
