package memory

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

func volumeResource(name string) topology.Resource { return topology.Resource("volume:" + name) }

func containerNetworkResource(name string) topology.Resource {
	return topology.Resource("containerNetwork:" + name)
}

// Volumes of the device.
func (d *Device) Volumes() topology.Volumes { return volumes{d} }

// ContainerNetworks of the device.
func (d *Device) ContainerNetworks() topology.ContainerNetworks { return containerNetworks{d} }

type volumes struct{ d *Device }

func (v volumes) Volume(ctx context.Context, name string) (topology.VolumeState, error) {
	if err := v.d.control.call(ctx, OpVolume, volumeResource(name)); err != nil {
		return topology.VolumeState{}, err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	return v.d.volumes[name], nil
}

func (v volumes) MakeVolume(ctx context.Context, name string, mark topology.Mark) error {
	if err := v.d.control.call(ctx, OpMakeVolume, volumeResource(name)); err != nil {
		return err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	switch st := v.d.volumes[name]; {
	case st.Present && st.Mark != mark:
		return topology.Faultf(topology.CodeForeign, "the volume %s was made by somebody else", name)
	case !st.Present:
		v.d.makeVolume(name, mark)
	}
	return nil
}

func (d *Device) makeVolume(name string, mark topology.Mark) {
	d.volumes[name] = topology.VolumeState{Present: true, Driver: "local", Mountpoint: "/var/lib/containers/storage/volumes/" + name + "/_data", Since: time.Now(), Mark: mark}
	d.changed(volumeResource(name))
}

func (v volumes) RemoveVolume(ctx context.Context, name string) error {
	if err := v.d.control.call(ctx, OpRemoveVolume, volumeResource(name)); err != nil {
		return err
	}
	v.d.mu.Lock()
	defer v.d.mu.Unlock()
	st := v.d.volumes[name]
	users := v.d.attached(func(c topology.ContainerConfig) bool {
		return slices.ContainsFunc(c.Volumes, func(m string) bool { return strings.HasPrefix(m, name+":") })
	})
	switch {
	case st.Present && st.Mark == "":
		return topology.Faultf(topology.CodeForeign, "the volume %s was made by somebody else", name)
	case st.Present && len(users) > 0:
		return topology.Faultf(topology.CodeInUse, "the volume %s is in use: %s", name, strings.Join(users, ", "))
	}
	delete(v.d.volumes, name)
	v.d.changed(volumeResource(name))
	return nil
}

// attached are the containers whose config is such, sorted by name.
func (d *Device) attached(such func(topology.ContainerConfig) bool) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(d.containers)) {
		if c := d.containers[name]; c.state != "absent" && such(c.config) {
			names = append(names, name)
		}
	}
	return names
}

type containerNetworks struct{ d *Device }

func (n containerNetworks) ContainerNetwork(ctx context.Context, name string) (topology.ContainerNetworkState, error) {
	if err := n.d.control.call(ctx, OpContainerNetwork, containerNetworkResource(name)); err != nil {
		return topology.ContainerNetworkState{}, err
	}
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	return n.d.bridges[name], nil
}

func (n containerNetworks) MakeContainerNetwork(ctx context.Context, want topology.ContainerNetwork) error {
	if err := n.d.control.call(ctx, OpMakeContainerNetwork, containerNetworkResource(want.Name)); err != nil {
		return err
	}
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	old := n.d.bridges[want.Name]
	if old.Present && old.Mark == "" {
		return topology.Faultf(topology.CodeForeign, "the network %s was made by somebody else", want.Name)
	}
	if old.Present && old.Spec == want.Spec {
		return nil
	}
	users := n.d.attached(func(c topology.ContainerConfig) bool { return c.Network == want.Name })
	if others := slices.DeleteFunc(slices.Clone(users), func(c string) bool { return n.d.containers[c].config.Mark != "" }); old.Present && len(others) > 0 {
		return topology.Faultf(topology.CodeInUse, "the network %s is in use: %s", want.Name, strings.Join(others, ", "))
	}
	subnets := want.Subnets
	if len(subnets) == 0 {
		subnets = []string{"198.51.100.0/24"}
	}
	n.d.bridges[want.Name] = topology.ContainerNetworkState{
		Present: true, Subnets: subnets, Internal: want.Internal, IPv6: want.IPv6, DNS: !want.NoDNS, Since: time.Now(), Spec: want.Spec, Mark: want.Mark,
	}
	for _, c := range users { // stopped meanwhile, and started again
		if k := n.d.containers[c]; k.state == "running" {
			u := n.d.unit(unitOf(c))
			n.d.halt(unitOf(c), u)
			n.d.launch(unitOf(c), n.d.load(unitOf(c)), u)
		}
	}
	n.d.changed(containerNetworkResource(want.Name))
	return nil
}

func (n containerNetworks) RemoveContainerNetwork(ctx context.Context, name string) error {
	if err := n.d.control.call(ctx, OpRemoveContainerNetwork, containerNetworkResource(name)); err != nil {
		return err
	}
	n.d.mu.Lock()
	defer n.d.mu.Unlock()
	old := n.d.bridges[name]
	users := n.d.attached(func(c topology.ContainerConfig) bool { return c.Network == name })
	switch {
	case old.Present && old.Mark == "":
		return topology.Faultf(topology.CodeForeign, "the network %s was made by somebody else", name)
	case old.Present && len(users) > 0:
		return topology.Faultf(topology.CodeInUse, "the network %s is in use: %s", name, strings.Join(users, ", "))
	}
	delete(n.d.bridges, name)
	n.d.changed(containerNetworkResource(name))
	return nil
}

// MakeVolumeByHand makes a volume that is no business of the agent.
func (d *Device) MakeVolumeByHand(name string) { d.hands(func() { d.makeVolume(name, "") }) }

// DropVolume removes a volume, whoever made it.
func (d *Device) DropVolume(name string) {
	d.hands(func() { delete(d.volumes, name); d.changed(volumeResource(name)) })
}

// MakeContainerNetworkByHand makes a network that is no business of the agent.
func (d *Device) MakeContainerNetworkByHand(name string) {
	d.hands(func() {
		d.bridges[name] = topology.ContainerNetworkState{Present: true, Subnets: []string{"203.0.113.0/24"}, DNS: true, Since: time.Now()}
		d.changed(containerNetworkResource(name))
	})
}

// AttachByHand runs a container on a network that is no business of the agent.
func (d *Device) AttachByHand(name, image, network string) {
	d.RunByHand(name, image)
	d.hands(func() { d.containers[name].config.Network = network })
}
