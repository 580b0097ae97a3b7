package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
)

// connection is how a command reaches its fleet.
type connection struct {
	o    fleet.Options
	data string
	root string // directory of the trust root
}

// flags adds the flags of the NATS CLI.
func (c *connection) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&c.o.Server, "server", "s", "", "URL of the server, or several with commas between")
	f.StringVar(&c.o.Context, "context", "", "context of the NATS CLI")
	f.StringVar(&c.o.Creds, "creds", "", "NATS credentials file")
	f.StringVar(&c.o.NKey, "nkey", "", "file with the seed of an nkey user")
	f.StringVar(&c.o.User, "user", "", "user, or a token when there is no password")
	f.StringVar(&c.o.Password, "password", "", "password of the user")
	f.StringVar(&c.o.Cert, "tlscert", "", "PEM file of the client certificate")
	f.StringVar(&c.o.Key, "tlskey", "", "PEM file of its key")
	f.StringVar(&c.o.CA, "tlsca", "", "PEM file of the server's CA")
	f.StringVar(&c.o.InboxPrefix, "inbox-prefix", "", "prefix of inboxes, for servers that ask for one")
	dataFlag(cmd, &c.data)
	f.StringVar(&c.root, "trust-root", "", "directory with the trust root that devices follow, or none (default DATA/trust)")
}

// dataFlag adds the flag that names the directory of `continuo up`.
func dataFlag(cmd *cobra.Command, data *string) {
	cmd.Flags().StringVar(data, "data", "", "directory of \"continuo up\" (default $CONTINUO_DATA, else ~/.local/share/continuo)")
}

// dataDir is where `continuo up` keeps keys, configuration and store.
func dataDir(flag string) (string, error) {
	dir := cmp.Or(flag, os.Getenv("CONTINUO_DATA"))
	if dir == "" {
		base := os.Getenv("XDG_DATA_HOME")
		if base == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", fmt.Errorf("cannot find the data directory: %w; name one with --data", err)
			}
			base = filepath.Join(home, ".local", "share")
		}
		dir = filepath.Join(base, "continuo")
	}
	return filepath.Abs(dir)
}

// as is the user of "continuo up" that a command connects as.
type as func(localnats.Dir) fleet.Options

// options says which server it is: what flags or the environment name, else the one that
// `continuo up` runs, or ran, on this machine.
func (c *connection) options(user as) (fleet.Options, error) {
	if c.named() {
		return c.o, nil
	}
	dir, err := dataDir(c.data)
	if err != nil {
		return c.o, err
	}
	switch _, err := os.Stat(filepath.Join(dir, "url")); {
	case errors.Is(err, fs.ErrNotExist):
		if c.data != "" {
			return c.o, fmt.Errorf("cannot use %s: no server ever ran there; start one with continuo up --data %[1]s", dir)
		}
		return c.o, nil
	case err != nil:
		return c.o, fmt.Errorf("cannot find the server of continuo up: %w; --server names another", err)
	}
	o := user(localnats.Dir(dir))
	if c.o.CA != "" {
		o.CA, o.ServerCert = c.o.CA, ""
	}
	o.Cert, o.Key, o.InboxPrefix = c.o.Cert, c.o.Key, c.o.InboxPrefix
	return o, nil
}

// named reports whether flags or the environment say which server it is.
func (c *connection) named() bool {
	named := cmp.Or(c.o.Server, c.o.Context, c.o.Creds, c.o.NKey, c.o.User) != ""
	for _, name := range []string{"NATS_URL", "NATS_CONTEXT", "NATS_CREDS", "NATS_NKEY", "NATS_USER", "NATS_TOKEN"} {
		named = named || os.Getenv(name) != ""
	}
	return named
}

// connect connects. While patient lasts, a server that is not there yet is waited for.
func (c *connection) connect(ctx context.Context, patient bool) (*fleet.Fleet, error) {
	return c.connectAs(ctx, localnats.Dir.Operator, patient)
}

// about reads the device that a command is about, and connects to its fleet.
func (c *connection) about(ctx context.Context, args []string) (fleet.Device, *fleet.Fleet, error) {
	d, err := theDevice(args)
	if err != nil {
		return d, nil, err
	}
	f, err := c.connect(ctx, false)
	return d, f, err
}

func (c *connection) connectAs(ctx context.Context, user as, patient bool) (*fleet.Fleet, error) {
	o, err := c.options(user)
	if err != nil {
		return nil, err
	}
	for {
		f, err := fleet.Connect(ctx, o)
		if err == nil || !patient || ctx.Err() != nil {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// signing is the key that signs documents.
func (c *connection) signing(file string) (nkeys.KeyPair, error) {
	return c.key(file, "operator.nk", "--key")
}

// key reads a key from a file, or the one of this name in the data directory. None is
// ever made here: a new key is one that no device trusts.
func (c *connection) key(file, name, flag string) (nkeys.KeyPair, error) {
	if file == "" {
		dir, err := dataDir(c.data)
		if err != nil {
			return nil, err
		}
		file = filepath.Join(dir, "keys", name)
	}
	kp, err := fleet.LoadKey(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot sign: there is no key in %s; continuo up makes one, and %s names another file", file, flag)
	}
	return kp, err
}
