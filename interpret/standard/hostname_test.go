package standard_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/hostname"
	"github.com/continuo-fleet/continuo/score"
)

func TestHostname(t *testing.T) {
	r := newRig(t)
	s := score.Hostname{Name: "kiosk-7"}
	st := r.play(s)
	r.want(st, interpret.Changed, "")
	if o := read[hostname.Observed](t, st); o != (hostname.Observed{Static: "kiosk-7", Transient: "kiosk-7"}) {
		t.Errorf("got %+v", o)
	}
	r.Rename("", "from-dhcp") // the name is written, and not in force
	r.want(r.play(s), interpret.Changed, "")
	r.settled(s)
	r.Rename("changed-by-hand", "")
	r.want(r.play(s), interpret.Changed, "")
	r.settled(s)
}
