package natslink

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A credential is what is in a credentials file. The device reads of the JWT only how long it counts; what it allows is
// the server's business.
type credential struct {
	token           string
	key             nkeys.KeyPair
	issued, expires time.Time // expires is zero if it does not
}

func readCredential(file string) (credential, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return credential{}, fmt.Errorf("cannot read the credential: %w", err)
	}
	return parseCredential(text)
}

func parseCredential(text []byte) (c credential, err error) {
	if c.token, err = nkeys.ParseDecoratedJWT(text); err != nil {
		return credential{}, fmt.Errorf("cannot read the credential: %w", err)
	}
	if c.key, err = nkeys.ParseDecoratedUserNKey(text); err != nil {
		return credential{}, fmt.Errorf("cannot read the credential: %w", err)
	}
	parts := strings.Split(c.token, ".")
	if len(parts) != 3 {
		return credential{}, errors.New("cannot read the credential: it holds no JWT")
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Issued  int64 `json:"iat"`
		Expires int64 `json:"exp"`
	}
	if err == nil {
		err = json.Unmarshal(body, &claims)
	}
	if err != nil {
		return credential{}, fmt.Errorf("cannot read the credential: %w", err)
	}
	c.issued = time.Unix(claims.Issued, 0)
	if claims.Expires != 0 {
		c.expires = time.Unix(claims.Expires, 0)
	}
	return c, nil
}

// due is when another one is asked for: after three quarters of its life.
func (c credential) due() time.Time { return c.issued.Add(c.expires.Sub(c.issued) / 4 * 3) }

// Between two tries to get another credential, and at most between two looks at the file.
const (
	shortestRenewal = time.Second
	longestRenewal  = time.Hour
)

// renewLoop gets another credential before the one at hand expires, and asks to be let in again when it has.
func (l *Link) renewLoop(ctx context.Context) {
	if l.o.CredsFile == "" || l.o.KeepCreds == nil {
		return
	}
	wait := time.Duration(0)
	for sleep(ctx, wait) {
		c, err := readCredential(l.o.CredsFile)
		wait = longestRenewal
		if err != nil || c.expires.IsZero() {
			continue
		}
		left := time.Until(c.due())
		locked := l.lockedOut()
		if left > 0 && !locked {
			wait = min(left, longestRenewal)
			continue
		}
		if locked || time.Now().After(c.expires) {
			err = l.comeBack(ctx, c)
		} else {
			err = l.renew(ctx, c)
		}
		// All devices of a fleet that were enrolled together renew together.
		wait = min(max(c.expires.Sub(c.issued)/40, shortestRenewal), longestRenewal)
		wait += mathrand.N(wait)
		if err != nil && ctx.Err() == nil && time.Now().After(c.expires) {
			l.problem(CodeLink, fmt.Sprintf("the credential of this device has expired: %v; an operator can let it in again: continuo device approve %s", err, l.o.Device))
		}
	}
}

// lockedOut reports whether the server said last that it does not accept the credential.
func (l *Link) lockedOut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nc == nil && l.locked
}

// renew asks with the credential that still counts.
func (l *Link) renew(ctx context.Context, c credential) error {
	nonce := make([]byte, 16)
	rand.Read(nonce)
	a, err := asking(c.key, wire.Request{Device: l.o.Device, ID: wire.RequestRenew, Nonce: nonce, Board: wire.Board{Serial: l.o.Serial, Agent: l.o.Version}})
	if err != nil {
		return err
	}
	m := nats.NewMsg(wire.RenewSubject(l.o.Device))
	m.Data = a.Request
	answer, err := l.request(ctx, m, l.o.tune.timeout)
	if err != nil {
		return err
	}
	_, keys := l.o.Trust.now()
	in, err := wire.OpenLetIn(answer.Data, keys.control, l.o.Device, nonce)
	if err != nil {
		return err
	}
	return l.letIn(in, c)
}

// comeBack asks with the credential that is good for nothing else. The request is the same one until it is approved, also
// after a restart.
func (l *Link) comeBack(ctx context.Context, c credential) error {
	back, err := os.ReadFile(l.o.BackFile)
	if err != nil {
		return fmt.Errorf("cannot ask to be let in again: %w", err)
	}
	seed, err := c.key.Seed()
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(c.token))
	a, err := asking(c.key, wire.Request{Device: l.o.Device, ID: wire.RequestBack, Nonce: sum[:], Board: wire.Board{Serial: l.o.Serial}})
	if err != nil {
		return err
	}
	in, err := Present(ctx, l.o, wire.Knock{JWT: strings.TrimSpace(string(back)), Seed: string(seed)}, a)
	if err != nil {
		return err
	}
	return l.letIn(in, c)
}

// letIn takes another credential for the same key, and connects with it at once: other devices do not at this moment.
func (l *Link) letIn(in wire.LetIn, c credential) error {
	if in.State != wire.StateApproved {
		return fmt.Errorf("the control service says: %s %s", in.State, in.Message)
	}
	seed, err := c.key.Seed()
	if err != nil {
		return err
	}
	text := credsText(in.Credential, string(seed))
	if _, err := parseCredential(text); err != nil {
		return err
	}
	if err := l.o.KeepCreds(text, in.Back); err != nil {
		return fmt.Errorf("cannot keep the new credential: %w", err)
	}
	l.spread.hurry()
	l.mu.Lock()
	nc := l.nc
	l.mu.Unlock()
	if nc != nil {
		return nc.ForceReconnect()
	}
	return nil
}
