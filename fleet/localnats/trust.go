package localnats

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
)

// FleetName is what the trust root of a fleet on one machine is called.
const FleetName = "home"

// Roots is where the trust root of the fleet is. It holds no secret.
func (dir Dir) Roots() fleet.RootDir { return fleet.RootDir(filepath.Join(string(dir), "trust")) }

// RootKey is the file with the key that signs trust roots. Nothing needs it but a change of who is trusted: it is to be kept
// elsewhere.
func (dir Dir) RootKey() string { return filepath.Join(string(dir), "keys", "root.nk") }

// Trust is the trust root of the fleet. If there is none, the first version is made: the two keys of the fleet may what they
// could without one.
func (dir Dir) Trust() (fleet.Chain, error) { return dir.MakeTrust(FleetName) }

// MakeTrust is Trust for a fleet with a name of its own.
func (dir Dir) MakeTrust(name string) (fleet.Chain, error) {
	c, err := dir.Roots().Read()
	if err != nil || len(c) > 0 {
		return c, err
	}
	keys, err := dir.Keys()
	if err != nil {
		return nil, err
	}
	root, err := fleet.EnsureKey(dir.RootKey(), nkeys.CreateAccount)
	if err != nil {
		return nil, err
	}
	first, err := fleet.FirstRoot(name, root, keys, time.Now())
	if err != nil {
		return nil, fmt.Errorf("cannot make the trust root of the fleet: %w", err)
	}
	if err := dir.Roots().Keep(first); err != nil {
		if c, rerr := dir.Roots().Read(); rerr == nil && len(c) > 0 {
			return c, nil // somebody else was faster
		}
		return nil, err
	}
	return fleet.Chain{first}, nil
}
