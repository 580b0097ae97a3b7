// Package container interprets score.Container.
//
// What a container was made from is not asked of the runtime, which does not give back
// what it was told, and adds what the image and the device say. A digest of the wish is
// kept on the container and compared instead; it covers a keyed digest of each secret, so
// that one that was rotated is another wish. Which fields differ is told from its
// definition, as long as that is what the digest is of.
//
// The restart policy says what the service manager does by itself when a container ends
// that is wanted to run: with "never" it stays down until the next pass finds it so, which
// is drift like any other.
package container

import (
	"context"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasContainers }

// A reader observes containers, and knows secrets.
type reader interface {
	topology.ContainerReader
	topology.Secrets
}

// A writer changes containers, and knows secrets.
type writer interface {
	topology.ContainerWriter
	topology.Secrets
}

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	both := struct {
		topology.Containers
		topology.Secrets
	}{t.Containers(), secretsOf(t)}
	return interpret.Of[score.Container, Observed, reader, writer](interpreter{}, both, both)
}

// Fields of changes.
const (
	fieldPresent    = "present"
	fieldImage      = "image"
	fieldDigest     = "digest" // of the image that its tag stands for
	fieldSpec       = "spec"   // all that the container is made from
	fieldDefinition = "definition"
	fieldInstalled  = "installed" // the container as it was created, against its definition
	fieldState      = "state"
)

var own = []string{fieldPresent, fieldSpec, fieldDefinition, fieldInstalled, fieldState, fieldDigest}

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	switch c {
	case topology.CodeImage, topology.CodeImageStore, topology.CodeImageCheck:
		return fieldImage
	case topology.CodeSecret:
		return "secrets"
	case topology.CodeNotSupported:
		return "limits"
	}
	return "name"
}

func (interpreter) Observe(ctx context.Context, r reader, s score.Container) (Observed, error) {
	st, err := r.Container(ctx, s.Name)
	if err != nil {
		return Observed{}, err
	}
	o := observed(s, st)
	switch {
	case o.Exists() && o.mark == "":
		return o, topology.Faultf(topology.CodeForeign, "the container %s is there and was made by somebody else%s; remove it, or give this one another name", s.Name, o.who())
	case st.Unit.Load == topology.Masked:
		return o, topology.Faultf(topology.CodeMasked, "%s.service is masked; an administrator did that, and has to undo it: systemctl unmask %s.service", s.Name, s.Name)
	}
	o.secrets, err = read(ctx, r, s, false)
	return o, err
}

func (interpreter) Diff(s score.Container, o Observed) []interpret.Change {
	if !o.Exists() {
		return []interpret.Change{{Field: fieldPresent, Have: "false", Want: "true", Effect: interpret.Create}}
	}
	var out []interpret.Change
	differ := func(field, have, want string, e interpret.Effect) {
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: e})
	}
	stopped := s.State == score.Stopped
	switch {
	case stopped && !o.idle():
		differ(fieldState, o.state(), "stopped", interpret.Disrupt)
	case !stopped && !o.running():
		e := interpret.Mutate
		if o.up() { // paused, stopping: what is left of it goes
			e = interpret.Disrupt
		}
		differ(fieldState, o.state(), "running", e)
	}
	if o.State == "absent" && !stopped {
		return out // only its definition is there, which Run writes anew
	}
	want := config(s, o.secrets, "")
	if o.SpecDigest != want.SpecDigest {
		switch { // said for people; the digest has it as well, and decides
		case o.made != nil:
			out = append(out, differences(*o.made, want)...)
		case o.Image != "" && o.Image != s.Image:
			differ(fieldImage, o.Image, s.Image, interpret.Disrupt)
		}
		differ(fieldSpec, o.SpecDigest, want.SpecDigest, interpret.Disrupt)
	} else if len(o.Departs) > 0 {
		differ(fieldInstalled, "other "+strings.Join(o.Departs, ", "), "as defined", interpret.Disrupt)
	}
	if s.Follows() && !stopped && o.Image == s.Image && o.NewestDigest != "" && o.NewestDigest != o.Digest {
		differ(fieldDigest, o.Digest, o.NewestDigest, interpret.Disrupt)
	}
	if !o.Defined {
		differ(fieldDefinition, "absent", "present", interpret.Disrupt)
	}
	return out
}

func (interpreter) Apply(ctx context.Context, w writer, s score.Container, t interpret.Task) error {
	stopped := s.State == score.Stopped
	if !has(t, own) { // asked for by another score only
		switch {
		case stopped:
			return nil // it reads everything when it is started
		case t.Has(interpret.FieldRestart):
			return w.Restart(ctx, s.Name)
		}
		return w.Reload(ctx, s.Name)
	}
	if t.Retry && !stopped {
		// It was tried with the same wish before: whoever starts too often is left alone.
		if st, err := w.Container(ctx, s.Name); err != nil {
			return err
		} else if st.Unit.Result == "start-limit-hit" {
			return topology.Faultf(topology.CodeStartLimit, "the container %s was started too often and failed, last with status %d; it is left alone until its score changes", s.Name, st.Unit.ExitCode)
		}
	}
	have, err := read(ctx, w, s, true)
	if err != nil {
		return err
	}
	c := config(s, have, t.Mark)
	if o, ok := t.Found.(Observed); ok {
		c.Replaces = o.definition
	}
	if !stopped { // before anything that runs is touched; to stop it nothing is fetched
		if err := prepare(ctx, w, s, t); err != nil {
			return err
		}
		c.Login, c.Never = login(ctx, w, s), s.Pull == score.PullNever
	}
	return w.Run(ctx, c)
}

func has(t interpret.Task, fields []string) bool {
	for _, f := range fields {
		if t.Has(f) {
			return true
		}
	}
	return false
}

// Remove removes the container, its secrets and its definition; volumes and images stay.
func (interpreter) Remove(ctx context.Context, w writer, last score.Container) error {
	return w.RemoveContainer(ctx, last.Name)
}
