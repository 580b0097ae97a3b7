package fleet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// asking is the document of a device that asks for the removal of some files.
func asksFor(t *testing.T, d fleet.Device, files ...string) interpret.ApprovalRequests {
	t.Helper()
	doc := interpret.ApprovalRequests{APIVersion: score.APIVersion, Kind: interpret.RequestsKind, Device: d.ID, Generation: 7}
	for _, f := range files {
		a := interpret.PlannedAction{
			Manifest: "m", Score: score.ID(f), Action: interpret.ActionDecommission, Effect: interpret.Remove, Resources: []score.Resource{score.Resource("file:/etc/" + f)},
			Decision: interpret.DecidePending, Code: interpret.CodeSignature, Changes: []interpret.Change{{Field: "present", Have: "true", Want: "false"}},
		}
		id, err := interpret.RequestID(d.ID, a)
		if err != nil {
			t.Fatal(err)
		}
		doc.Requests = append(doc.Requests, interpret.ApprovalRequest{ID: id, Since: time.Unix(1e9, 0).UTC(), Action: a})
	}
	return doc
}

func (r *rig) writeRequests(d fleet.Device, doc interpret.ApprovalRequests) {
	r.t.Helper()
	b, err := score.Encode(doc)
	if err != nil {
		r.t.Fatal(err)
	}
	r.writeRaw(d, b)
}

func (r *rig) writeRaw(d fleet.Device, b []byte) {
	r.t.Helper()
	nc := r.srv.ConnectDevice(d)
	defer nc.Close()
	if _, err := nc.Request(wire.RequestSubject(d), b, patience); err != nil {
		r.t.Fatal(err)
	}
}

// Requests of all devices are read as they were written last; what is not as a device writes it is said, and none.
func TestRequests(t *testing.T) {
	r := newRig(t, pi1, pi10)
	r.writeRequests(pi10, asksFor(t, pi10, "a"))
	r.writeRequests(pi1, asksFor(t, pi1, "old"))
	doc := asksFor(t, pi1, "b", "a")
	doc.Truncated = 4
	r.writeRequests(pi1, doc)
	all, err := r.Requests(t.Context())
	if err != nil || len(all.Open) != 3 || all.More != 4 || len(all.Unreadable) != 0 {
		t.Fatalf("%+v, %v", all, err)
	}
	if q := all.Open[0]; q.Device != pi1 || q.Action.Score != "b" || q.Generation != 7 || q.ID != doc.Requests[0].ID || q.Since.IsZero() {
		t.Errorf("%+v", q)
	}
	if one, err := r.Requests(t.Context(), pi10); err != nil || len(one.Open) != 1 || one.Open[0].Device != pi10 {
		t.Errorf("%+v, %v", one, err)
	}
	q, err := all.Find(doc.Requests[1].ID[:8])
	if err != nil || q.Action.Score != "a" || q.Device != pi1 {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := all.Find("no"); !errors.Is(err, fleet.ErrNoRequest) {
		t.Error(err)
	}
	twice := fleet.Requests{Open: []fleet.Request{all.Open[0], all.Open[0]}}
	if _, err := twice.Find(all.Open[0].ID); err == nil || !strings.Contains(err.Error(), "more digits") {
		t.Error(err)
	}
	op := fleet.Answer(interpret.VerbApprove, q)
	if a := op.Approvals[0]; op.Device != "pi-1" || op.Plan != "" || a.Request != q.ID || a.Score != "a" || a.Action != interpret.ActionDecommission || a.Effect != interpret.Remove || a.Resources[0] != "file:/etc/a" {
		t.Errorf("%+v", op)
	}

	// Who may write to the store shows nobody an action that the id is not about.
	lie := asksFor(t, pi1, "a")
	lie.Requests[0].Action.Changes[0].Have = "harmless"
	r.writeRequests(pi1, lie)
	if all, err := r.Requests(t.Context()); err != nil || len(all.Open) != 1 || len(all.Unreadable) != 1 || !strings.Contains(all.Unreadable[0], "main.pi-1: ") {
		t.Errorf("%+v, %v", all, err)
	}
	cut := asksFor(t, pi1, "a")
	cut.Requests[0].Action.Changes, cut.Requests[0].Omitted = nil, 1
	r.writeRequests(pi1, cut)
	if all, err := r.Requests(t.Context(), pi1); err != nil || len(all.Open) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, body := range []string{"\xdd\xff", "", strings.Repeat("[", 60_000), `{"apiVersion":"continuo/v1","kind":"Status"}`, `{"apiVersion":"continuo/v1","kind":"ApprovalRequests","requests":[{"id":"x"}]}`} {
		r.writeRaw(pi1, []byte(body))
		if all, err := r.Requests(t.Context(), pi1); err != nil || len(all.Open) != 0 || len(all.Unreadable) != 1 {
			t.Errorf("%.20q: %+v, %v", body, all, err)
		}
	}
}
