package conform

import (
	"context"
	"slices"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A VolumeBench is the named volumes and the networks of a container runtime to test.
type VolumeBench struct {
	ContainerBench
	Volumes  topology.Volumes
	Networks topology.ContainerNetworks
	// Free are two subnets that nobody uses.
	Free [2]string
	Made VolumeHands
}

// VolumeHands act on volumes and networks as somebody else.
type VolumeHands interface {
	MakeVolume(name string) error
	DropVolume(name string) error
	MakeNetwork(name string) error
	DropNetwork(name string) error
	// Attach runs a container on a network, without the service manager.
	Attach(name, image, network string, command []string) error
}

// Volumes is the suite of named volumes and of networks of containers.
func Volumes(t *testing.T, bench func(*testing.T) VolumeBench) { suite(t, bench, volumeTests) }

func (b VolumeBench) network(t *testing.T, name string) topology.ContainerNetwork {
	n := topology.ContainerNetwork{Name: b.Prefix + name, Spec: "one", Mark: "m/net", Subnets: []string{b.Free[0]}, Gateways: []string{""}}
	after(t, func(ctx context.Context) { _ = b.Networks.RemoveContainerNetwork(ctx, n.Name) })
	return n
}

func (b VolumeBench) networkState(t *testing.T, name string) topology.ContainerNetworkState {
	t.Helper()
	st, err := b.Networks.ContainerNetwork(t.Context(), name)
	ok(t, err)
	return st
}

var volumeTests = []test[VolumeBench]{
	{"life of a volume", func(t *testing.T, b VolumeBench) {
		name := b.Prefix + "data"
		st, err := b.Volumes.Volume(t.Context(), name)
		ok(t, err)
		equal(t, "present before", st.Present, false)
		ok(t, b.Volumes.RemoveVolume(t.Context(), name))
		after(t, func(context.Context) { _ = b.Made.DropVolume(name) })
		ok(t, b.Volumes.MakeVolume(t.Context(), name, "m/v"))
		first, err := b.Volumes.Volume(t.Context(), name)
		ok(t, err)
		equal(t, "mark", first.Mark, "m/v")
		equal(t, "driver", first.Driver, "local")
		if first.Mountpoint == "" || first.Since.IsZero() {
			t.Errorf("no place or time: %+v", first)
		}
		ok(t, b.Volumes.MakeVolume(t.Context(), name, "m/v"))
		again, err := b.Volumes.Volume(t.Context(), name)
		ok(t, err)
		equal(t, "made twice, its time", again.Since, first.Since)

		c := b.config(t, b.Runs, "uses")
		c.Volumes = []string{name + ":/data"}
		b.run(t, c)
		fails(t, b.Volumes.RemoveVolume(t.Context(), name), topology.CodeInUse)
		ok(t, b.Containers.RemoveContainer(t.Context(), c.Name))
		st, err = b.Volumes.Volume(t.Context(), name)
		ok(t, err)
		equal(t, "present without its container", st.Present, true)
		for range 2 {
			ok(t, b.Volumes.RemoveVolume(t.Context(), name))
		}
		st, err = b.Volumes.Volume(t.Context(), name)
		ok(t, err)
		equal(t, "present after it was removed", st.Present, false)
	}},
	{"volume of somebody else (83)", func(t *testing.T, b VolumeBench) {
		name := b.Prefix + "theirs"
		hands(t, b.Made.MakeVolume(name))
		after(t, func(context.Context) { _ = b.Made.DropVolume(name) })
		fails(t, b.Volumes.MakeVolume(t.Context(), name, "m/v"), topology.CodeForeign)
		fails(t, b.Volumes.RemoveVolume(t.Context(), name), topology.CodeForeign)
		st, err := b.Volumes.Volume(t.Context(), name)
		ok(t, err)
		equal(t, "mark", st.Mark, "")
	}},
	{"life of a network", func(t *testing.T, b VolumeBench) {
		n := b.network(t, "net")
		equal(t, "present before", b.networkState(t, n.Name).Present, false)
		ok(t, b.Networks.MakeContainerNetwork(t.Context(), n))
		first := b.networkState(t, n.Name)
		equal(t, "mark", first.Mark, n.Mark)
		equal(t, "spec", first.Spec, "one")
		equal(t, "name service", first.DNS, true)
		if !slices.Equal(first.Subnets, n.Subnets) || first.Since.IsZero() {
			t.Errorf("made %+v of %+v", first, n)
		}
		ok(t, b.Networks.MakeContainerNetwork(t.Context(), n))
		equal(t, "made twice, its time", b.networkState(t, n.Name).Since, first.Since)

		c := b.config(t, b.Runs, "attached")
		c.Network = n.Name
		before := b.run(t, c)
		fails(t, b.Networks.RemoveContainerNetwork(t.Context(), n.Name), topology.CodeInUse)
		n.Spec, n.Internal, n.Subnets = "two", true, []string{b.Free[1]}
		ok(t, b.Networks.MakeContainerNetwork(t.Context(), n))
		st := b.networkState(t, n.Name)
		equal(t, "spec", st.Spec, "two")
		equal(t, "internal", st.Internal, true)
		if !slices.Equal(st.Subnets, n.Subnets) {
			t.Errorf("subnets are %v, want %v", st.Subnets, n.Subnets)
		}
		now := b.until(t, c.Name, "the container to run on the new network", func(st topology.ContainerState) bool { return st.State == "running" })
		if now.ID == before.ID {
			t.Error("a container is on a network that is gone")
		}

		hands(t, b.Made.Attach(b.Prefix+"hand", b.Runs.Image, n.Name, b.Runs.Command))
		after(t, func(context.Context) { _ = b.Hands.RemoveByHand(b.Prefix + "hand") })
		n.Spec, n.Internal = "three", false
		fails(t, b.Networks.MakeContainerNetwork(t.Context(), n), topology.CodeInUse)
		equal(t, "spec, while somebody else is attached", b.networkState(t, n.Name).Spec, "two")
		equal(t, "container, while somebody else is attached", b.state(t, c.Name).ID, now.ID)
		hands(t, b.Hands.RemoveByHand(b.Prefix+"hand"))
		ok(t, b.Containers.RemoveContainer(t.Context(), c.Name))
		for range 2 {
			ok(t, b.Networks.RemoveContainerNetwork(t.Context(), n.Name))
		}
		equal(t, "present after it was removed", b.networkState(t, n.Name).Present, false)
	}},
	{"network of somebody else (83)", func(t *testing.T, b VolumeBench) {
		n := b.network(t, "foreign")
		hands(t, b.Made.MakeNetwork(n.Name))
		after(t, func(context.Context) { _ = b.Made.DropNetwork(n.Name) })
		fails(t, b.Networks.MakeContainerNetwork(t.Context(), n), topology.CodeForeign)
		fails(t, b.Networks.RemoveContainerNetwork(t.Context(), n.Name), topology.CodeForeign)
		equal(t, "mark", b.networkState(t, n.Name).Mark, "")
	}},
}
