//go:build device

package pi

import (
	"testing"

	"github.com/continuo-fleet/continuo/topology/conform"
)

// podmanMaker makes volumes and networks by hand.
type podmanMaker struct{}

func podmanDo(args ...string) error { _, err := do("podman", args...); return err }

func (podmanMaker) MakeVolume(name string) error  { return podmanDo("volume", "create", name) }
func (podmanMaker) DropVolume(name string) error  { return podmanDo("volume", "rm", "-f", name) }
func (podmanMaker) MakeNetwork(name string) error { return podmanDo("network", "create", name) }
func (podmanMaker) DropNetwork(name string) error { return podmanDo("network", "rm", "-f", name) }
func (podmanMaker) Attach(name, image, network string, command []string) error {
	return podmanDo(append([]string{"run", "-d", "--name", name, "--network", network, image}, command...)...)
}

func TestConformVolumes(t *testing.T) {
	box(t)
	conform.Volumes(t, func(t *testing.T) conform.VolumeBench {
		d := device(t)
		return conform.VolumeBench{
			ContainerBench: containerBench(d, ""), Volumes: d.Volumes(), Networks: d.ContainerNetworks(),
			Free: [2]string{"10.213.201.0/26", "10.213.201.64/26"}, Made: podmanMaker{},
		}
	})
}
