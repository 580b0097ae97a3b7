package trust

import (
	"slices"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// kinds are what the holders of roles sign.
var kinds = map[Role][]wire.Kind{
	RoleRoot:      {wire.KindRoot},
	RolePublisher: {wire.KindDevice, wire.KindClass},
	RoleOperator:  {wire.KindApproval},
	RoleApprover:  {wire.KindApproval},
	RoleControl:   {wire.KindHeartbeat},
}

// Documents are the keys that may say what devices should be; who of them may say what, CheckDocument and CheckClass tell.
func (r Root) Documents() (wire.KeySet, error) { return r.keySet(RolePublisher) }

// Operations are the keys that may ask devices for something; see CheckOperation.
func (r Root) Operations() (wire.KeySet, error) { return r.keySet(RoleOperator, RoleApprover) }

// Control are the keys that answer heartbeats.
func (r Root) Control() (wire.KeySet, error) { return r.keySet(RoleControl) }

// Kept are the keys that may have signed a document which this receiver accepted before: those of today, and those that
// were revoked since, whenever that was.
func (r Root) Kept() (wire.KeySet, error) {
	keys := r.trusted(RolePublisher)
	for _, k := range r.Spec.Revoked {
		keys = append(keys, wire.TrustedKey{PublicKey: k, Kinds: kinds[RolePublisher]})
	}
	for i := range keys {
		keys[i].From, keys[i].Until = time.Time{}, time.Time{}
	}
	return wire.NewKeySet(r.Metadata.Version, keys...)
}

func (r Root) keySet(roles ...Role) (wire.KeySet, error) {
	keys := r.trusted(roles...)
	for _, k := range r.Spec.Revoked {
		keys = append(keys, wire.TrustedKey{PublicKey: k, Revoked: true})
	}
	return wire.NewKeySet(r.Metadata.Version, keys...)
}

func (r Root) trusted(roles ...Role) (keys []wire.TrustedKey) {
	for _, k := range r.Spec.Keys {
		t := wire.TrustedKey{PublicKey: k.Key, From: k.NotBefore, Until: k.NotAfter}
		for _, role := range roles {
			if slices.Contains(k.Roles, role) {
				t.Kinds = append(t.Kinds, kinds[role]...)
			}
		}
		if len(t.Kinds) > 0 {
			keys = append(keys, t)
		}
	}
	return keys
}

// key is what the root says of one that signed.
func (r Root) key(public string) (Key, bool) {
	i := slices.IndexFunc(r.Spec.Keys, func(k Key) bool { return k.Key == public })
	if i < 0 {
		return Key{}, false
	}
	return r.Spec.Keys[i], true
}

// Has reports whether the key has a role.
func (k Key) Has(role Role) bool { return slices.Contains(k.Roles, role) }
