package natslink

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A chain is the trust roots of a fleet.
type chain struct {
	r    *rig
	root nkeys.KeyPair
	last trust.Root
}

// newChain is that of a fleet whose documents the operator of the rig signs.
func newChain(r *rig) *chain {
	c := &chain{r: r, root: newSigner(r.t)}
	c.last = trust.Root{APIVersion: score.APIVersion, Kind: trust.Kind, Metadata: trust.RootMetadata{Name: "home", Version: 1}}
	c.last.Spec.Keys = []trust.Key{
		{Key: c.public(c.root), Name: "drawer", Roles: []trust.Role{trust.RoleRoot}},
		{Key: c.public(r.operator), Name: "first", Roles: []trust.Role{trust.RolePublisher, trust.RoleOperator, trust.RoleApprover}},
		{Key: c.public(r.control), Name: "control", Roles: []trust.Role{trust.RoleControl}},
	}
	return c
}

func (c *chain) public(kp nkeys.KeyPair) string {
	c.r.t.Helper()
	s, err := kp.PublicKey()
	if err != nil {
		c.r.t.Fatal(err)
	}
	return s
}

func (c *chain) seal(signer wire.Signer) wire.Envelope {
	c.r.t.Helper()
	e, err := c.last.Seal(1, signer)
	if err != nil {
		c.r.t.Fatal(err)
	}
	return e
}

// next publishes another version, which signer signs.
func (c *chain) next(signer wire.Signer, change func(*trust.RootSpec)) {
	c.r.t.Helper()
	c.last.Metadata.Version++
	change(&c.last.Spec)
	frame, err := c.seal(signer).Frame()
	if err != nil {
		c.r.t.Fatal(err)
	}
	m := &nats.Msg{Subject: wire.DesiredSubject(wire.RootKey(c.last.Metadata.Version)), Data: frame}
	if _, err := c.r.js.PublishMsg(c.r.t.Context(), m); err != nil {
		c.r.t.Fatal(err)
	}
}

// options are those of a device that begins with the present version.
func (c *chain) options(keep func([]byte) error) Options {
	c.r.t.Helper()
	o := c.r.options()
	var err error
	if o.Trust, err = TrustRoot(c.seal(c.root), nil, keep); err != nil {
		c.r.t.Fatal(err)
	}
	return o
}

// by publishes a document that somebody signed.
func (c *chain) by(signer wire.Signer, generation uint64, change ...func(*wire.Statement, *score.Assignment)) {
	c.r.t.Helper()
	epoch := func(st *wire.Statement, _ *score.Assignment) { st.Epoch = c.last.Metadata.Version }
	frame, st := seal(c.r.t, pi1, generation, signer, append([]func(*wire.Statement, *score.Assignment){epoch}, change...)...)
	c.r.put(frame, wire.Announce(st))
}

// Keys are replaced by the trust root, while devices are connected: what the old one signs does not count from then on, and
// what it signed before stays: G64 for keys, S31.
func TestKeysAreReplaced(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	var kept [][]byte
	_, h, _ := r.run(c.options(func(b []byte) error { kept = append(kept, b); return nil }))
	c.by(r.operator, 1)
	h.generation(t, 1)

	second := newSigner(t)
	c.next(c.root, func(s *trust.RootSpec) {
		s.Revoked = append(s.Revoked, s.Keys[1].Key)
		s.Keys[1].Key, s.Keys[1].Name = c.public(second), "second"
	})
	h.until(t, "told that others count", func() bool { return h.trusted == 1 })
	c.by(r.operator, 2)
	h.has(t, interpret.Code(wire.CodeKeyRevoked))
	c.by(second, 3)
	h.generation(t, 3)
	if len(h.intents) != 2 || len(kept) != 1 {
		t.Errorf("took %d documents, kept %d roots", len(h.intents), len(kept))
	}
}

// A device that was away takes all versions that it missed, one after the other, before it looks at a document: nothing is
// refused for a key that it does not know yet.
func TestRootsThatWereMissed(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	o := c.options(func([]byte) error { return nil })
	signer := newSigner(t)
	for range 5 {
		signer = newSigner(t)
		c.next(c.root, func(s *trust.RootSpec) {
			s.Revoked = append(s.Revoked, s.Keys[1].Key)
			s.Keys[1].Key = c.public(signer)
		})
	}
	c.by(signer, 9)
	_, h, _ := r.run(o)
	h.generation(t, 9)
	if len(h.reports) > 0 || o.Trust.Version() != 6 {
		t.Errorf("reported %v, at version %d", h.reports, o.Trust.Version())
	}
}

// Whoever may write to the store cannot hand the keys over: X82.
func TestRootsOfOthers(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	o := c.options(func([]byte) error { return nil })
	_, h, _ := r.run(o)
	thief := newSigner(t)
	c.next(thief, func(s *trust.RootSpec) { s.Keys[0].Key = c.public(thief) })
	h.has(t, CodeRoot)
	c.by(thief, 5)
	h.has(t, interpret.Code(wire.CodeUntrusted))
	c.by(r.operator, 6, func(st *wire.Statement, _ *score.Assignment) { st.Epoch = 1 })
	h.generation(t, 6)
	if o.Trust.Version() != 1 || h.trusted != 0 {
		t.Errorf("at version %d", o.Trust.Version())
	}
}

// A version that could not be kept is not believed: after a restart the device would not know it.
func TestRootThatCannotBeKept(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	full := errors.New("no space left")
	fail := true
	o := c.options(func([]byte) error {
		if fail {
			return full
		}
		return nil
	})
	l, h, _ := r.run(o)
	second := newSigner(t)
	c.next(c.root, func(s *trust.RootSpec) { s.Keys[1].Key = c.public(second) })
	h.has(t, "store")
	if o.Trust.Version() != 1 {
		t.Fatalf("at version %d", o.Trust.Version())
	}
	fail = false
	signal(l.roots)
	c.by(second, 2)
	h.generation(t, 2)
}

// A key may say what is in its scope: G62.
func TestScopeOfDocuments(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	c.last.Spec.Keys[1].Scope = trust.Scope{Devices: []string{"office.*"}}
	_, h, _ := r.run(c.options(func([]byte) error { return nil }))
	c.by(r.operator, 1)
	h.has(t, interpret.Code(wire.CodeOutOfScope))
	c.next(c.root, func(s *trust.RootSpec) { s.Keys[1].Scope.Devices = []string{"main.*"} })
	h.generation(t, 1)
}

// After a key was stolen, generations begin anew: what the thief signed with the highest of all does not shut the door, and
// what was signed before does not come back.
func TestGenerationsBeginAnew(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	o := c.options(func([]byte) error { return nil })
	old, _ := seal(t, pi1, 1<<62, r.operator)
	if in, err := o.Trust.document(old, pi1, time.Now()); err != nil || in.Series != 0 {
		t.Fatalf("%d, %v", in.Series, err)
	}
	second := newSigner(t)
	c.last.Metadata.Version, c.last.Spec.Restart = 2, 2
	c.last.Spec.Revoked = []string{c.public(r.operator)}
	c.last.Spec.Keys[1].Key = c.public(second)
	frame, err := c.seal(c.root).Frame()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Trust.advance(frame); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Trust.Opener(pi1)(old); asRefusal(err) == nil || asRefusal(err).Code != interpret.Code(wire.CodeOldEpoch) {
		t.Errorf("what the thief signed counts: %v", err)
	}
	if _, err := o.Trust.document(old, pi1, time.Now()); asRefusal(err) == nil {
		t.Error("it comes back")
	}
	anew, _ := seal(t, pi1, 1, second, func(st *wire.Statement, _ *score.Assignment) { st.Epoch = 2 })
	if in, err := o.Trust.document(anew, pi1, time.Now()); err != nil || in.Series != 2 {
		t.Errorf("%d, %v", in.Series, err)
	}
}

// A store that came back from a backup from before a version was handed on: the device says so, and goes on with what it has.
func TestRootOfABackup(t *testing.T) {
	r := newRig(t)
	c := newChain(r)
	o := c.options(func([]byte) error { return nil })
	l, h, _ := r.run(o)
	r.online(l)
	second := newSigner(t)
	c.next(c.root, func(s *trust.RootSpec) { s.Keys[1].Key = c.public(second) })
	h.until(t, "told that others count", func() bool { return h.trusted == 1 })
	c.by(second, 5)
	h.generation(t, 5)
	s, err := r.js.Stream(t.Context(), wire.StreamDesired)
	if err == nil {
		err = s.Purge(t.Context(), jetstream.WithPurgeSubject(wire.DesiredSubject(wire.RootKey(2))))
	}
	if err != nil {
		t.Fatal(err)
	}
	r.srv.Stop()
	r.restart()
	h.has(t, CodeControlPlane)
	c.by(r.operator, 6, func(st *wire.Statement, _ *score.Assignment) { st.Epoch = 1 })
	h.has(t, interpret.Code(wire.CodeUntrusted)) // the key of before the backup does not count again
	if o.Trust.Version() != 2 {
		t.Errorf("at version %d", o.Trust.Version())
	}
	c.last.Metadata.Version--
	c.next(c.root, func(*trust.RootSpec) {}) // the owner puts it there again
	h.hasNot(t, CodeControlPlane)
}
