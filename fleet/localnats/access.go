package localnats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// Access are the keys behind every credential of the fleet; those that are missing are made.
func (dir Dir) Access() (access.Keys, error) {
	return access.OpenKeys(func(name string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
		return fleet.EnsureKey(filepath.Join(dir.accessKeys(), strings.ToLower(name)+".nk"), create)
	})
}

func (dir Dir) accessKeys() string { return filepath.Join(string(dir), "keys", "nats") }
func (dir Dir) jwts() string       { return filepath.Join(string(dir), "jwt") }

// creds is the credentials file beside the file of a key.
func creds(keyFile string) string { return strings.TrimSuffix(keyFile, ".nk") + ".creds" }

// configure writes the configuration of the server, and what its own people need.
func (s *Server) configure() error {
	if err := s.tellOfNkeys(); err != nil {
		return err
	}
	keys, err := s.dir.Access()
	if err != nil {
		return err
	}
	for name, role := range map[string]wire.Role{"operator": wire.RoleOwner, "control": wire.RoleController} {
		issue := func(public string) (string, error) {
			return keys.User(name+"-of-"+string(role), role, nil, public, time.Time{})
		}
		if err := ensureCreds(keys, s.dir.user(name), issue); err != nil {
			return err
		}
	}
	if err := ensureCreds(keys, s.dir.user("system"), keys.SystemUser); err != nil {
		return err
	}
	devices, err := s.dir.Devices()
	if err != nil {
		return err
	}
	for _, d := range devices {
		if err := s.dir.ensureDevice(keys, d); err != nil {
			return err
		}
	}
	if err := s.dir.renameStore(keys); err != nil {
		return err
	}
	c := access.ServerConfig{
		Name: "continuo", Listen: s.o.Listen, StoreDir: filepath.Join(string(s.dir), "store"), JWTDir: s.dir.jwts(),
		System: keys.PublicAccount(access.System),
	}
	if s.o.TLS != nil {
		c.TLS = &access.TLS{Cert: s.o.TLS.Cert, Key: s.o.TLS.Key}
	}
	if c.Operator, err = keys.Operator(); err != nil {
		return err
	}
	if c.Accounts, err = keys.Accounts(s.dir.account); err != nil {
		return err
	}
	text, err := c.Text()
	if err != nil {
		return err
	}
	return s.dir.write(configName, text)
}

// account is the JWT of an account that counted when a server ran last, or nothing.
func (dir Dir) account(public string) string { return dir.read(filepath.Join("jwt", public+".jwt")) }

func (dir Dir) ensureDevice(keys access.Keys, d fleet.Device) error {
	// Without an end: whoever has this directory brings the file to the device, and would have to bring it again.
	return ensureCreds(keys, dir.device(d), func(public string) (string, error) { return keys.Issuer().Device(d, public, time.Time{}) })
}

// ensureCreds makes the key of a user, and writes his credential beside it, unless there is one that these keys issued.
func ensureCreds(keys access.Keys, keyFile string, issue func(public string) (string, error)) error {
	kp, err := fleet.EnsureKey(keyFile, nkeys.CreateUser)
	if err != nil {
		return err
	}
	public, err := kp.PublicKey()
	if err != nil {
		return fmt.Errorf("cannot use the key in %s: %w", keyFile, err)
	}
	file := creds(keyFile)
	if text, err := os.ReadFile(file); err == nil {
		if c, err := keys.Read(text); err == nil && c.User == public && (c.NotAfter.IsZero() || time.Now().Before(c.NotAfter)) {
			return nil
		}
	}
	token, err := issue(public)
	if err != nil {
		return err
	}
	text, err := access.Creds(token, kp)
	if err != nil {
		return err
	}
	return Dir(filepath.Dir(file)).write(filepath.Base(file), string(text))
}

// forEver is when a key that was revoked counts again: a credential that somebody still gets for it is worth nothing either.
var forEver = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// Revoke makes whatever is issued to a user worth nothing, for ever: who comes back has another key. A server that is
// running here ends his connections.
func (dir Dir) Revoke(ctx context.Context, a access.Account, userPublicKey string) error {
	keys, err := dir.Access()
	if err != nil {
		return err
	}
	alone, err := os.OpenFile(filepath.Join(string(dir), "jwt.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("cannot revoke a credential: %w", err)
	}
	defer alone.Close()
	if err := syscall.Flock(int(alone.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("cannot revoke a credential: %w", err)
	}
	if lock, err := dir.lock(); err == nil { // no server is running: it will read this when it starts
		defer lock.Close()
		key := keys.PublicAccount(a)
		token, err := keys.Revoke(a, dir.account(key), userPublicKey, forEver)
		if err != nil {
			return err
		}
		return dir.write(filepath.Join("jwt", key+".jwt"), token)
	}
	nc, err := dir.connect("system").Dial()
	if err != nil {
		return fmt.Errorf("cannot revoke a credential: %w", err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return keys.RevokeOn(ctx, nc, a, userPublicKey, forEver)
}

// renameStore gives the account of everything that is stored the name by which a server knows it now.
func (dir Dir) renameStore(keys access.Keys) error {
	store := filepath.Join(string(dir), "store", "jetstream")
	before, now := filepath.Join(store, string(access.Control)), filepath.Join(store, keys.PublicAccount(access.Control))
	if _, err := os.Stat(now); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(before, now); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot take over what an older version stored: %w", err)
	}
	return nil
}

// tellOfNkeys says what to do when a directory is from before credentials were files with a JWT.
func (s *Server) tellOfNkeys() error {
	if _, err := os.Stat(s.dir.accessKeys()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	devices, err := s.dir.Devices()
	if err != nil || len(devices) == 0 {
		return err
	}
	s.o.Notice(fmt.Errorf("devices do not log in with a key alone any more: of %d devices the new credential is beside the old one, in %s/*.creds. "+
		"Where an agent runs on another machine, copy it there, and write into its agent.yaml: credentials: {type: creds, file: …}", len(devices), filepath.Join(string(s.dir), "devices")))
	return nil
}
