package score

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// APIVersion is the version of the documents of this package.
const APIVersion = "continuo/v1"

// Kinds of documents.
const (
	ManifestKind   = "Manifest"
	AssignmentKind = "Assignment"
)

// Metadata names a document.
type Metadata struct {
	// Name of the document, unique in its fleet: lower-case letters, digits and '-', at most 63.
	Name string `json:"name"`
	// Generation counts the changes of the document. The publisher sets it; it never goes back.
	Generation uint64 `json:"generation,omitzero"`
	// Labels are for people and tools; a device does not act on them.
	Labels map[string]string `json:"labels,omitempty"`
}

// A Manifest is a set of scores with a target and a policy.
type Manifest struct {
	// Version of this document's language: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: Manifest.
	Kind string `json:"kind"`
	// Metadata names the manifest.
	Metadata Metadata `json:"metadata"`
	// Spec is what must be true, and where.
	Spec ManifestSpec `json:"spec"`
	// Extensions carry sections that this version does not act on. The order of their keys and the spelling of
	// their texts and numbers are kept; white space is not.
	Extensions map[string]jsontext.Value `json:"extensions,omitempty"`
}

// A ManifestSpec is the content of a manifest.
type ManifestSpec struct {
	// Profile names the capabilities that the target devices have. If it is left out, a score that a
	// device cannot have is found only there, and reported as unsupported.
	Profile string `json:"profile,omitempty"`
	// Target says which devices the manifest is for.
	Target Target `json:"target"`
	// Policy says what the device may do by itself. If it is left out, the preset guarded.
	Policy Policy `json:"policy,omitzero"`
	// AllowExperimental lets the manifest have scores of kinds that are marked experimental: they may change, or go.
	AllowExperimental bool `json:"allowExperimental,omitzero"`
	// Scores are the elements of desired state. Their order means nothing.
	Scores []Score `json:"scores"`
}

// A Target is one device or a class of devices: exactly one field is set.
type Target struct {
	// Device is the id of one device.
	Device string `json:"device,omitempty"`
	// Selector chooses devices by the labels that the fleet's owner signed for them.
	Selector *Selector `json:"selector,omitempty"`
}

// A Selector chooses devices by label; all its requirements must hold.
type Selector struct {
	// MatchLabels are labels that must be equal.
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// MatchExpressions are further requirements.
	MatchExpressions []Requirement `json:"matchExpressions,omitempty"`
}

// A Requirement is one condition on a label.
type Requirement struct {
	// Key of the label.
	Key string `json:"key"`
	// Operator is In, NotIn, Exists or DoesNotExist.
	Operator Operator `json:"operator" jsonschema:"enum=In,enum=NotIn,enum=Exists,enum=DoesNotExist"`
	// Values for In and NotIn.
	Values []string `json:"values,omitempty"`
}

// An Operator relates a label to values.
type Operator string

// Operators.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
)

// Matches reports whether labels meet every requirement of s. As in Kubernetes,
// NotIn and DoesNotExist hold for a label that is absent.
func (s Selector) Matches(labels map[string]string) bool {
	for k, v := range s.MatchLabels {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		got, ok := labels[e.Key]
		in := ok && slices.Contains(e.Values, got)
		if !map[Operator]bool{In: in, NotIn: !in, Exists: ok, DoesNotExist: !ok}[e.Operator] {
			return false
		}
	}
	return true
}

// An Assignment is everything that one device has to make true: what is signed and
// carried to it. The publisher makes it; nobody writes it by hand.
type Assignment struct {
	// Version of this document's language: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: Assignment.
	Kind string `json:"kind"`
	// Metadata names the device and counts the changes of the assignment.
	Metadata Metadata `json:"metadata"`
	// Spec is what the device has to make true.
	Spec AssignmentSpec `json:"spec"`
	// Extensions carry sections that this version does not act on.
	Extensions map[string]jsontext.Value `json:"extensions,omitempty"`
}

// An AssignmentSpec is the content of an assignment.
type AssignmentSpec struct {
	// Complete says that Manifests names every manifest of the device. Without it a manifest or a
	// score that is missing means nothing.
	Complete bool `json:"complete,omitzero"`
	// Scores is how many scores the manifests hold together; a device refuses an assignment that holds another number.
	Scores int `json:"scores"`
	// Labels of the device, as its owner signed them.
	Labels map[string]string `json:"labels,omitempty"`
	// Manifests of the device, each with its own generation.
	Manifests []Manifest `json:"manifests"`
}

// Clone returns a copy of m that shares nothing mutable with it, except specs, which are values.
func (m Manifest) Clone() Manifest {
	m.Metadata.Labels = maps.Clone(m.Metadata.Labels)
	m.Spec.Policy = m.Spec.Policy.clone()
	m.Spec.Scores = slices.Clone(m.Spec.Scores)
	for i := range m.Spec.Scores {
		m.Spec.Scores[i] = m.Spec.Scores[i].clone()
	}
	if m.Spec.Target.Selector != nil {
		m.Spec.Target.Selector = new(m.Spec.Target.Selector.clone())
	}
	m.Extensions = maps.Clone(m.Extensions)
	for name, section := range m.Extensions {
		m.Extensions[name] = section.Clone()
	}
	return m
}

func (s Selector) clone() Selector {
	s.MatchLabels = maps.Clone(s.MatchLabels)
	s.MatchExpressions = slices.Clone(s.MatchExpressions)
	for i := range s.MatchExpressions {
		s.MatchExpressions[i].Values = slices.Clone(s.MatchExpressions[i].Values)
	}
	return s
}
