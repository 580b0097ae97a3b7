package trust

import (
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// New is the first version of a fleet's trust root.
func New(fleet string, keys ...Key) Root {
	return Root{APIVersion: score.APIVersion, Kind: Kind, Metadata: RootMetadata{Name: fleet, Version: 1}, Spec: RootSpec{Keys: keys}}
}

// Draft is the version that follows r, with the same content, to be changed and signed.
func (r Root) Draft() Root {
	r.Metadata.Version++
	r.Spec.Keys, r.Spec.Revoked = slices.Clone(r.Spec.Keys), slices.Clone(r.Spec.Revoked)
	return r
}

// Find gives the key of somebody: by its name, by the public key, or by its fingerprint.
func (r Root) Find(who string) (Key, error) {
	var found []Key
	for _, k := range r.Spec.Keys {
		print, _ := wire.Fingerprint(k.Key)
		if who == k.Name || who == k.Key || who == print {
			found = append(found, k)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Key{}, fmt.Errorf("version %d of the trust root has no key %.80q: name one of %s", r.Metadata.Version, who, strings.Join(r.names(), ", "))
	}
	return Key{}, fmt.Errorf("version %d of the trust root has %d keys named %.80q: give the public key", r.Metadata.Version, len(found), who)
}

func (r Root) names() (out []string) {
	for _, k := range r.Spec.Keys {
		out = append(out, k.Name)
	}
	return out
}

// Set makes k one of the keys, in the place of the one with its name.
func (r *Root) Set(k Key) {
	if i := slices.IndexFunc(r.Spec.Keys, func(o Key) bool { return o.Name == k.Name }); i >= 0 {
		r.Spec.Keys[i] = k
		return
	}
	r.Spec.Keys = append(r.Spec.Keys, k)
}

// Revoke makes a key sign nothing any more.
func (r *Root) Revoke(k Key) {
	r.Spec.Keys = slices.DeleteFunc(r.Spec.Keys, func(o Key) bool { return o.Key == k.Key })
	r.Spec.Revoked = append(r.Spec.Revoked, k.Key)
}

// Changes says what another version does, line by line, for who has to sign it.
func (r Root) Changes(next Root) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, k := range next.Spec.Keys {
		switch old, known := r.key(k.Key); {
		case !known:
			say("add %s", k)
		case old.String() != k.String():
			say("change %s", old)
			say("    to %s", k)
		}
	}
	for _, k := range r.Spec.Keys {
		if _, stays := next.key(k.Key); !stays && !slices.Contains(next.Spec.Revoked, k.Key) {
			say("forget %s", k)
		}
	}
	for _, k := range next.Spec.Revoked {
		if slices.Contains(r.Spec.Revoked, k) {
			continue
		}
		if old, known := r.key(k); known {
			say("revoke %s", old)
		} else {
			say("revoke %s", k)
		}
	}
	for _, k := range r.Spec.Revoked {
		if !slices.Contains(next.Spec.Revoked, k) {
			say("revoke no longer %s", k)
		}
	}
	if a, b := r.Spec.Required, next.Spec.Required; a != b {
		say("require %s instead of %s", b, a)
	}
	if next.Spec.Restart != r.Spec.Restart {
		say("generations begin anew with version %d: what was signed before counts no more, and devices change nothing until something is published", next.Spec.Restart)
	}
	return out
}

// String is the key in a line, with all that it may.
func (k Key) String() string {
	text := fmt.Sprintf("%s (%s): %s", k.Name, k.Key, joined(k.Roles))
	if s := k.Scope.String(); s != "" {
		text += "; " + s
	}
	if v := k.Validity(); v != "" {
		text += "; " + v
	}
	return text
}

// Validity is when the key may sign; empty if always.
func (k Key) Validity() string {
	var parts []string
	if !k.NotBefore.IsZero() {
		parts = append(parts, "from "+k.NotBefore.UTC().Format(day))
	}
	if !k.NotAfter.IsZero() {
		parts = append(parts, "until "+k.NotAfter.UTC().Format(day))
	}
	return strings.Join(parts, " ")
}

const day = "2006-01-02T15:04Z"

// String is the scope in words; empty if nothing is bounded and nothing more is allowed.
func (s Scope) String() string {
	var parts []string
	list := func(what string, are bool, text string) {
		if are {
			parts = append(parts, what+" "+text)
		}
	}
	none := func(text string) string {
		if text == "" {
			return "none"
		}
		return text
	}
	list("devices", s.Devices != nil, none(joined(s.Devices)))
	list("classes", s.Classes != nil, none(joined(s.Classes)))
	list("kinds", s.Kinds != nil, none(joined(s.Kinds)))
	if s.Policy != nil {
		p := *s.Policy
		list("policy at most", true, none(strings.Join(slices.DeleteFunc([]string{
			string(p.Preset), string(p.OnIntent), string(p.OnDrift), string(p.OnAbsent), string(p.OnDestroy),
		}, func(w string) bool { return w == "" }), "/")))
	}
	if s.Destroy {
		parts = append(parts, "may destroy")
	}
	if s.Shell {
		parts = append(parts, "may run shells")
	}
	return strings.Join(parts, ", ")
}

// String is how many signatures are needed, in words.
func (n Required) String() string {
	return fmt.Sprintf("signatures (root %d, documents %d, operations %d, approvals %d)", max(n.Root, 1), max(n.Documents, 1), max(n.Operations, 1), max(n.Approvals, 1))
}

func joined[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ",")
}
