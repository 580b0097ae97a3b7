package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// Operator is the JWT by which a server knows that an account is one of the fleet's.
func (k Keys) Operator() (string, error) {
	c := jwt.NewOperatorClaims(public(k.operator))
	c.Name, c.SystemAccount = "continuo", k.PublicAccount(System)
	token, err := c.Encode(k.operator)
	if err != nil {
		return "", fmt.Errorf("cannot sign the operator: %w", err)
	}
	return token, nil
}

// Accounts are the JWTs of all accounts by their public keys, as this program wants them. before gives the one that
// counted until now, or nothing: its revocations stay, and it stays itself when nothing else is different.
func (k Keys) Accounts(before func(public string) string) (map[string]string, error) {
	out := map[string]string{}
	for _, a := range accounts {
		key := k.PublicAccount(a)
		c := k.claims(a)
		old, err := k.decode(a, before(key))
		if err == nil {
			c.Revocations = old.Revocations
		}
		token, err := k.sign(c)
		if err != nil {
			return nil, err
		}
		if old != nil && same(old, c) {
			token = before(key)
		}
		out[key] = token
	}
	return out, nil
}

// Revoke gives an account in which what was issued to a user until a time does not count any more.
func (k Keys) Revoke(a Account, token, userPublicKey string, until time.Time) (string, error) {
	c, err := k.decode(a, token)
	if err != nil {
		return "", err
	}
	c.RevokeAt(userPublicKey, until)
	return k.sign(c)
}

// decode takes only what these keys have signed.
func (k Keys) decode(a Account, token string) (*jwt.AccountClaims, error) {
	if token == "" {
		return nil, fmt.Errorf("cannot read account %s: there is none yet", a)
	}
	c, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		return nil, fmt.Errorf("cannot read account %s: %w", a, err)
	}
	if c.Subject != k.PublicAccount(a) || c.Issuer != public(k.operator) {
		return nil, fmt.Errorf("cannot use account %s: it is another one, or another operator signed it", a)
	}
	return c, nil
}

func (k Keys) sign(c *jwt.AccountClaims) (string, error) {
	var vr jwt.ValidationResults
	c.Validate(&vr)
	if wrong := vr.Errors(); len(wrong) > 0 {
		return "", fmt.Errorf("cannot sign account %s: %w", c.Name, errors.Join(wrong...))
	}
	token, err := c.Encode(k.operator)
	if err != nil {
		return "", fmt.Errorf("cannot sign account %s: %w", c.Name, err)
	}
	return token, nil
}

// same compares what two accounts say, and not when it was said.
func same(a, b *jwt.AccountClaims) bool {
	x, errX := json.Marshal(a.Account)
	y, errY := json.Marshal(b.Account)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func (k Keys) claims(a Account) *jwt.AccountClaims {
	c := jwt.NewAccountClaims(k.PublicAccount(a))
	c.Name = string(a)
	// The accounts' own keys sign no user; whatever they signed may nothing by itself.
	c.DefaultPermissions = jwt.Permissions{Pub: jwt.Permission{Deny: jwt.StringList{">"}}, Sub: jwt.Permission{Deny: jwt.StringList{">"}}}
	for _, s := range scopes() {
		if s.account == a {
			c.SigningKeys.AddScopedSigner(s.signer(public(k.scopes[s.name])))
		}
	}
	switch a {
	case Control:
		c.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
		for _, m := range wire.Mappings() {
			c.Exports.Add(&jwt.Export{Subject: jwt.Subject(m.Control), Type: exportType(m)})
		}
	case Fleet:
		for _, m := range wire.Mappings() {
			i := &jwt.Import{Account: k.PublicAccount(Control), Subject: jwt.Subject(m.Control), Type: exportType(m)}
			if m.Device != m.Control {
				i.LocalSubject = jwt.RenamingSubject(numberWildcards(m.Device))
			}
			c.Imports.Add(i)
		}
	}
	return c
}

func exportType(m wire.Mapping) jwt.ExportType {
	if m.Stream {
		return jwt.Stream
	}
	return jwt.Service
}

func (s scope) signer(key string) *jwt.UserScope {
	u := jwt.NewUserScope()
	u.Key, u.Role = key, s.name
	u.Template.Pub.Allow, u.Template.Sub.Allow = s.permissions.Publish, s.permissions.Subscribe
	u.Template.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeStandard}
	if n := s.permissions.MaxSubs; n > 0 {
		u.Template.Limits.Subs = int64(n)
	}
	if n := s.permissions.MaxPayload; n > 0 {
		u.Template.Limits.Payload = int64(n)
	}
	return u
}

// numberWildcards writes the n-th "*" as "$n", which is how the server ties the tokens of both sides of an import.
func numberWildcards(subject string) string {
	tokens, n := strings.Split(subject, "."), 0
	for i, t := range tokens {
		if t == "*" {
			n++
			tokens[i] = "$" + strconv.Itoa(n)
		}
	}
	return strings.Join(tokens, ".")
}

// replaceTokens replaces whole tokens only.
func replaceTokens(subject, old, new string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.ReplaceAll("."+subject+".", "."+old+".", "."+new+"."), "."), ".")
}
