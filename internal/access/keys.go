package access

import (
	"fmt"
	"slices"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// An Account is one of the accounts of a fleet's servers.
type Account string

const (
	System  Account = "SYS"   // of the servers themselves; credentials are revoked there
	Control Account = "CTRL"  // people and the control service; all that is stored
	Fleet   Account = "FLEET" // devices, without JetStream: a device has no API to turn against the others
)

var accounts = []Account{System, Control, Fleet}

// Keys are the secrets behind all credentials of a fleet. They sign no document.
type Keys struct {
	operator nkeys.KeyPair
	accounts map[Account]nkeys.KeyPair
	scopes   map[string]nkeys.KeyPair // by the name of the scope
}

// OpenKeys asks for every key by its name, and how to make it when there is none yet.
func OpenKeys(ensure func(name string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error)) (Keys, error) {
	k := Keys{accounts: map[Account]nkeys.KeyPair{}, scopes: map[string]nkeys.KeyPair{}}
	var err error
	if k.operator, err = ensure("operator", nkeys.CreateOperator); err != nil {
		return Keys{}, err
	}
	for _, a := range accounts {
		if k.accounts[a], err = ensure("account-"+string(a), nkeys.CreateAccount); err != nil {
			return Keys{}, err
		}
	}
	for _, s := range scopes() {
		if k.scopes[s.name], err = ensure("issuer-"+s.name, nkeys.CreateAccount); err != nil {
			return Keys{}, err
		}
	}
	return k, k.check()
}

// check finds a key that is of another sort than its name says, or there twice.
func (k Keys) check() error {
	seen := map[string]string{}
	add := func(name string, kp nkeys.KeyPair, valid func(string) bool) error {
		public, err := kp.PublicKey()
		if err != nil {
			return fmt.Errorf("cannot use the key %s: %w", name, err)
		}
		if !valid(public) {
			return fmt.Errorf("cannot use the key %s: %s is of another sort", name, public)
		}
		if other, ok := seen[public]; ok {
			return fmt.Errorf("cannot use the key %s: it is that of %s as well; delete one of the files, and a new one is made", name, other)
		}
		seen[public] = name
		return nil
	}
	if err := add("operator", k.operator, nkeys.IsValidPublicOperatorKey); err != nil {
		return err
	}
	for _, a := range accounts {
		if err := add("account-"+string(a), k.accounts[a], nkeys.IsValidPublicAccountKey); err != nil {
			return err
		}
	}
	for _, s := range scopes() {
		if err := add("issuer-"+s.name, k.scopes[s.name], nkeys.IsValidPublicAccountKey); err != nil {
			return err
		}
	}
	return nil
}

// PublicAccount is the public key by which servers know an account.
func (k Keys) PublicAccount(a Account) string { return public(k.accounts[a]) }

// Issuer is the part that lets devices in. The control service needs no more.
func (k Keys) Issuer() Issuer {
	return Issuer{account: k.PublicAccount(Fleet), device: k.scopes[scopeDevice], invited: k.scopes[scopeInvited]}
}

// public is for keys that were checked.
func public(kp nkeys.KeyPair) string {
	key, err := kp.PublicKey()
	if err != nil {
		panic("access: a key was not checked: " + err.Error())
	}
	return key
}

// A scope is a signing key with what its users may do. The permissions of a user are made by the server from the
// template and from what his JWT says of him: his name, and tags.
type scope struct {
	name        string
	account     Account
	permissions wire.Permissions
}

const (
	scopeDevice  = "device"
	scopeInvited = "invited"
	scopeSystem  = "system"
	ofSites      = "-of-sites"
)

// Names that stand in the permissions where a template says whose they are.
const (
	someSite       = "some-site"
	someDevice     = "some-device"
	someInvitation = "some-invitation"
)

func scopes() []scope {
	d := wire.Device{Site: someSite, ID: someDevice}
	all := []scope{
		{scopeDevice, Fleet, template(wire.DevicePermissions(d), d.String(), "{{name()}}")},
		{scopeInvited, Fleet, template(template(wire.EnrollPermissions(d, someInvitation), d.String(), "{{name()}}"), someInvitation, "{{tag("+tagInvitation+")}}")},
		{scopeSystem, System, wire.SystemPermissions()},
	}
	for _, r := range wire.Roles {
		all = append(all, scope{string(r), Control, must(wire.RolePermissions(r))})
		if r.OfSites() {
			all = append(all, scope{string(r) + ofSites, Control, template(must(wire.RolePermissions(r, someSite)), someSite, "{{tag("+tagSite+")}}")})
		}
	}
	return all
}

func must(p wire.Permissions, err error) wire.Permissions {
	if err != nil {
		panic("access: " + err.Error())
	}
	return p
}

func template(p wire.Permissions, stand, text string) wire.Permissions {
	p.Publish, p.Subscribe = slices.Clone(p.Publish), slices.Clone(p.Subscribe)
	for _, list := range [][]string{p.Publish, p.Subscribe} {
		for i := range list {
			list[i] = replaceTokens(list[i], stand, text)
		}
	}
	return p
}
