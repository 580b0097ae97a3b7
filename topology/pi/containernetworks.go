package pi

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// containerNetworks are podman's.
type containerNetworks struct {
	*containers
	known memo[topology.ContainerNetworkState]
}

// A bridge is a network as podman's own API takes and gives it.
type bridge struct {
	Name     string            `json:"name"`
	Driver   string            `json:"driver"`
	Created  string            `json:"created,omitempty"`
	Subnets  []bridgeSubnet    `json:"subnets,omitempty"`
	Internal bool              `json:"internal"`
	IPv6     bool              `json:"ipv6_enabled"`
	DNS      bool              `json:"dns_enabled"`
	Labels   map[string]string `json:"labels,omitempty"`
}

type bridgeSubnet struct {
	Subnet  string `json:"subnet"`
	Gateway string `json:"gateway,omitempty"`
}

func (b *bridge) state() (st topology.ContainerNetworkState) {
	if b == nil {
		return st
	}
	st = topology.ContainerNetworkState{
		Present: true, Internal: b.Internal, IPv6: b.IPv6, DNS: b.DNS, Spec: b.Labels[specLabel], Mark: topology.Mark(b.Labels[ownerLabel]),
	}
	for _, s := range b.Subnets[:min(len(b.Subnets), 16)] {
		st.Subnets = append(st.Subnets, s.Subnet)
	}
	slices.Sort(st.Subnets)
	if t, err := time.Parse(time.RFC3339Nano, b.Created); err == nil {
		st.Since = t
	}
	return st
}

// ContainerNetwork returns the state of a network.
func (n *containerNetworks) ContainerNetwork(ctx context.Context, name string) (topology.ContainerNetworkState, error) {
	if err := n.available(ctx); err != nil {
		return topology.ContainerNetworkState{}, err
	}
	return n.known.of(name, n.maxAge, func() (topology.ContainerNetworkState, error) {
		b, err := n.podman.bridge(ctx, name)
		return b.state(), err
	})
}

// bridge returns a network, or nil.
func (p *podman) bridge(ctx context.Context, name string) (*bridge, error) {
	found := new(bridge)
	err := p.call(ctx, p.limit, request{method: "GET", native: true, path: "/networks/" + name + "/json"}, into(found))
	if notFound(err) || err == nil && found.Name != name { // podman may take the beginning of an id
		return nil, nil
	}
	if err != nil {
		return nil, podmanFault("inspect network "+name, err)
	}
	return found, nil
}

func (p *podman) makeBridge(ctx context.Context, b bridge) error {
	b.Created = ""
	if err := p.call(ctx, p.limit, request{method: "POST", native: true, path: "/networks/create", body: b}, nil); err != nil {
		return podmanFault("make network "+b.Name, err)
	}
	return nil
}

func (p *podman) removeBridge(ctx context.Context, name string) error {
	err := p.call(ctx, removeTimeout, request{method: "DELETE", native: true, path: "/networks/" + name}, nil)
	if err != nil && !notFound(err) {
		return podmanFault("remove network "+name, err)
	}
	return nil
}

// attached are the containers that have a network, running or not: ours, and those of others.
func (p *podman) attached(ctx context.Context, name string) (ours, others []string, err error) {
	filter, err := json.Marshal(map[string][]string{"network": {name}})
	if err != nil {
		return nil, nil, topology.FaultOf(err)
	}
	var all []struct {
		Names  []string
		Labels map[string]string
	}
	err = p.call(ctx, p.limit, request{method: "GET", path: "/containers/json", query: url.Values{"all": {"1"}, "filters": {string(filter)}}}, into(&all))
	if err != nil {
		return nil, nil, podmanFault("list the containers of network "+name, err)
	}
	for _, c := range all {
		of := strings.TrimPrefix(strings.Join(c.Names, " "), "/")
		if c.Labels[ownerLabel] != "" {
			ours = append(ours, of)
		} else {
			others = append(others, of)
		}
	}
	slices.Sort(ours)
	slices.Sort(others)
	return ours, others, nil
}

// MakeContainerNetwork makes a network, or makes it anew.
func (n *containerNetworks) MakeContainerNetwork(ctx context.Context, want topology.ContainerNetwork) error {
	if want.Mark == "" {
		return topology.Faultf(topology.CodeInvalid, "network %s needs a mark: without one it would be foreign", want.Name)
	}
	if err := n.available(ctx); err != nil {
		return err
	}
	defer n.known.forget(want.Name)
	made := bridge{
		Name: want.Name, Driver: "bridge", Internal: want.Internal, IPv6: want.IPv6, DNS: !want.NoDNS,
		Labels: map[string]string{ownerLabel: string(want.Mark), specLabel: want.Spec},
	}
	for i, s := range want.Subnets {
		made.Subnets = append(made.Subnets, bridgeSubnet{s, want.Gateways[i]})
	}
	old, err := n.podman.bridge(ctx, want.Name)
	switch is := old.state(); {
	case err != nil:
		return err
	case old == nil:
		return n.podman.makeBridge(ctx, made)
	case is.Mark == "":
		return foreignNetwork(want.Name)
	case is.Spec == want.Spec:
		return nil
	}
	ours, others, err := n.podman.attached(ctx, want.Name)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return topology.Faultf(topology.CodeInUse, "the network %s has to be made anew, and containers of somebody else are attached to it: %s; detach or remove them", want.Name, strings.Join(others, ", "))
	}
	return n.replace(ctx, *old, made, ours)
}

// replace stops the containers of a network while it is made anew. What fails brings the old
// network back, so that they can start again.
func (n *containerNetworks) replace(ctx context.Context, old, made bridge, ours []string) error {
	var err error
	stopped := 0
	for _, c := range ours {
		if err = n.services.Stop(ctx, unitOf(c)); err != nil {
			break
		}
		stopped++
	}
	if err == nil {
		err = n.podman.removeBridge(ctx, old.Name)
	}
	if err == nil {
		if err = n.podman.makeBridge(ctx, made); err != nil {
			if back := n.podman.makeBridge(ctx, old); back != nil {
				err = topology.Faultf(topology.FaultOf(err).Code, "%v; and the network as it was cannot be brought back: %v", err, back)
			}
		}
	}
	for _, c := range ours[:stopped] {
		n.forgetLook(c)
		if started := n.services.Start(ctx, unitOf(c), true); started != nil && err == nil {
			err = started
		}
	}
	return err
}

func foreignNetwork(name string) error {
	return topology.Faultf(topology.CodeForeign, "the network %s was made by somebody else; remove it, or choose another name", name)
}

// RemoveContainerNetwork removes a network that nothing is attached to.
func (n *containerNetworks) RemoveContainerNetwork(ctx context.Context, name string) error {
	if err := n.available(ctx); err != nil {
		return err
	}
	defer n.known.forget(name)
	old, err := n.podman.bridge(ctx, name)
	switch is := old.state(); {
	case err != nil || old == nil:
		return err
	case is.Mark == "":
		return foreignNetwork(name)
	}
	ours, others, err := n.podman.attached(ctx, name)
	if err != nil {
		return err
	}
	if users := slices.Concat(ours, others); len(users) > 0 {
		return topology.Faultf(topology.CodeInUse, "the network %s stays, because containers are attached to it: %s", name, strings.Join(users, ", "))
	}
	return n.podman.removeBridge(ctx, name)
}
