package standard_test

import (
	"maps"
	"reflect"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

func init() {
	maps.Copy(others, map[string][]func(reflect.Value){
		"volume.name":               {set("other")},
		"containerNetwork.name":     {set("other")},
		"containerNetwork.subnets":  {set([]score.Subnet(nil)), set([]score.Subnet{{Subnet: "198.51.100.0/24"}})},
		"containerNetwork.internal": {set(true)},
		"containerNetwork.ipv6":     {set(true)},
		"containerNetwork.noDNS":    {set(true)},
	})
}

// What has the name of a volume or a network, and no mark of ours, belongs to somebody else (cases 83).
func TestForeignVolume(t *testing.T) {
	r := newRig(t)
	r.MakeVolumeByHand("cache")
	r.MakeContainerNetworkByHand("kiosk")
	for _, s := range []score.Spec{score.NamedVolume{Name: "cache"}, score.ContainerNetwork{Name: "kiosk"}} {
		rec := r.Record()
		if st := r.play(s); st.Code != interpret.Code(topology.CodeForeign) || len(rec.Mutations()) > 0 {
			t.Errorf("%s %s: %v", st.Outcome, st.Code, rec.Mutations())
		}
	}
}

// A network is made anew under the containers of its owner, and not under those of others.
func TestNetworkInUse(t *testing.T) {
	r := newRig(t)
	n := score.ContainerNetwork{Name: "kiosk"}
	r.want(r.play(n), interpret.Changed, "")
	r.want(r.play(score.Container{Name: "web", Image: moving, Network: "kiosk"}), interpret.Changed, "")
	r.AttachByHand("theirs", moving, "kiosk")
	n.Internal = true
	st := r.play(n)
	r.want(st, interpret.Failed, topology.CodeInUse)
	r.RemoveByHand("theirs")
	st = r.play(n)
	r.want(st, interpret.Changed, "")
	if got := fields(st); len(got) != 2 || got[0] != "internal disrupt" || got[1] != "spec disrupt" {
		t.Errorf("changes: %v", st.Changes)
	}
	r.settled(n)
	r.settled(score.Container{Name: "web", Image: moving, Network: "kiosk"})
}
