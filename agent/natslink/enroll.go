package natslink

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// An Asking is a device that is being enrolled. It is kept on disk, because what was presented under an invitation cannot
// be presented again in other words. Its seed is the key that the device has from then on.
type Asking struct {
	Device  wire.Device `json:"device"`
	ID      string      `json:"id"`
	Seed    string      `json:"seed"`
	Nonce   []byte      `json:"nonce"`
	Request []byte      `json:"request"`
}

// Ask makes a key for a device, and the request under an invitation.
func Ask(t wire.Ticket, b wire.Board) (Asking, error) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		return Asking{}, fmt.Errorf("cannot make a key: %w", err)
	}
	nonce := make([]byte, 16)
	rand.Read(nonce)
	return asking(kp, wire.Request{Device: t.Device, ID: t.ID, Nonce: nonce, Invitation: t.Invitation, Board: b})
}

func asking(kp nkeys.KeyPair, r wire.Request) (Asking, error) {
	seed, err := kp.Seed()
	if err != nil {
		return Asking{}, fmt.Errorf("cannot use a key: %w", err)
	}
	if r.Key, err = kp.PublicKey(); err != nil {
		return Asking{}, fmt.Errorf("cannot use a key: %w", err)
	}
	b, err := wire.SealRequest(r, kp)
	return Asking{r.Device, r.ID, string(seed), r.Nonce, b}, err
}

// Fingerprint is that of the key, for people to compare.
func (a Asking) Fingerprint() (string, error) {
	kp, err := nkeys.FromSeed([]byte(a.Seed))
	if err != nil {
		return "", fmt.Errorf("cannot use a key: %w", err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		return "", fmt.Errorf("cannot use a key: %w", err)
	}
	return wire.UserFingerprint(public)
}

// Creds is a credentials file for the key with what its fleet answered.
func (a Asking) Creds(token string) []byte { return credsText(token, a.Seed) }

// credsText is what every NATS tool reads.
func credsText(token, seed string) []byte {
	var b strings.Builder
	for _, part := range []struct{ name, value string }{{"NATS USER JWT", token}, {"USER NKEY SEED", seed}} {
		fmt.Fprintf(&b, "%s %s-----\n%s\n%s %s------\n\n", "-----BEGIN", part.name, part.value, "------END", part.name)
	}
	return []byte(b.String())
}

// Present presents the request once, with the credential of the invitation, and gives the verified answer. Of the options
// it uses where the servers are, and how to trust them.
func Present(ctx context.Context, o Options, k wire.Knock, a Asking) (wire.LetIn, error) {
	secure, err := o.secure()
	if err != nil {
		return wire.LetIn{}, err
	}
	opts := append(secure,
		nats.Name("continuo-agent "+a.Device.String()), nats.UserJWTAndSeed(k.JWT, k.Seed), nats.NoReconnect(), nats.Timeout(connectTimeout),
		nats.SetCustomDialer(dialer{ctx}), nats.CustomInboxPrefix(wire.EnrollInboxPrefix(a.Device, a.ID)), nats.IgnoreDiscoveredServers(),
	)
	nc, err := nats.Connect(strings.Join(o.Servers, ","), opts...)
	if err != nil {
		return wire.LetIn{}, fmt.Errorf("cannot connect to %v: %w", o.Servers, err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	m, err := nc.RequestWithContext(ctx, wire.EnrollSubject(a.Device, a.ID), a.Request)
	if err != nil {
		return wire.LetIn{}, fmt.Errorf("cannot ask the control service: %w", err)
	}
	_, keys := o.Trust.now()
	return wire.OpenLetIn(m.Data, keys.control, a.Device, a.Nonce)
}

// CheckPlace says why these servers cannot be used: another machine without encryption, for one.
func (o Options) CheckPlace() error {
	o.Instance = "enroll"
	return o.check()
}
