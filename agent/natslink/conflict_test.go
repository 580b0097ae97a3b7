package natslink

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// An agent that is told of others under its name holds, or goes on, as the answer says, tells it, and does again what it
// did before when there is only one (case 134). A word that it does not know holds.
func TestToldOfConflict(t *testing.T) {
	r := newRig(t)
	next := r.answerWith(wire.ControlEnvelope{})
	o := r.options()
	o.Serial = "board-1"
	l, h, _ := r.run(o)
	r.report(l, status("instance-1", 1))
	if hb := r.beats(1); hb.Serial != "board-1" || hb.Health != "" {
		t.Errorf("got %+v", hb)
	}
	for _, tt := range []struct {
		word  string
		holds bool
		says  string
	}{
		{wire.ConflictHold, true, "only observes"},
		{wire.ConflictOther, false, "this one goes on"},
		{"a word of a later version", true, "only observes"},
		{"", false, ""},
	} {
		next <- wire.ControlEnvelope{Conflict: tt.word}
		h.until(t, "told "+tt.word, func() bool {
			said := h.problems[CodeConflict]
			return h.control.Blocked == tt.holds && (said == "") == (tt.says == "") && strings.Contains(said, tt.says)
		})
	}
	if hb := r.beats(1); hb.Health != "" {
		t.Errorf("health is %q after it", hb.Health)
	}
}

// Of two that write statuses, the one goes on that the control service says is the device, and it writes over the other
// one's.
func TestTheDeviceGoesOn(t *testing.T) {
	r := newRig(t)
	next := r.answerWith(wire.ControlEnvelope{})
	l, h, _ := r.run(r.options())
	r.report(l, status("instance-1", 1))
	o := r.options()
	o.Instance = "instance-2"
	clone, _, _ := r.run(o)
	r.report(clone, status("instance-2", 1))
	if err := l.Report(t.Context(), status("instance-1", 2)); err == nil {
		t.Fatal("it does not see the other one")
	}
	h.until(t, "blocked", func() bool { return h.control.Blocked })
	next <- wire.ControlEnvelope{Conflict: wire.ConflictOther}
	h.until(t, "going on", func() bool {
		return !h.control.Blocked && strings.Contains(h.problems[CodeConflict], "this one goes on")
	})
	r.report(l, status("instance-1", 3))
	if who, _ := r.sequence(); who != "instance-1/3" {
		t.Errorf("stored is %s", who)
	}
}
