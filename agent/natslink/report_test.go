package natslink

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// report reports, and fails the test if it cannot.
func (r *rig) report(l *Link, st interpret.DeviceStatus) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	if err := l.Report(ctx, st); err != nil {
		r.t.Fatal(err)
	}
}

// sequence is the instance and the number of the status that is stored.
func (r *rig) sequence() (who string, revision uint64) {
	r.t.Helper()
	body, revision := r.stored()
	var st interpret.DeviceStatus
	if body == nil {
		return "", revision
	}
	if err := json.Unmarshal(body, &st); err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%s/%d", st.Agent.Instance, st.Agent.Sequence), revision
}

func (r *rig) wantStored(who string, revision uint64) {
	r.t.Helper()
	if got, rev := r.sequence(); got != who || rev != revision {
		r.t.Errorf("stored is %s at revision %d, want %s at %d", got, rev, who, revision)
	}
}

// Reports replace each other by compare-and-set (H34, H16).
func TestReport(t *testing.T) {
	r := newRig(t)
	l, _, _ := r.run(r.options())
	for i := range uint64(3) {
		r.report(l, status("instance-1", i+1))
	}
	r.wantStored("instance-1/3", 3)
}

// An answer that is lost does not make the device write twice, nor take its own report for another's (case 111).
func TestLostAnswer(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers = []string{p.url()}
	o.tune.timeout = 300 * time.Millisecond
	l, h, _ := r.run(o)
	r.report(l, status("instance-1", 1))
	sprung := p.deafen("PUB st.")
	done := make(chan error, 1)
	go func() { done <- l.Report(t.Context(), status("instance-1", 2)) }()
	<-sprung
	for { // until it is stored, the answer being lost
		if who, _ := r.sequence(); who == "instance-1/2" {
			break
		}
	}
	p.hear()
	// A request of which the answer was lost as well may make the first try fail; the agent tries again.
	if err := <-done; err != nil {
		r.report(l, status("instance-1", 2))
	}
	r.wantStored("instance-1/2", 2)
	r.report(l, status("instance-1", 3))
	r.wantStored("instance-1/3", 3)
	h.change(func() {
		if len(h.problems) > 0 {
			t.Errorf("problems %v", h.problems)
		}
	})
}

// A connection that breaks while a report is under way ends the wait for its answer.
func TestConnectionLostWhileReporting(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Servers = []string{p.url()}
	o.tune.timeout = time.Hour
	l, _, _ := r.run(o)
	r.report(l, status("instance-1", 1))
	sprung := p.deafen("PUB st.")
	done := make(chan error, 1)
	go func() { done <- l.Report(t.Context(), status("instance-1", 2)) }()
	<-sprung
	p.cut()
	p.hear()
	select {
	case err := <-done:
		if err == nil {
			t.Error("a report without an answer is taken for stored")
		}
	case <-time.After(patience):
		t.Fatal("it waits for an answer on a connection that is gone")
	}
	r.report(l, status("instance-1", 3))
	if who, _ := r.sequence(); who != "instance-1/3" {
		t.Errorf("stored is %s", who)
	}
}

// A boot and a restart of the agent take over; of two agents at once the first one gives way, says so and changes
// nothing any more (case 134).
func TestTwoDevicesWithOneIdentity(t *testing.T) {
	r := newRig(t)
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope { return &wire.ControlEnvelope{} })
	before, _, stop := r.run(r.options())
	r.report(before, status("instance-1", 5))
	stop()

	o := r.options()
	o.Instance, o.BootID = "instance-2", "boot-2"
	first, h, _ := r.run(o)
	r.report(first, status("instance-2", 1)) // a reboot
	r.report(first, status("instance-2", 2))
	h.change(func() {
		if len(h.problems) > 0 {
			t.Fatalf("a reboot is taken for a clone: %v", h.problems)
		}
	})

	o.Instance, o.BootID = "instance-3", "boot-3"
	clone, ch, _ := r.run(o)
	r.report(clone, status("instance-3", 1))
	if err := first.Report(t.Context(), status("instance-2", 3)); err == nil || !strings.Contains(err.Error(), "another agent reports") {
		t.Errorf("got %v", err)
	}
	h.has(t, CodeConflict)
	h.until(t, "blocked", func() bool { return h.control.Blocked })
	for {
		if hb := r.beats(1); hb.Instance == "instance-2" && hb.Health == string(CodeConflict) {
			break
		}
	}
	r.wantStored("instance-3/1", 4)
	r.report(clone, status("instance-3", 2))
	r.wantStored("instance-3/2", 5)
	ch.change(func() {
		if len(ch.problems) > 0 || ch.control.Blocked {
			t.Errorf("the second one has %v, %+v", ch.problems, ch.control)
		}
	})
}

// A store that was lost and made again gets the last report without anybody asking (H34, case 120).
func TestRebuiltStore(t *testing.T) {
	r := newRig(t)
	l, h, _ := r.run(r.options())
	for i := range uint64(3) {
		r.report(l, status("instance-1", i+1))
	}
	r.srv.Stop()
	r.srv.Wipe()
	r.restart()
	r.online(l)
	if err := l.Report(t.Context(), status("instance-1", 4)); err == nil || !strings.Contains(err.Error(), "continuo setup") {
		t.Errorf("without a store: %v", err)
	}
	r.srv.CreateStreams()
	r.srv.Stop()
	r.restart()
	for {
		if who, _ := r.sequence(); who == "instance-1/4" {
			break
		}
	}
	r.report(l, status("instance-1", 5))
	r.wantStored("instance-1/5", 2)
	h.change(func() {
		if h.problems[CodeConflict] != "" {
			t.Errorf("problems %v", h.problems)
		}
	})
}

// A store that was restored from a backup holds an older report of ours, or of our predecessor: no clone.
func TestRestoredStore(t *testing.T) {
	r := newRig(t)
	p := newProxy(t, r.srv.URL)
	o := r.options()
	o.Instance, o.Servers = "instance-2", []string{p.url()}
	l, h, _ := r.run(o)
	for i := range uint64(9) {
		r.report(l, status("instance-2", i+1))
	}
	p.setDown(true)
	r.srv.Stop()
	r.srv.Wipe()
	r.restart()
	r.srv.CreateStreams()
	body, err := score.Encode(status("instance-1", 77))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.srv.ConnectDevice(pi1).Request(wire.StatusSubject(pi1), body, patience); err != nil {
		t.Fatal(err)
	}
	p.setDown(false)
	r.report(l, status("instance-2", 10))
	if who, _ := r.sequence(); who != "instance-2/10" {
		t.Errorf("stored is %s", who)
	}
	h.change(func() {
		if h.problems[CodeConflict] != "" {
			t.Errorf("problems %v", h.problems)
		}
	})
}

// What the server does not allow is named, at once, and the rest goes on (case 117).
func TestNotPermitted(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.CredsFile = r.srv.Creds(r.srv.DeviceKey(pi10)) // one that may do nothing for pi-1
	o.tune.timeout = patience
	l, h, _ := r.run(o)
	err := l.Report(t.Context(), status("instance-1", 1))
	if err == nil || !strings.Contains(err.Error(), "does not allow this device to publish to getst.main.pi-1") {
		t.Errorf("got %v", err)
	}
	h.until(t, "reported", func() bool {
		said := h.problems[CodeNotPermitted]
		return strings.Contains(said, "the key in credentials.file") && strings.Contains(said, "if it is that of main.pi-1, correct its permissions")
	})
	h.change(func() { // subscriptions were denied before
		if n := h.reports[CodeNotPermitted]; n != 1 {
			t.Errorf("it is told %d times", n)
		}
	})
	if body, _ := r.stored(); body != nil {
		t.Error("another device's status was written")
	}
}

// A key that the server does not know is said, and tried again for ever: the operator adds it, and nothing is restarted.
func TestKeyUnknownToServer(t *testing.T) {
	r := newRig(t, pi10)
	o := Options{Servers: []string{r.srv.URL}, Device: pi1, Instance: "i", Trust: TrustKeys(trustIn(t, wire.KindDevice, r.operator), wire.KeySet{}, wire.KeySet{}), tune: tuning{heartbeat: time.Hour}}
	var err error
	if o.Seed, err = natstest.UserKey(t).Seed(); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, r.srv.URL)
	o.Servers = []string{p.url()}
	_, h, _ := r.run(o)
	h.has(t, CodeLink)
	for deadline := time.Now().Add(patience); p.connects() < 5; { // the library's own limit is two
		if time.Now().After(deadline) {
			t.Fatalf("gave up after %d attempts", p.connects())
		}
		runtime.Gosched()
	}
}

// A status that is too large loses details and keeps what decides, and says so (case 114).
func TestShortenedReport(t *testing.T) {
	big := func(scores int, detail string) interpret.DeviceStatus {
		st := status("instance-1", 1)
		m := interpret.ManifestStatus{Name: "kiosk", Generation: 1, State: interpret.StatePartial}
		for i := range scores {
			s := interpret.ScoreStatus{ID: score.ID(fmt.Sprintf("score-%d", i)), Kind: "file", Outcome: interpret.Unchanged, Observed: []byte(`{"present":true}`), Message: detail}
			if i%50 == 7 {
				s.Outcome, s.Code = interpret.Failed, "no_space"
			}
			m.Scores = append(m.Scores, s)
		}
		st.Manifests, st.State = []interpret.ManifestStatus{m}, interpret.StatePartial
		for i := range 50 {
			st.Unmanaged = append(st.Unmanaged, score.Resource(fmt.Sprintf("container:c%d", i)))
		}
		return st
	}
	tests := []struct {
		name         string
		scores       int
		detail       string
		left, failed int
		short        bool
	}{
		{"small", 10, "fine", 10, 1, false},
		{"details of what is well", 300, strings.Repeat("x", 200), 300, 6, true},
		{"all details", 400, strings.Repeat("x", 10_000), 400, 8, true},
		{"what is well", 5000, strings.Repeat("x", 200), 100, 100, true},
		{"most", 100_000, "x", 10, 10, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := big(tt.scores, tt.detail)
			body, err := encodeStatus(in)
			if err != nil {
				t.Fatal(err)
			}
			if len(body) > maxReport {
				t.Errorf("%d bytes", len(body))
			}
			var out interpret.DeviceStatus
			if err := score.Decode(body, &out); err != nil {
				t.Fatal(err)
			}
			failed := 0
			for _, s := range out.Manifests[0].Scores {
				if s.Outcome == interpret.Failed && s.Code == "no_space" {
					failed++
				}
			}
			if len(out.Manifests[0].Scores) != tt.left || failed != tt.failed || out.State != interpret.StatePartial || out.Manifests[0].State != interpret.StatePartial {
				t.Errorf("left %d scores, %d of them failed, state %s", len(out.Manifests[0].Scores), failed, out.State)
			}
			short := len(out.Problems) == 1 && out.Problems[0].Code == CodeShortened
			if short != tt.short || !tt.short && len(out.Problems) > 0 {
				t.Errorf("problems %v", out.Problems)
			}
			if n := len(out.Unmanaged) + int(out.UnmanagedMore); n != 50 || tt.left == 10 && tt.short != (len(out.Unmanaged) == 10) {
				t.Errorf("%d unmanaged are named, %d told of", len(out.Unmanaged), n)
			}
			if len(in.Manifests[0].Scores) != tt.scores || len(in.Unmanaged) != 50 || in.Manifests[0].Scores[0].Message != tt.detail {
				t.Error("the agent's own status was changed")
			}
		})
	}
}

// The largest report that is made can really be stored.
func TestLargestReportIsStored(t *testing.T) {
	r := newRig(t)
	l, _, _ := r.run(r.options())
	st := status("instance-1", 1)
	st.Problems = []interpret.Problem{{Code: "x"}}
	body, err := encodeStatus(st)
	if err != nil {
		t.Fatal(err)
	}
	st.Problems[0].Message = strings.Repeat("m", maxReport-len(body))
	if body, err = encodeStatus(st); err != nil || len(body) != maxReport {
		t.Fatalf("%d bytes, %v", len(body), err)
	}
	r.report(l, st)
	r.wantStored("instance-1/1", 1)
}
