package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// A device begins with the trust root of its configuration, goes on with the one that it accepted last, and is not stopped by
// a copy of that which is damaged.
func TestTrustRootIsKept(t *testing.T) {
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteAccount, bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	root := func(version uint64) wire.Envelope {
		r := trust.Root{APIVersion: score.APIVersion, Kind: trust.Kind, Metadata: trust.RootMetadata{Name: "home", Version: version}}
		r.Spec.Keys = []trust.Key{{Key: public, Name: "drawer", Roles: []trust.Role{trust.RoleRoot}}}
		e, err := r.Seal(1, key)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	dir := t.TempDir()
	c := config.Config{State: dir, Trust: config.Trust{Root: filepath.Join(dir, "root.json")}}
	at := func(want uint64) {
		t.Helper()
		tr, err := trustOf(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.Version(); got != want {
			t.Errorf("at version %d, want %d", got, want)
		}
	}
	first, err := root(1).DSSE()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Trust.Root, first, 0o644); err != nil {
		t.Fatal(err)
	}
	at(1)
	third, err := root(3).Frame()
	if err != nil {
		t.Fatal(err)
	}
	if err := keepRoot(dir)(third); err != nil {
		t.Fatal(err)
	}
	at(3)
	for i := range third {
		torn := bytes.Clone(third)
		torn[i] ^= 0x40
		if err := os.WriteFile(filepath.Join(dir, rootFile), torn, 0o600); err != nil {
			t.Fatal(err)
		}
		at(1)
	}
	if err := os.WriteFile(c.Trust.Root, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := trustOf(c); err == nil {
		t.Error("a trust root that is none is used")
	}
}
