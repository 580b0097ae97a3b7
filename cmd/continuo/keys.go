package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nkeys"
	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
)

func newKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys COMMAND",
		Short: "Say whose signatures the devices of a fleet count, and for what",
		Long: `keys makes and changes the trust root of a fleet: the public keys that devices count, with their roles
and bounds. It is a signed file for each version (DATA/trust/1.json, 2.json, …), which holds no secret and
can lie in git. add, rotate, revoke and require make the next version (DATA/trust/next.json) and sign it
if the root key is here; sign adds signatures of other root keys; publish hands it on to the devices.

Roles are root (trust roots, and nothing else), publisher (what devices should be), operator (operations
that destroy nothing), approver (approvals of single actions) and control (answers to heartbeats). None
is part of another one.`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.Group,
	}
	sign := signing("draft")
	sign.Use, sign.Short = "sign [FILE] --confirm", "Add the signature of a root key to the next version"
	cmd.AddCommand(newKeysGenerate(), newKeysInit(), newKeysList(), newKeysShow(), newKeysAdd(), newKeysRotate(), newKeysRevoke(), newKeysRequire(), sign, newKeysPublish())
	return cmd
}

func newKeysGenerate() *cobra.Command {
	var format show.Format
	cmd := &cobra.Command{
		Use:   "generate FILE",
		Short: "Make a signing key: a file that only its owner may read",
		Long: `generate makes a key and writes its seed to a file with mode 0600. It prints the public key, which
continuo keys add makes one that devices count. An ssh-ed25519 key of OpenSSH can be used as well.`,
		Args: cli.Files,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one FILE")
			}
			if _, err := os.Lstat(args[0]); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("cannot make a key: %s is there already, and a key is never replaced", args[0])
			}
			kp, err := fleet.EnsureKey(args[0], nkeys.CreateAccount)
			if err != nil {
				return err
			}
			public, err := kp.PublicKey()
			if err != nil {
				return fmt.Errorf("cannot read the new key: %w", err)
			}
			made := generated{File: args[0], Key: public}
			if made.Fingerprint, err = wire.Fingerprint(public); err != nil {
				return err
			}
			if done, err := format.Write(cmd.OutOrStdout(), made); done || err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), public)
			return err
		},
	}
	format.Flag(cmd.Flags())
	return cmd
}

// generated is a key that was made.
type generated struct {
	File        string `json:"file"`
	Key         string `json:"key"`
	Fingerprint string `json:"fingerprint"`
}

func newKeysInit() *cobra.Command {
	var r roots
	var name string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the first version of a trust root, and its keys",
		Long: `init makes the first version of the trust root in DATA/trust, signed by DATA/keys/root.nk, with the keys
of the fleet in DATA/keys. Keys that are there are used, and no trust root is replaced. continuo up does
this by itself.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := dataDir(r.data)
			if err != nil {
				return err
			}
			dir := localnats.Dir(data)
			if c, err := dir.Roots().Read(); err != nil || len(c) > 0 {
				if err == nil {
					err = fmt.Errorf("cannot make a trust root: version %d is in %s", c.Last().Metadata.Version, dir.Roots())
				}
				return err
			}
			c, err := dir.MakeTrust(cmp.Or(name, localnats.FleetName))
			if err != nil {
				return err
			}
			if err := r.show(cmd, c.Last()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "made %s, which devices begin with (trust: {root: FILE}); move %s to where no thief finds it\n", dir.Roots().File(1), dir.RootKey())
			return nil
		},
	}
	dataFlag(cmd, &r.data)
	cmd.Flags().StringVar(&name, "fleet", "", "name of the fleet (default "+localnats.FleetName+")")
	r.format.Flag(cmd.Flags())
	return cmd
}

// roots are what the commands about a trust root have.
type roots struct {
	data, dir string
	format    show.Format

	rootKeys []string
	confirm  bool
}

func (r *roots) flags(cmd *cobra.Command) {
	dataFlag(cmd, &r.data)
	cmd.Flags().StringVar(&r.dir, "trust-root", "", "directory with the trust root (default DATA/trust)")
	r.format.Flag(cmd.Flags())
}

func (r *roots) where() (fleet.RootDir, error) {
	if r.dir != "" {
		return fleet.RootDir(r.dir), nil
	}
	data, err := dataDir(r.data)
	return localnats.Dir(data).Roots(), err
}

// read gives what is there: the versions, and the one that is being made.
func (r *roots) read() (dir fleet.RootDir, c fleet.Chain, draft fleet.SignedRoot, drafted bool, err error) {
	if dir, err = r.where(); err == nil {
		c, err = dir.Read()
	}
	if err == nil && len(c) == 0 {
		err = fmt.Errorf("cannot find a trust root in %s: continuo up or continuo keys init makes one", dir)
	}
	if err == nil {
		draft, drafted, err = dir.Draft()
	}
	// One that others have overtaken is nothing any more.
	drafted = drafted && err == nil && draft.Metadata.Version == c.Last().Metadata.Version+1
	return dir, c, draft, drafted, err
}

func newKeysList() *cobra.Command {
	var r roots
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys that devices count, with roles, bounds and validity",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, c, draft, drafted, err := r.read()
			if err != nil {
				return err
			}
			if err := r.show(cmd, c.Last()); err != nil {
				return err
			}
			if drafted {
				fmt.Fprintf(cmd.ErrOrStderr(), "version %d is being made:\n", draft.Metadata.Version)
				tell(cmd, c.Last(), draft.Root)
				fmt.Fprintln(cmd.ErrOrStderr(), "hand it on: continuo keys publish --confirm")
			}
			return nil
		},
	}
	r.flags(cmd)
	return cmd
}

func newKeysShow() *cobra.Command {
	var r roots
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show one key: by its name, its public key or its fingerprint",
		Args:  oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, c, _, _, err := r.read()
			if err != nil {
				return err
			}
			k, err := c.Last().Find(args[0])
			if err != nil {
				return err
			}
			if done, err := r.format.Write(cmd.OutOrStdout(), k); done || err != nil {
				return err
			}
			print, err := wire.Fingerprint(k.Key)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "name         %s\nkey          %s\nfingerprint  %s\nroles        %s\nscope        %s\nvalid        %s\n",
				show.Text(k.Name), k.Key, print, roleList(k), cmp.Or(k.Scope.String(), "everything of its roles that destroys nothing and runs no shell"), cmp.Or(k.Validity(), "always"))
			return err
		},
	}
	r.flags(cmd)
	return cmd
}

func oneKey(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("give one KEY: its name, its public key or its fingerprint")
	}
	return nil
}

// show shows a version.
func (r *roots) show(cmd *cobra.Command, root fleet.Root) error {
	if done, err := r.format.Write(cmd.OutOrStdout(), root); done || err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "trust root of fleet %s, version %d; %s\n", show.Text(root.Metadata.Name), root.Metadata.Version, root.Spec.Required)
	t := show.NewTable("NAME", "ROLES", "VALID", "FINGERPRINT", "SCOPE")
	for _, k := range root.Spec.Keys {
		print, err := wire.Fingerprint(k.Key)
		if err != nil {
			return err
		}
		t.Row(k.Name, roleList(k), cmp.Or(k.Validity(), "always"), print, cmp.Or(k.Scope.String(), "-"))
	}
	for _, k := range root.Spec.Revoked {
		print, err := wire.Fingerprint(k)
		if err != nil {
			return err
		}
		t.Row("-", "revoked", "never", print, "-")
	}
	return t.Write(cmd.OutOrStdout())
}

func roleList(k trust.Key) string {
	var out []string
	for _, r := range k.Roles {
		out = append(out, string(r))
	}
	return strings.Join(out, ",")
}

// tell says what a version changes.
func tell(cmd *cobra.Command, from, to fleet.Root) {
	for _, line := range from.Changes(to) {
		fmt.Fprintln(cmd.ErrOrStderr(), "  "+show.Text(line))
	}
}

// publicKey reads a public key: as text, or from a file with a seed or a .pub line.
func publicKey(text string) (string, error) {
	if public, err := wire.CheckKey(text); err == nil {
		return public, nil
	}
	if strings.HasSuffix(text, ".pub") {
		b, err := os.ReadFile(text)
		if err != nil {
			return "", fmt.Errorf("cannot read a public key: %w", err)
		}
		return wire.CheckKey(strings.TrimSpace(string(b)))
	}
	if _, err := os.Stat(text); err != nil {
		return "", fmt.Errorf("cannot use %.80q as a key: it is no public key, and no file: %w", filepath.Base(text), errors.Unwrap(err))
	}
	kp, err := fleet.LoadKey(text)
	if err != nil {
		return "", err
	}
	public, err := kp.PublicKey()
	if err == nil {
		public, err = wire.CheckKey(public)
	}
	return public, err
}
