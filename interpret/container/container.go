// Package container interprets score.Container.
//
// What a container was made from is not asked of the runtime, which does not give back
// what it was told, and adds what the image and the device say. A digest of the wish is
// kept on the container and compared instead. Which fields differ is told from its
// definition, as long as that is what the digest is of.
//
// What is wanted is a container that runs. The restart policy says what the service
// manager does by itself when it ends: with "never" the container stays down until the
// next pass finds it so, which is drift like any other.
package container

import (
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasContainers }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	c := t.Containers()
	return interpret.Of[score.Container, Observed, topology.ContainerReader, topology.ContainerWriter](interpreter{}, c, c)
}

// Fields of changes.
const (
	fieldPresent    = "present"
	fieldImage      = "image"
	fieldSpec       = "spec" // all that the container is made from
	fieldDefinition = "definition"
	fieldState      = "state"
)

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	if c == topology.CodeImage || c == topology.CodeImageStore {
		return fieldImage
	}
	return "name"
}

func (interpreter) Observe(ctx context.Context, r topology.ContainerReader, s score.Container) (Observed, error) {
	st, err := r.Container(ctx, s.Name)
	if err != nil {
		return Observed{}, err
	}
	o := observed(st)
	switch {
	case o.Exists() && o.mark == "":
		return o, topology.Faultf(topology.CodeForeign, "the container %s is there and was made by somebody else%s; remove it, or give this one another name", s.Name, o.who())
	case st.Unit.Load == topology.Masked:
		return o, topology.Faultf(topology.CodeMasked, "%s.service is masked; an administrator did that, and has to undo it: systemctl unmask %s.service", s.Name, s.Name)
	}
	return o, nil
}

func (interpreter) Diff(s score.Container, o Observed) []interpret.Change {
	if !o.Exists() {
		return []interpret.Change{{Field: fieldPresent, Have: "false", Want: "true", Effect: interpret.Create}}
	}
	var out []interpret.Change
	differ := func(field, have, want string, e interpret.Effect) {
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: e})
	}
	if !o.running() {
		e := interpret.Mutate
		if o.up() { // paused, stopping: what is left of it goes
			e = interpret.Disrupt
		}
		differ(fieldState, o.state(), "running", e)
	}
	if o.State == "absent" {
		return out // only its definition is there, which Run writes anew
	}
	if want := Digest(s); o.SpecDigest != want {
		switch { // said for people; the digest has it as well, and decides
		case o.made != nil:
			out = append(out, differences(*o.made, config(s, ""))...)
		case o.Image != "" && o.Image != s.Image:
			differ(fieldImage, o.Image, s.Image, interpret.Disrupt)
		}
		differ(fieldSpec, o.SpecDigest, want, interpret.Disrupt)
	}
	if !o.Defined {
		differ(fieldDefinition, "absent", "present", interpret.Disrupt)
	}
	return out
}

func (interpreter) Apply(ctx context.Context, w topology.ContainerWriter, s score.Container, t interpret.Task) error {
	if !t.Has(fieldPresent) && !t.Has(fieldSpec) && !t.Has(fieldDefinition) && !t.Has(fieldState) {
		return w.Restart(ctx, s.Name) // asked for by another score only
	}
	if t.Retry {
		// It was tried with the same wish before: whoever starts too often is left alone.
		if st, err := w.Container(ctx, s.Name); err != nil {
			return err
		} else if st.Unit.Result == "start-limit-hit" {
			return topology.Faultf(topology.CodeStartLimit, "the container %s was started too often and failed, last with status %d; it is left alone until its score changes", s.Name, st.Unit.ExitCode)
		}
	}
	if _, err := w.EnsureImage(ctx, s.Image); err != nil { // before anything that runs is touched
		return err
	}
	return w.Run(ctx, config(s, t.Mark))
}

// Remove removes the container and its definition; volumes and images stay.
func (interpreter) Remove(ctx context.Context, w topology.ContainerWriter, last score.Container) error {
	return w.RemoveContainer(ctx, last.Name)
}

// Prefetch fetches the image. A tag that is here already is not asked for again: what
// runs is named by its digest in the status, and a digest in the score pins it.
func (interpreter) Prefetch(ctx context.Context, w topology.ContainerWriter, s score.Container) error {
	_, err := w.EnsureImage(ctx, s.Image)
	return err
}

// Stocked reports an image that is not here.
func (interpreter) Stocked(ctx context.Context, r topology.ContainerReader, s score.Container) error {
	digest, err := r.Image(ctx, s.Image)
	if err == nil && digest == "" {
		err = topology.Faultf(topology.CodeImage, "the image %s is not on this device", s.Image)
	}
	return err
}
