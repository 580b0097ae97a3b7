// Package hostname interprets score.Hostname.
package hostname

import (
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasHost }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	h := t.Host()
	return interpret.Of[score.Hostname, Observed, topology.HostReader, topology.HostWriter](interpreter{}, h, h)
}

// Observed is the actual name of the device.
type Observed struct {
	// Static is the name as it is configured, which holds from boot to boot.
	Static string `json:"static"`
	// Transient is the name that the kernel has now.
	Transient string `json:"transient"`
}

// Exists reports whether a name is configured.
func (o Observed) Exists() bool { return o.Static != "" }

// OwnedBy is always empty: a host name can carry no mark.
func (o Observed) OwnedBy() topology.Mark { return "" }

// Conditions: a configured name is written; it is in force when the kernel has it, too.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Written: new(o.Static != ""), Effective: new(o.Transient == o.Static)}
}

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "name" }

func (interpreter) Observe(ctx context.Context, r topology.HostReader, _ score.Hostname) (Observed, error) {
	st, err := r.Hostname(ctx)
	return Observed{st.Static, st.Transient}, err
}

func (interpreter) Diff(s score.Hostname, o Observed) []interpret.Change {
	switch {
	case o.Static != s.Name:
		return []interpret.Change{{Field: "name", Have: o.Static, Want: s.Name, Effect: interpret.Mutate}}
	case o.Transient != s.Name: // what the kernel has was changed, by hand or by DHCP
		return []interpret.Change{{Field: "transient", Have: o.Transient, Want: s.Name, Effect: interpret.Mutate}}
	}
	return nil
}

func (interpreter) Apply(ctx context.Context, w topology.HostWriter, s score.Hostname, _ interpret.Task) error {
	return w.SetHostname(ctx, s.Name)
}

// RemovalEffect is none: see Remove.
func (interpreter) RemovalEffect(score.Hostname) interpret.Effect { return interpret.Nothing }

// Remove leaves the name as it is: a device always has one, and which one it had before
// is for nobody to restore.
func (interpreter) Remove(context.Context, topology.HostWriter, score.Hostname) error { return nil }
