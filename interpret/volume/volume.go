// Package volume interprets score.NamedVolume: that a volume is there and ours. What is in it
// is the business of the containers that use it.
package volume

import (
	"context"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasVolumes }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	v := t.Volumes()
	return interpret.Of[score.NamedVolume, Observed, topology.VolumeReader, topology.VolumeWriter](interpreter{}, v, v)
}

// Observed is the actual state of one volume.
type Observed struct {
	// Present is true if there is a volume of that name.
	Present bool `json:"present"`
	// Driver that keeps its data: local is the storage of the device.
	Driver string `json:"driver,omitempty"`
	// Mountpoint is where its data is on the device.
	Mountpoint string `json:"mountpoint,omitempty"`
	// Since is when it was made, on the device's clock.
	Since time.Time `json:"since,omitzero"`

	mark topology.Mark
}

// Exists reports whether the volume is there.
func (o Observed) Exists() bool { return o.Present }

// OwnedBy returns the mark of the volume.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a volume that is there can be mounted.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Effective: new(o.Present)}
}

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "name" }

func (interpreter) Observe(ctx context.Context, r topology.VolumeReader, s score.NamedVolume) (Observed, error) {
	st, err := r.Volume(ctx, s.Name)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{st.Present, st.Driver, st.Mountpoint, st.Since, st.Mark}
	if o.Present && o.mark == "" {
		return o, topology.Faultf(topology.CodeForeign, "the volume %s is there and was made by somebody else, or by a container that mounted it before it was made; containers can use it as it is: leave it out of the scores, or remove it, or give this one another name", s.Name)
	}
	return o, nil
}

func (interpreter) Diff(_ score.NamedVolume, o Observed) []interpret.Change {
	if o.Present {
		return nil
	}
	return []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}
}

func (interpreter) Apply(ctx context.Context, w topology.VolumeWriter, s score.NamedVolume, t interpret.Task) error {
	return w.MakeVolume(ctx, s.Name, t.Mark)
}

// RemovalEffect: its data goes with it.
func (interpreter) RemovalEffect(score.NamedVolume) interpret.Effect { return interpret.Destroy }

// Remove removes the volume, with its data.
func (interpreter) Remove(ctx context.Context, w topology.VolumeWriter, last score.NamedVolume) error {
	return w.RemoveVolume(ctx, last.Name)
}
