// Package trust says whose signatures a fleet counts, and for what.
//
// A [Root] lists the public keys of a fleet with their roles and their scopes. It is signed by root keys, which sign nothing
// else and can be kept in a drawer; each version counts only if enough root keys of the one before signed it. A device
// begins with the version that its owner put on it, follows the chain, and never goes back.
//
// The package opens no connection and reads no file, and both ends use it: what a publisher may not sign, its tool says
// before the device does.
package trust

import (
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// Kind of the document.
const Kind = "TrustRoot"

// A Root is which keys a fleet trusts, and for what.
type Root struct {
	// Version of this document's language: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: TrustRoot.
	Kind string `json:"kind"`
	// Metadata names the fleet and counts the versions.
	Metadata RootMetadata `json:"metadata"`
	// Spec is whom the fleet trusts.
	Spec RootSpec `json:"spec"`
}

// RootMetadata names a version of a trust root.
type RootMetadata struct {
	// Name of the fleet, for people.
	Name string `json:"name"`
	// Version of the trust root, from 1 on, each one more than the one before.
	Version uint64 `json:"version"`
}

// A RootSpec is the content of a trust root.
type RootSpec struct {
	// Keys that count, each once.
	Keys []Key `json:"keys"`
	// Revoked keys, which sign nothing any more. What they signed before stays in force, unless Restart ends it.
	Revoked []string `json:"revoked,omitempty"`
	// Restart is the version of the trust root with which the generations of documents begin anew, after somebody else had
	// the key of a publisher: what was signed under an earlier version counts no more, whatever its generation, and a device
	// changes nothing until something is published again.
	Restart uint64 `json:"restart,omitzero"`
	// Required is how many keys must sign what. If it is left out, one.
	Required Required `json:"required,omitzero"`
}

// A Key is a public key, and what it may sign.
type Key struct {
	// Key is a public key: an account nkey (A…), or the line of an ssh-ed25519 .pub file without its comment.
	Key string `json:"key"`
	// Name of who has the private key, for people and records.
	Name string `json:"name"`
	// Roles of the key: what it may sign. No role is part of another one.
	Roles []Role `json:"roles" jsonschema:"enum=root,enum=publisher,enum=operator,enum=approver,enum=control"`
	// Scope bounds what it may sign. If it is left out, everything of its roles that destroys nothing and runs no shell.
	Scope Scope `json:"scope,omitzero"`
	// NotBefore is when it may sign first.
	NotBefore time.Time `json:"notBefore,omitzero"`
	// NotAfter is when it may sign no more. A delegation has one: whoever stands in for somebody does so for a time.
	NotAfter time.Time `json:"notAfter,omitzero"`
}

// A Role is one thing that a key may sign.
type Role string

// Roles. That of a connection, which says what may be read and written in the store, is another matter.
const (
	RoleRoot      Role = "root"      // trust roots, and nothing else
	RolePublisher Role = "publisher" // what devices should be: documents of devices and of classes, with their labels
	RoleOperator  Role = "operator"  // operations that destroy nothing: plan, install, adopt, release, restore
	RoleApprover  Role = "approver"  // approvals of single actions
	RoleControl   Role = "control"   // answers to heartbeats, which decide nothing
)

// Roles lists the roles.
func Roles() []Role {
	return []Role{RoleRoot, RolePublisher, RoleOperator, RoleApprover, RoleControl}
}

// A Scope bounds what a key may sign. A list that is left out bounds nothing, an empty one allows nothing.
type Scope struct {
	// Devices are patterns of devices, as SITE.ID with * for any run of characters: home.*, main.kiosk-*.
	Devices []string `json:"devices,omitzero"`
	// Classes are patterns of the names of class manifests.
	Classes []string `json:"classes,omitzero"`
	// Kinds are the kinds of scores that manifests may hold.
	Kinds []score.Kind `json:"kinds,omitzero"`
	// Policy is the loosest that the policy of a manifest may be.
	Policy *score.Policy `json:"policy,omitempty"`
	// Destroy lets approvals destroy data that cannot be made again.
	Destroy bool `json:"destroy,omitzero"`
	// Shell lets manifests hold scores of the kind shellJob.
	Shell bool `json:"shell,omitzero"`
}

// Required is how many keys must sign; 0 means 1.
type Required struct {
	// Root keys that must sign the next trust root.
	Root int `json:"root,omitzero"`
	// Documents that say what devices should be need this many publishers.
	Documents int `json:"documents,omitzero"`
	// Operations need this many operators.
	Operations int `json:"operations,omitzero"`
	// Approvals need this many approvers.
	Approvals int `json:"approvals,omitzero"`
}

// Validate reports everything that is wrong with r, beyond the shape of the document.
func (r Root) Validate() []score.Problem {
	rep := score.NewReport()
	if r.APIVersion != score.APIVersion {
		rep.At("apiVersion").Errorf("apiVersion is %q, this version reads %q", r.APIVersion, score.APIVersion)
	}
	if r.Kind != Kind {
		rep.At("kind").Errorf("kind is %q, want %q", r.Kind, Kind)
	}
	if err := wire.CheckName("the name of a fleet", r.Metadata.Name); err != nil {
		rep.At("metadata", "name").Errorf("%s", err)
	}
	if r.Metadata.Version == 0 {
		rep.At("metadata", "version").Errorf("versions count from 1 on")
	}
	seen := map[string]bool{} // fingerprints
	holders := map[Role]int{}
	for i, k := range r.Spec.Keys {
		at := rep.At("spec", "keys", i)
		checkKey(at.At("key"), k.Key, seen)
		k.check(at)
		for _, role := range k.Roles {
			holders[role]++
		}
	}
	for i, k := range r.Spec.Revoked {
		checkKey(rep.At("spec", "revoked", i), k, seen)
	}
	if r.Spec.Restart > r.Metadata.Version {
		rep.At("spec", "restart").Errorf("generations cannot begin anew with version %d, this is version %d", r.Spec.Restart, r.Metadata.Version)
	}
	for role, n := range map[Role]struct {
		field string
		need  int
	}{
		RoleRoot: {"root", r.Spec.Required.Root}, RolePublisher: {"documents", r.Spec.Required.Documents},
		RoleOperator: {"operations", r.Spec.Required.Operations}, RoleApprover: {"approvals", r.Spec.Required.Approvals},
	} {
		at := rep.At("spec", "required", n.field)
		switch have := holders[role]; {
		case n.need < 0 || n.need > wire.MaxSignatures:
			at.Errorf("%d signatures cannot be required: 1 to %d", n.need, wire.MaxSignatures)
		case have < n.need, role == RoleRoot && have == 0:
			at.Errorf("%d keys of role %s must sign, and there are %d: nothing could ever be signed", max(n.need, 1), role, have)
		}
	}
	return rep.Problems()
}

func checkKey(at *score.Report, key string, seen map[string]bool) {
	text, err := wire.CheckKey(key)
	print, _ := wire.Fingerprint(key)
	switch {
	case err != nil:
		at.Errorf("%s", err)
		return
	case text != key:
		at.Errorf("the key must be written as %q", text)
	case seen[print]:
		at.Errorf("the key is listed twice, in whatever form: two signatures by it would be one person's")
	}
	seen[print] = true
}

func (k Key) check(at *score.Report) {
	if k.Name == "" || len(k.Name) > 64 {
		at.At("name").Errorf("say in 1 to 64 bytes who has the key")
	}
	if len(k.Roles) == 0 {
		at.At("roles").Errorf("a key without a role signs nothing")
	}
	for i, role := range k.Roles {
		switch {
		case !slices.Contains(Roles(), role):
			at.At("roles", i).Errorf("unknown role %.20q", role)
		case slices.Index(k.Roles, role) != i:
			at.At("roles", i).Errorf("the role is listed twice")
		case role == RoleRoot && len(k.Roles) > 1:
			at.At("roles", i).Errorf("a root key signs trust roots and nothing else: make another key for the other roles")
		}
	}
	if !k.NotAfter.IsZero() && !k.NotAfter.After(k.NotBefore) {
		at.At("notAfter").Errorf("it must be later than notBefore")
	}
	for field, patterns := range map[string][]string{"devices": k.Scope.Devices, "classes": k.Scope.Classes} {
		for i, p := range patterns {
			if !goodPattern(p) {
				at.At("scope", field, i).Errorf("%.40q is no pattern: letters, digits, - and . with * for any run of them", p)
			}
		}
	}
}
