package access_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// An account stays the very same while nothing about it changes, and keeps who was revoked when something does.
func TestAccountsStay(t *testing.T) {
	c, k := config(t)
	fleet := k.PublicAccount(access.Fleet)
	before := func(public string) string { return c.Accounts[public] }
	again, err := k.Accounts(before)
	if err != nil {
		t.Fatal(err)
	}
	for key, token := range again {
		if token != c.Accounts[key] {
			t.Errorf("account %s was signed anew", key)
		}
	}
	user := publicKey(t, natstest.UserKey(t))
	if c.Accounts[fleet], err = k.Revoke(access.Fleet, c.Accounts[fleet], user, time.Now()); err != nil {
		t.Fatal(err)
	}
	if again, err = k.Accounts(before); err != nil || again[fleet] != c.Accounts[fleet] {
		t.Errorf("the account in which somebody is revoked was signed anew: %v", err)
	}
	old, err := jwt.DecodeAccountClaims(c.Accounts[fleet])
	if err != nil {
		t.Fatal(err)
	}
	if len(old.Revocations) != 1 || old.Revocations[user] == 0 {
		t.Errorf("revoked are %v", old.Revocations)
	}
	if _, err := k.Revoke(access.Fleet, "", user, time.Now()); err == nil || !strings.Contains(err.Error(), "there is none yet") {
		t.Errorf("got %v", err)
	}
	if _, err := k.Revoke(access.Control, c.Accounts[fleet], user, time.Now()); err == nil || !strings.Contains(err.Error(), "it is another one") {
		t.Errorf("got %v", err)
	}
	_, stranger := config(t)
	if _, err := stranger.Revoke(access.Fleet, c.Accounts[fleet], user, time.Now()); err == nil {
		t.Error("an account of another operator was taken")
	}
	if again, err = stranger.Accounts(before); err != nil || len(again) != 3 || again[fleet] != "" {
		t.Errorf("got %v", err)
	}
}

// What cannot become a credential.
func TestIssueRefuses(t *testing.T) {
	_, k := config(t)
	user := publicKey(t, natstest.UserKey(t))
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		issue func() (string, error)
		want  string
	}{
		{"wildcard device", func() (string, error) {
			return k.Issuer().Device(wire.Device{Site: "main", ID: "*"}, user, time.Time{})
		}, `cannot use "*" as a device id`},
		{"template as a site", func() (string, error) {
			return k.Issuer().Device(wire.Device{Site: "{{name()}}", ID: "pi-1"}, user, time.Time{})
		}, "as a site"},
		{"key of an account", func() (string, error) { return k.Issuer().Device(pi1, publicKey(t, account), time.Time{}) }, "is not a public user key"},
		{"invitation", func() (string, error) { return k.Issuer().Knock(pi1, "a.b", user, time.Time{}) }, "as an invitation"},
		{"invited device", func() (string, error) { return k.Issuer().Knock(wire.Device{}, "a", user, time.Time{}) }, "as a site"},
		{"role", func() (string, error) { return k.User("anna", "king", nil, user, time.Time{}) }, `cannot give role "king"`},
		{"site of a viewer", func() (string, error) { return k.User("anna", wire.RoleViewer, []string{"main"}, user, time.Time{}) }, "has nothing of a site"},
		{"wildcard site", func() (string, error) {
			return k.User("anna", wire.RolePublisher, []string{"main", ">"}, user, time.Time{})
		}, "as a site"},
		{"name", func() (string, error) { return k.User("Anna B", wire.RoleViewer, nil, user, time.Time{}) }, "as a user"},
	}
	for _, tt := range tests {
		if token, err := tt.issue(); err == nil || token != "" || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A credential says whose it is, and only one that these keys issued is read.
func TestRead(t *testing.T) {
	_, k := config(t)
	kp := natstest.UserKey(t)
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	token, err := k.User("anna", wire.RolePublisher, []string{"main", "office"}, publicKey(t, kp), end)
	if err != nil {
		t.Fatal(err)
	}
	// The line that connects holds it, and has 4 KiB on servers as they come.
	if len(token) > 1000 {
		t.Errorf("%d bytes", len(token))
	}
	text, err := access.Creds(token, kp)
	if err != nil {
		t.Fatal(err)
	}
	c, err := k.Read(text)
	if err != nil || c.Name != "anna" || c.Role != wire.RolePublisher || c.Account != access.Control || !slices.Equal(c.Sites, []string{"main", "office"}) || !c.NotAfter.Equal(end) || c.User != publicKey(t, kp) {
		t.Errorf("got %+v, %v", c, err)
	}
	_, stranger := config(t)
	if _, err := stranger.Read(text); err == nil || !strings.Contains(err.Error(), "was not issued with the keys that are here") {
		t.Errorf("got %v", err)
	}
	if _, err := k.Read([]byte("nothing")); err == nil {
		t.Error("nothing is a credential")
	}
}

// A publisher of several sites reaches these and no others.
func TestSeveralSites(t *testing.T) { // G62
	s := natstest.Start(t)
	nc := s.Connect(s.User(wire.RolePublisher, "main", "office"), quiet)
	for site, may := range map[string]bool{"main": true, "office": true, "attic": false, "main-2": false} {
		err := try(nc, "publish", wire.DesiredSubject(wire.DeviceKey(wire.Device{Site: site, ID: "pi-1"})))
		if (err == nil) != may {
			t.Errorf("%s: %v", site, err)
		}
	}
}

// A credential that has expired, and one that was revoked, are worth nothing; who is connected is cut at once, nobody else
// is, and it stays so when the server starts again.
func TestExpiredAndRevoked(t *testing.T) { // G64
	s := natstest.Start(t, pi1, pi10)
	expired := natstest.UserKey(t)
	token, err := s.Keys().Issuer().Device(pi1, publicKey(t, expired), time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	s.Know(expired, token)
	if nc, err := nats.Connect(s.URL, nats.UserCredentials(s.Creds(expired))); err == nil {
		nc.Close()
		t.Error("a credential that has expired is good for a connection")
	}
	stays, goes := s.ConnectDevice(pi10), s.ConnectDevice(pi1, nats.NoReconnect(), quiet)
	kept := s.Creds(s.DeviceKey(pi1))
	next := natstest.UserKey(t) // the same device, with another key
	if token, err = s.Keys().Issuer().Device(pi1, publicKey(t, next), time.Time{}); err != nil {
		t.Fatal(err)
	}
	s.Know(next, token)
	renewed := s.Connect(next)
	cut := make(chan struct{})
	goes.SetClosedHandler(func(*nats.Conn) { close(cut) })
	s.RemoveDevice(pi1)
	<-cut
	for range 2 {
		if nc, err := nats.Connect(s.URL, nats.UserCredentials(kept)); !errors.Is(err, nats.ErrAuthorization) {
			nc.Close()
			t.Errorf("a credential that was revoked: %v", err)
		}
		if err := stays.FlushTimeout(patience); err != nil || stays.Reconnects != 0 {
			t.Errorf("another device: %v, %d reconnects", err, stays.Reconnects)
		}
		if err := renewed.FlushTimeout(patience); err != nil {
			t.Error(err)
		}
		stays.Close()
		renewed.Close()
		s.Stop()
		s.Restart() // with the accounts as they were before it was revoked, in the configuration
		stays, renewed = s.ConnectDevice(pi10), s.Connect(next)
	}
}

// Who signs a credential for himself, in the name of an account, is nobody.
func TestForgedCredential(t *testing.T) {
	s := natstest.Start(t)
	kp := natstest.UserKey(t)
	c := jwt.NewUserClaims(publicKey(t, kp))
	other, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	c.IssuerAccount = s.Keys().PublicAccount(access.Control)
	token, err := c.Encode(other)
	if err != nil {
		t.Fatal(err)
	}
	s.Know(kp, token)
	if nc, err := nats.Connect(s.URL, nats.UserCredentials(s.Creds(kp))); err == nil {
		nc.Close()
		t.Error("somebody with a key of his own is a user")
	}
}
