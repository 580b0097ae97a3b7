package memory_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/topology/conform"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// volumeHands make volumes and networks by hand.
type volumeHands struct{ d *memory.Device }

func (h volumeHands) MakeVolume(name string) error  { h.d.MakeVolumeByHand(name); return nil }
func (h volumeHands) DropVolume(name string) error  { h.d.DropVolume(name); return nil }
func (h volumeHands) MakeNetwork(name string) error { h.d.MakeContainerNetworkByHand(name); return nil }
func (h volumeHands) DropNetwork(string) error      { return nil }
func (h volumeHands) Attach(name, image, network string, _ []string) error {
	h.d.AttachByHand(name, image, network)
	return nil
}

func TestConformVolumes(t *testing.T) {
	conform.Volumes(t, func(*testing.T) conform.VolumeBench {
		d := memory.New()
		return conform.VolumeBench{
			ContainerBench: containerBench(d), Volumes: d.Volumes(), Networks: d.ContainerNetworks(),
			Free: [2]string{"192.0.2.0/26", "192.0.2.64/26"}, Made: volumeHands{d},
		}
	})
}
