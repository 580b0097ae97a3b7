package fleet

import (
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Whatever a device writes as a receipt, it is one of this device with an id that can be shown, or an error.
func FuzzDecodeReceipt(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"continuo/v1","kind":"Receipt","id":"one","device":"other","verb":"plan","result":"done","plan":{"id":"x"}}`))
	f.Add([]byte(`{"apiVersion":"continuo/v1","kind":"Receipt","id":"../one"}`))
	f.Add([]byte(`{"apiVersion":"continuo/v9","kind":"Receipt","id":"one"}`))
	f.Add([]byte("null"))
	d := Device{Site: "main", ID: "pi-1"}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeReceipt(d, b)
		if err != nil {
			return
		}
		if r.Device != d.ID || wire.CheckOperationID(r.ID) != nil || r.APIVersion != score.APIVersion || r.Kind != interpret.ReceiptKind {
			t.Fatalf("read %+v", r)
		}
	})
}

// Whatever is stored as an operation, an id that is read from it can be shown, and what cannot be read is not open.
func FuzzReadQuestion(f *testing.F) {
	payload := []byte(`{"apiVersion":"continuo/v1","kind":"Operation","id":"one","device":"pi-1","verb":"plan"}`)
	f.Add([]byte("CTO1\x00\x05\xdd\xff\xff\xff\xff\x00"))
	signer, err := nkeys.CreateAccount()
	if err != nil {
		f.Fatal(err)
	}
	frame, err := wire.Seal(wire.Statement{Kind: wire.KindApproval, Audience: "main.pi-1", Generation: 1, NotAfter: 2, Media: wire.MediaOperation}, payload, signer)
	if err != nil {
		f.Fatal(err)
	}
	if q, ok := readQuestion(frame); !ok || q.operation.ID != "one" || q.expires != 2 || q.generation != 1 {
		f.Fatalf("got %+v, %v", q, ok)
	}
	f.Add(frame)
	f.Fuzz(func(t *testing.T, b []byte) {
		q, ok := readQuestion(b)
		if (q.expires != 0 || q.operation.ID != "") && (!ok || wire.CheckOperationID(q.operation.ID) != nil) {
			t.Fatalf("read %+v, %v", q, ok)
		}
	})
}
