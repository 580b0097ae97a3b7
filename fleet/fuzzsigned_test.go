package fleet

import (
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// Whatever somebody hands over to be signed as well, it is read as what it says that it is, or not at all.
func FuzzReadSigned(f *testing.F) {
	signer, err := nkeys.CreateAccount()
	if err != nil {
		f.Fatal(err)
	}
	for kind, payload := range map[wire.Kind]string{
		wire.KindDevice:   `{"apiVersion":"continuo/v1","kind":"Assignment","metadata":{"name":"pi-1","generation":1},"spec":{"scores":0,"manifests":[]}}`,
		wire.KindApproval: `{"apiVersion":"continuo/v1","kind":"Operation","id":"one","device":"pi-1","verb":"plan"}`,
	} {
		e, err := wire.SealEnvelope(wire.Statement{Kind: kind, Audience: "main.pi-1", Generation: 1, NotAfter: 2, Media: "x"}, []byte(payload), signer)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(e.Statement, []byte(payload))
	}
	f.Fuzz(func(t *testing.T, statement, payload []byte) {
		s, err := ReadSigned(wire.Envelope{Statement: statement, Payload: payload})
		if err == nil && s.Assignment == nil && s.Operation == nil && s.Root == nil {
			t.Fatalf("read %+v", s)
		}
	})
}
