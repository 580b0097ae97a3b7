package localnats

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// admission is how devices are let in by the keys of the directory.
func (dir Dir) admission() (*fleet.Admission, error) {
	keys, err := dir.Access()
	if err != nil {
		return nil, err
	}
	operators, err := dir.Operators()
	if err != nil {
		return nil, err
	}
	return &fleet.Admission{Issuer: keys.Issuer(), Operators: operators}, nil
}

// Operators are the keys that may let devices in.
func (dir Dir) Operators() (fleet.KeySet, error) {
	chain, err := dir.Trust()
	if err != nil {
		return fleet.KeySet{}, err
	}
	return chain.Last().Operations()
}

// Invite makes the file by which a device can ask, once and for a while, to become d. It needs no server.
func (dir Dir) Invite(d fleet.Device, life time.Duration, now time.Time, signer wire.Signer) (wire.Ticket, error) {
	if err := d.Check(); err != nil {
		return wire.Ticket{}, err
	}
	keys, err := dir.Access()
	if err != nil {
		return wire.Ticket{}, err
	}
	i, err := wire.SealInvitation(wire.Invitation{ID: strings.ToLower(rand.Text()), Device: d, Until: now.Add(life)}, now, signer)
	if err != nil {
		return wire.Ticket{}, err
	}
	knock, err := knockOf(keys, i)
	if err != nil {
		return wire.Ticket{}, fmt.Errorf("cannot invite %s: %w", d, err)
	}
	reach := dir.reach()
	t := wire.Ticket{Kind: wire.TicketKind, Device: d, ID: i.ID, Until: i.Until.UTC().Truncate(time.Second), Servers: []string{reach}, Knock: knock, Invitation: i.Frame}
	if strings.HasPrefix(reach, "tls://") {
		cert, err := os.ReadFile(filepath.Join(string(dir), certName))
		if err != nil {
			return wire.Ticket{}, fmt.Errorf("cannot tell %s the certificate of the server: %w", d, err)
		}
		t.CA = string(cert)
	} else {
		t.Plaintext = true // continuo up was told so, or is on this machine
	}
	chain, err := dir.Trust()
	if err != nil {
		return wire.Ticket{}, err
	}
	if t.Root, err = os.ReadFile(dir.Roots().File(chain.Last().Metadata.Version)); err != nil {
		return wire.Ticket{}, fmt.Errorf("cannot tell %s whom to trust: %w", d, err)
	}
	return t, nil
}

// knockOf makes a key that is good for the invitation alone.
func knockOf(keys access.Keys, i wire.Invitation) (wire.Knock, error) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		return wire.Knock{}, err
	}
	public, err := kp.PublicKey()
	if err != nil {
		return wire.Knock{}, err
	}
	seed, err := kp.Seed()
	if err != nil {
		return wire.Knock{}, err
	}
	token, err := keys.Issuer().Knock(i.Device, i.ID, public, i.Until)
	return wire.Knock{JWT: token, Seed: string(seed)}, err
}
