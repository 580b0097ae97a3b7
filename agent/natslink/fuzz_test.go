package natslink

import (
	"testing"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// Whatever is pushed to a device, it is an intent for this device as it was signed, or refused with a code (case 142).
// The corpus is signed as well, so that the fuzzer reaches what comes after the signature.
func FuzzOpen(f *testing.F) {
	operator := newSigner(f)
	keys := trustIn(f, wire.KindDevice, operator)
	good, _ := seal(f, pi1, 3, operator)
	f.Add(good, []byte(`{"apiVersion":"continuo/v1","kind":"Assignment","metadata":{"name":"pi-1","generation":3},"spec":{"scores":0,"manifests":[]}}`))
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, []byte(`{"apiVersion":"continuo/v2"}`))
	f.Add([]byte("CTO1"), []byte("null"))
	f.Add(good[:len(good)-3], []byte(`{"apiVersion":"continuo/v1","metadata":{"name":"pi-1","name":"pi-2"}}`))
	f.Fuzz(func(t *testing.T, frame, payload []byte) {
		signed, err := wire.Seal(wire.Statement{Kind: wire.KindDevice, Audience: pi1.String(), Generation: 3, Media: wire.MediaAssignment}, payload, operator)
		if err != nil {
			signed = nil // too large to be sent
		}
		for _, b := range [][]byte{frame, signed} {
			in, err := TrustKeys(keys, wire.KeySet{}, wire.KeySet{}).Opener(pi1)(b)
			if r := asRefusal(err); (err == nil) != (in.Generation != 0) || err != nil && (r == nil || r.Code == "" || r.Message == "") {
				t.Fatalf("got generation %d, %v", in.Generation, err)
			}
			if err == nil && (in.Assignment.Metadata.Name != pi1.ID || in.Assignment.Metadata.Generation != in.Generation) {
				t.Fatalf("took %+v", in.Assignment.Metadata)
			}
		}
	})
}
