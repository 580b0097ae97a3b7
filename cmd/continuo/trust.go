package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
)

// noRoot in the place of a directory says that devices follow no trust root: they were told single keys.
const noRoot = "none"

// rootDir is where the trust root is, or nothing if devices follow none. For a server that was named and a key that was
// named, the trust root of "continuo up" on this machine is not the one that is meant.
func (c *connection) rootDir(key string) (fleet.RootDir, error) {
	switch {
	case c.root == noRoot, c.root == "" && key != "" && c.named():
		return "", nil
	case c.root != "":
		return fleet.RootDir(c.root), nil
	}
	dir, err := dataDir(c.data)
	return localnats.Dir(dir).Roots(), err
}

// known is the trust root as far as it is known on this machine.
func (c *connection) known(key string) (fleet.Root, error) {
	dir, err := c.rootDir(key)
	if err != nil || dir == "" {
		return fleet.Root{}, err
	}
	chain, err := dir.Read()
	if err == nil && len(chain) == 0 && c.root != "" {
		err = fmt.Errorf("cannot use the trust root in %s: there is none; --trust-root %s says that devices follow none", dir, noRoot)
	}
	return chain.Last(), err
}

// followed is the trust root that devices follow now. Whoever may write to the store cannot make up another one: what is
// known on this machine vouches for it.
func (c *connection) followed(ctx context.Context, f *fleet.Fleet, key string) (fleet.Root, error) {
	r, err := c.known(key)
	if err != nil || r.Metadata.Version == 0 {
		return r, err
	}
	next, err := f.FollowRoots(ctx, r)
	if len(next) > 0 {
		r = next.Last()
	}
	return r, err
}

// readable is whose documents are read back: with a trust root those of its publishers, else of the key itself.
func readable(r fleet.Root, signer nkeys.KeyPair) (fleet.KeySet, error) {
	if r.Metadata.Version > 0 {
		return r.Kept()
	}
	public, err := signer.PublicKey()
	if err != nil {
		return fleet.KeySet{}, fmt.Errorf("cannot read the operator key: %w", err)
	}
	return fleet.DocumentKeys(public)
}

// A publisher is who reads and changes what is published: a connection, the key, the trust root that counts, and whose
// signatures are read.
type publisher struct {
	*fleet.Fleet
	signer nkeys.KeyPair
	root   fleet.Root
	keys   fleet.KeySet
}

func (c *connection) publisher(ctx context.Context, key string) (p publisher, err error) {
	if p.signer, err = c.signing(key); err != nil {
		return p, err
	}
	if p.Fleet, err = c.connect(ctx, false); err != nil {
		return p, err
	}
	if p.root, err = c.followed(ctx, p.Fleet, key); err == nil {
		p.keys, err = readable(p.root, p.signer)
	}
	if err != nil {
		p.Close()
	}
	return p, err
}
