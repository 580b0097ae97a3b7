package fleet

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// FollowRoots reads the versions of the trust root that follow r in the store. What does not follow is of somebody who may
// write there and has no root key: it ends the chain, and is no error.
func (f *Fleet) FollowRoots(ctx context.Context, r Root) (Chain, error) {
	var c Chain
	for {
		doc, err := f.stored(ctx, wire.RootKey(r.Metadata.Version+1))
		if err != nil {
			return c, fmt.Errorf("cannot read the trust root of the fleet: %w", err)
		}
		e, err := wire.ParseFrame(doc.frame)
		if err != nil || !doc.found {
			return c, nil
		}
		next, err := r.Next(e)
		if err != nil {
			return c, nil
		}
		c = append(c, SignedRoot{next, e})
		r = next
	}
}

// A RootTakenError says that somebody else published a version of the trust root. Nothing was published.
type RootTakenError struct{ Version uint64 }

func (e *RootTakenError) Error() string {
	return fmt.Sprintf("cannot publish version %d of the trust root: somebody else published another one: look at it, and make the change again", e.Version)
}

// PublishRoot makes the version in e the one that devices follow after r. Enough root keys must have signed it. What was
// stored in its place by somebody without a root key is replaced.
func (f *Fleet) PublishRoot(ctx context.Context, r Root, e Envelope) (Root, error) {
	next, err := Follows(r, e)
	if err != nil {
		return Root{}, fmt.Errorf("cannot publish the trust root: no device would follow it: %w", err)
	}
	version := next.Metadata.Version
	fail := func(err error) (Root, error) {
		return Root{}, fmt.Errorf("cannot publish version %d of the trust root: %w", version, err)
	}
	frame, err := e.Frame()
	if err != nil {
		return fail(err)
	}
	st, _, err := e.Peek()
	if err != nil {
		return fail(err)
	}
	const attempts = 3
	for i := 1; ; i++ {
		now, err := f.stored(ctx, wire.RootKey(version))
		if err != nil {
			return fail(err)
		}
		if now.found && bytes.Equal(now.frame, frame) {
			return next, nil
		}
		if other, err := wire.ParseFrame(now.frame); now.found && err == nil && r.Metadata.Version > 0 {
			if _, err := r.Next(other); err == nil {
				if bytes.Equal(other.Statement, e.Statement) {
					return next, nil // the same, signed by others
				}
				return Root{}, &RootTakenError{version}
			}
		}
		err = f.replace(ctx, wire.RootKey(version), frame, wire.Announce(st), now.revision)
		switch {
		case err == nil:
			return next, nil
		case err != errStale || i == attempts:
			return fail(err)
		}
	}
}

// KeepRoots puts the versions of c into the store that are not there: a new one, or one that came back from a backup.
func (f *Fleet) KeepRoots(ctx context.Context, c Chain) error {
	r := Root{}
	for i, s := range c {
		if i == 0 && s.Metadata.Version > 1 {
			r = s.Root // what came before it is not known here, and its own signatures were checked
			continue
		}
		var err error
		if r, err = f.PublishRoot(ctx, r, s.Envelope); err != nil {
			return err
		}
	}
	return nil
}

// FirstRoot is the first version of the trust root of a fleet that one person runs: a key that signs trust roots, and the two
// keys of the fleet, which may what they could without one.
func FirstRoot(name string, root wire.Signer, keys Keys, now time.Time) (SignedRoot, error) {
	operator, control, err := keys.Trusted()
	if err != nil {
		return SignedRoot{}, err
	}
	public, err := root.PublicKey()
	if err != nil {
		return SignedRoot{}, fmt.Errorf("cannot read the root key: %w", err)
	}
	r := trust.New(name,
		trust.Key{Key: public, Name: "root", Roles: []trust.Role{trust.RoleRoot}},
		trust.Key{Key: operator, Name: "operator", Roles: []trust.Role{trust.RolePublisher, trust.RoleOperator, trust.RoleApprover}, Scope: trust.Scope{Destroy: true, Shell: true}},
		trust.Key{Key: control, Name: "control", Roles: []trust.Role{trust.RoleControl}},
	)
	e, err := r.Seal(wire.UnixSeconds(now), root)
	return SignedRoot{r, e}, err
}
