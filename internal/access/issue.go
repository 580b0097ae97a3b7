package access

import (
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// What a JWT says of its user beside his name, as tags.
const (
	tagSite       = "site"
	tagInvitation = "invitation"
)

// An Issuer makes the credentials of devices. It holds the two keys that can, and none that gives anybody more.
type Issuer struct {
	account         string
	device, invited nkeys.KeyPair
}

// Device is the credential of d for whoever holds the private key of a user. A zero time means that it does not expire.
func (i Issuer) Device(d wire.Device, userPublicKey string, notAfter time.Time) (string, error) {
	if err := d.Check(); err != nil {
		return "", err
	}
	return issue(i.account, i.device, d.String(), userPublicKey, notAfter)
}

// Knock is a credential that lets its holder present a request under an invitation, to become d, and nothing else.
func (i Issuer) Knock(d wire.Device, invitation, userPublicKey string, notAfter time.Time) (string, error) {
	if err := d.Check(); err != nil {
		return "", err
	}
	if err := wire.CheckInvitation(invitation); err != nil {
		return "", err
	}
	return issue(i.account, i.invited, d.String(), userPublicKey, notAfter, tagInvitation+":"+invitation)
}

// User is the credential of a person or a program in a role, bound to sites if there are any.
func (k Keys) User(name string, r wire.Role, sites []string, userPublicKey string, notAfter time.Time) (string, error) {
	if err := wire.CheckName("a user", name); err != nil {
		return "", err
	}
	if _, err := wire.RolePermissions(r, sites...); err != nil {
		return "", err
	}
	scope, tags := string(r), []string(nil)
	for _, site := range sites {
		tags = append(tags, tagSite+":"+site)
	}
	if len(sites) > 0 {
		scope += ofSites
	}
	return issue(k.PublicAccount(Control), k.scopes[scope], name, userPublicKey, notAfter, tags...)
}

// SystemUser is the credential of whoever tells servers of accounts that have changed.
func (k Keys) SystemUser(userPublicKey string) (string, error) {
	return issue(k.PublicAccount(System), k.scopes[scopeSystem], scopeSystem, userPublicKey, time.Time{})
}

func issue(account string, signer nkeys.KeyPair, name, user string, notAfter time.Time, tags ...string) (string, error) {
	if !nkeys.IsValidPublicUserKey(user) {
		return "", fmt.Errorf("cannot give %s a credential: %q is not a public user key (it starts with U)", name, user)
	}
	c := jwt.NewUserClaims(user)
	c.Name, c.IssuerAccount = name, account
	c.Tags = tags
	c.SetScoped(true)
	if !notAfter.IsZero() {
		c.Expires = notAfter.Unix()
	}
	token, err := c.Encode(signer)
	if err != nil {
		return "", fmt.Errorf("cannot sign a credential for %s: %w", name, err)
	}
	return token, nil
}

// Creds is the text of a credentials file, as every NATS tool reads it.
func Creds(token string, user nkeys.KeyPair) ([]byte, error) {
	seed, err := user.Seed()
	if err != nil {
		return nil, fmt.Errorf("cannot write a credentials file: %w", err)
	}
	text, err := jwt.FormatUserConfig(token, seed)
	if err != nil {
		return nil, fmt.Errorf("cannot write a credentials file: %w", err)
	}
	return text, nil
}

// A Credential is what a JWT says of its user.
type Credential struct {
	Account  Account
	Name     string
	User     string // public key
	Role     wire.Role
	Sites    []string
	Issued   time.Time
	NotAfter time.Time // zero: it does not expire
}

// Read says whose a credentials file or JWT is. It was issued with these keys, or it is refused.
func (k Keys) Read(text []byte) (Credential, error) {
	token, err := jwt.ParseDecoratedJWT(text)
	if err != nil {
		return Credential{}, fmt.Errorf("cannot read a credential: %w", err)
	}
	c, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return Credential{}, fmt.Errorf("cannot read a credential: %w", err)
	}
	for _, s := range scopes() {
		if public(k.scopes[s.name]) != c.Issuer || k.PublicAccount(s.account) != c.IssuerAccount {
			continue
		}
		out := Credential{Account: s.account, Name: c.Name, User: c.Subject, Issued: time.Unix(c.IssuedAt, 0)}
		if s.account == Control {
			out.Role = wire.Role(strings.TrimSuffix(s.name, ofSites))
		}
		if c.Expires != 0 {
			out.NotAfter = time.Unix(c.Expires, 0)
		}
		for _, tag := range c.Tags {
			if site, ok := strings.CutPrefix(tag, tagSite+":"); ok {
				out.Sites = append(out.Sites, site)
			}
		}
		return out, nil
	}
	return Credential{}, fmt.Errorf("cannot use the credential of %q: it was not issued with the keys that are here", c.Name)
}
