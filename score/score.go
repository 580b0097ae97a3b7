package score

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An ID names a score inside its manifest. It is stable across generations: it is
// the key under which a device remembers what it owns. The members of a composite
// carry the ID of the composite: "broker/conf" (see Compose).
type ID string

// A Kind says which Spec a score carries. It is the discriminator on the wire.
// A later, incompatible form of a kind is another kind: "file/v2".
type Kind string

// A Spec is the typed body of a score. Implementations are plain structs with json
// tags, passed by value, without any, func, chan or interface fields.
type Spec interface {
	// Kind reports the constant the type is registered under. It is called on the
	// zero value too, so it must not depend on the fields.
	Kind() Kind

	// Check reports what a schema cannot say: relations between fields, names that
	// a device would refuse. Paths are relative to the spec.
	Check(r *Report)

	// Claims names everything on a device that this spec wants to own. No two scores
	// of a device may claim the same resource.
	Claims() []Resource
}

// A Restarter is implemented by specs that are restarted when other scores change.
type Restarter interface {
	// RestartTriggers lists the scores whose change restarts this one.
	RestartTriggers() []ID
}

// A Reloader is implemented by specs that read their configuration again when other scores
// change, without a restart. Every Reloader is a Restarter.
type Reloader interface {
	// ReloadTriggers lists the scores whose change reloads this one.
	ReloadTriggers() []ID
}

// A Score is one element of desired state.
type Score struct {
	ID           ID
	After        []ID    // scores that must have converged first; order in a document means nothing
	Decommission bool    // what it describes is to be removed, with its data
	NoSecrets    bool    // what looks like a secret in the spec is none
	Policy       *Policy // can only restrict what the policy of the manifest allows
	Health       *Health
	Engine       *Engine
	Spec         Spec
}

// clone returns a copy that shares nothing mutable with s, except the spec, which is a value.
func (s Score) clone() Score {
	s.After = slices.Clone(s.After)
	if s.Policy != nil {
		s.Policy = new(s.Policy.clone())
	}
	if s.Health != nil {
		s.Health = new(s.Health.clone())
	}
	if s.Engine != nil {
		s.Engine = new(s.Engine.clone())
	}
	return s
}

// Needs lists every score that must have converged before s: After and the triggers.
func (s Score) Needs() []ID {
	restart, reload := s.Triggers()
	if len(restart)+len(reload) == 0 {
		return s.After
	}
	needs := slices.Clone(s.After)
	for _, id := range slices.Concat(restart, reload) {
		if !slices.Contains(needs, id) {
			needs = append(needs, id)
		}
	}
	return needs
}

// Triggers lists the scores whose change restarts s, and those whose change makes it
// read its configuration again.
func (s Score) Triggers() (restart, reload []ID) {
	if r, ok := s.Spec.(Restarter); ok {
		restart = r.RestartTriggers()
	}
	if r, ok := s.Spec.(Reloader); ok {
		reload = r.ReloadTriggers()
	}
	return restart, reload
}

// envelope is the form of a Score in JSON and YAML.
type envelope struct {
	Kind         Kind           `json:"kind"`
	ID           ID             `json:"id"`
	After        []ID           `json:"after,omitempty"`
	Decommission bool           `json:"decommission,omitzero"`
	NoSecrets    bool           `json:"noSecrets,omitzero"`
	Policy       *Policy        `json:"policy,omitempty"`
	Health       *Health        `json:"health,omitempty"`
	Engine       *Engine        `json:"engine,omitempty"`
	Spec         jsontext.Value `json:"spec"`
}

// outgoing is envelope with a spec that is not encoded yet: that is done once, in place.
type outgoing struct {
	Kind         Kind    `json:"kind"`
	ID           ID      `json:"id"`
	After        []ID    `json:"after,omitempty"`
	Decommission bool    `json:"decommission,omitzero"`
	NoSecrets    bool    `json:"noSecrets,omitzero"`
	Policy       *Policy `json:"policy,omitempty"`
	Health       *Health `json:"health,omitempty"`
	Engine       *Engine `json:"engine,omitempty"`
	Spec         Spec    `json:"spec"`
}

// MarshalJSONTo writes s with its kind as discriminator.
func (s Score) MarshalJSONTo(enc *jsontext.Encoder) error {
	if s.Spec == nil {
		return fmt.Errorf("cannot encode score %q: no spec", s.ID)
	}
	err := json.MarshalEncode(enc, outgoing{s.Spec.Kind(), s.ID, s.After, s.Decommission, s.NoSecrets, s.Policy, s.Health, s.Engine, s.Spec})
	if err != nil {
		return fmt.Errorf("cannot encode score %q: %w", s.ID, err)
	}
	return nil
}

// UnmarshalJSONFrom reads what MarshalJSONTo writes. A spec that this build cannot
// read, because it does not know the kind or a field of it, is kept as Opaque, so
// that one new score does not hide the scores around it.
func (s *Score) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var e envelope
	if err := json.UnmarshalDecode(dec, &e); err != nil {
		return err
	}
	if e.Spec == nil {
		return errors.New(`missing field "spec"`)
	}
	*s = Score{e.ID, e.After, e.Decommission, e.NoSecrets, e.Policy, e.Health, e.Engine, decode(e.Kind, e.Spec)}
	return nil
}

// MarshalJSON serves encoding/json.
func (s Score) MarshalJSON() ([]byte, error) { return Encode(s) }

// UnmarshalJSON serves encoding/json.
func (s *Score) UnmarshalJSON(data []byte) error { return Decode(data, s) }

// Opaque is a spec that this build cannot read. Its bytes survive a round trip
// unchanged; a device reports it as unsupported and does not act on it.
type Opaque struct {
	Of   Kind
	Raw  jsontext.Value
	Why  string // empty: the kind is unknown
	Path string // JSON pointer to the field that could not be read
}

// Kind reports the kind found in the document.
func (o Opaque) Kind() Kind { return o.Of }

// Claims is empty: what cannot be read claims nothing.
func (o Opaque) Claims() []Resource { return nil }

// Check reports why the spec could not be read.
func (o Opaque) Check(r *Report) {
	if o.Why == "" {
		r.At("..", "kind").Errorf("unknown kind %q%s", o.Of, didYouMean(string(o.Of), kindNames()))
		return
	}
	(&Report{r.path + o.Path, r.all}).Errorf("%s", o.Why)
}

// MarshalJSON returns the bytes that were read.
func (o Opaque) MarshalJSON() ([]byte, error) { return o.Raw, nil }
