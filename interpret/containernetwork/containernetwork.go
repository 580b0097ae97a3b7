// Package containernetwork interprets score.ContainerNetwork. As of a container, a digest of
// the wish is kept on the network and compared; what the runtime chose by itself is reported.
package containernetwork

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasContainerNetworks }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	n := t.ContainerNetworks()
	return interpret.Of[score.ContainerNetwork, Observed, topology.ContainerNetworkReader, topology.ContainerNetworkWriter](interpreter{}, n, n)
}

// Observed is the actual state of one network.
type Observed struct {
	// Present is true if there is a network of that name.
	Present bool `json:"present"`
	// Subnets that it has.
	Subnets []string `json:"subnets,omitempty"`
	// Internal is true if there is no way out of the device.
	Internal bool `json:"internal,omitempty"`
	// IPv6 is true if containers get IPv6 addresses.
	IPv6 bool `json:"ipv6,omitempty"`
	// DNS is true if containers find each other by name.
	DNS bool `json:"dns,omitempty"`
	// Since is when it was made, on the device's clock.
	Since time.Time `json:"since,omitzero"`
	// SpecDigest is the digest of what the network was made from.
	SpecDigest string `json:"specDigest,omitempty"`

	mark topology.Mark
}

// Exists reports whether the network is there.
func (o Observed) Exists() bool { return o.Present }

// OwnedBy returns the mark of the network.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: containers can be attached to a network that is there.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Effective: new(o.Present)}
}

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "name" }

func (interpreter) Observe(ctx context.Context, r topology.ContainerNetworkReader, s score.ContainerNetwork) (Observed, error) {
	st, err := r.ContainerNetwork(ctx, s.Name)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{st.Present, st.Subnets, st.Internal, st.IPv6, st.DNS, st.Since, st.Spec, st.Mark}
	if o.Present && o.mark == "" {
		return o, topology.Faultf(topology.CodeForeign, "the network %s is there and was made by somebody else; containers can use it as it is: leave it out of the scores, or remove it, or give this one another name", s.Name)
	}
	return o, nil
}

func (interpreter) Diff(s score.ContainerNetwork, o Observed) []interpret.Change {
	if !o.Present {
		return []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}
	}
	want := network(s, "")
	if o.SpecDigest == want.Spec {
		return nil
	}
	var out []interpret.Change
	differ := func(field, have, want string) {
		if have != want {
			out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Disrupt})
		}
	}
	if len(want.Subnets) > 0 { // said for people; the digest decides
		differ("subnets", strings.Join(o.Subnets, ", "), strings.Join(want.Subnets, ", "))
	}
	differ("internal", fmt.Sprint(o.Internal), fmt.Sprint(want.Internal))
	differ("ipv6", fmt.Sprint(o.IPv6), fmt.Sprint(want.IPv6))
	differ("noDNS", fmt.Sprint(!o.DNS), fmt.Sprint(want.NoDNS))
	differ("spec", o.SpecDigest, want.Spec)
	return out
}

func (interpreter) Apply(ctx context.Context, w topology.ContainerNetworkWriter, s score.ContainerNetwork, t interpret.Task) error {
	return w.MakeContainerNetwork(ctx, network(s, t.Mark))
}

// Remove removes the network.
func (interpreter) Remove(ctx context.Context, w topology.ContainerNetworkWriter, last score.ContainerNetwork) error {
	return w.RemoveContainerNetwork(ctx, last.Name)
}

// network is the canonical form of s.
func network(s score.ContainerNetwork, mark topology.Mark) topology.ContainerNetwork {
	subnets := slices.Clone(s.Subnets)
	slices.SortFunc(subnets, func(a, b score.Subnet) int { return strings.Compare(a.Subnet, b.Subnet) })
	n := topology.ContainerNetwork{Name: s.Name, Internal: s.Internal, IPv6: s.IPv6, NoDNS: s.NoDNS, Mark: mark}
	for _, sub := range subnets {
		n.Subnets, n.Gateways = append(n.Subnets, sub.Subnet), append(n.Gateways, sub.Gateway)
	}
	s.Subnets = subnets
	b, err := score.Encode(s)
	if err != nil {
		panic(fmt.Sprintf("containernetwork: %q is not data: %v", s.Name, err))
	}
	sum := sha256.Sum256(b)
	n.Spec = hex.EncodeToString(sum[:])
	return n
}
