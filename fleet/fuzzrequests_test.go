package fleet

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Whatever a device writes as requests, each has an id that can be given, of exactly what is shown, or there is an error.
func FuzzDecodeRequests(f *testing.F) {
	d := Device{Site: "main", ID: "pi-1"}
	a := interpret.PlannedAction{Manifest: "m", Score: "s", Action: interpret.ActionDecommission}
	id, err := interpret.RequestID(d.ID, a)
	if err != nil {
		f.Fatal(err)
	}
	good, err := score.Encode(interpret.ApprovalRequests{APIVersion: score.APIVersion, Kind: interpret.RequestsKind, Requests: []interpret.ApprovalRequest{{ID: id, Action: a}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(strings.ReplaceAll(string(good), `"m"`, `"n"`)))
	f.Add([]byte(`{"apiVersion":"continuo/v1","kind":"ApprovalRequests","requests":[{"id":"../x","omitted":1}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := decodeRequests(d, b)
		if err != nil {
			return
		}
		for _, r := range doc.Requests {
			if id, err := interpret.RequestID(d.ID, r.Action); !isRequestID(r.ID) || r.Omitted <= 0 && (err != nil || id != r.ID) {
				t.Fatalf("read %+v", r)
			}
		}
	})
}
