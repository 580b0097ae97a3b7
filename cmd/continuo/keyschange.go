package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// changing adds the flags of commands that make the next version.
func (r *roots) changing(cmd *cobra.Command) {
	r.flags(cmd)
	cmd.Flags().StringSliceVar(&r.rootKeys, "root-key", nil, "file with the seed of a root key that signs it; may be given several times (default DATA/keys/root.nk, if it is there)")
	cmd.Flags().BoolVar(&r.confirm, "confirm", false, "make the next version; without it the change is only shown")
}

// change makes the next version, or changes the one that is being made.
func (r *roots) change(cmd *cobra.Command, do func(*fleet.Root) error) error {
	dir, c, draft, drafted, err := r.read()
	if err != nil {
		return err
	}
	before := c.Last()
	next := before.Draft()
	if drafted {
		next = draft.Root.Draft()
		next.Metadata.Version = draft.Metadata.Version
	}
	if err := do(&next); err != nil {
		return err
	}
	var signers []wire.Signer
	if r.confirm {
		if signers, err = r.signers(); err != nil {
			return err
		}
	}
	e, err := next.Seal(wire.UnixSeconds(time.Now()), signers...) // which says what is wrong with it
	if err != nil {
		return err
	}
	if done, err := r.format.Write(cmd.OutOrStdout(), next); err != nil {
		return err
	} else if !done {
		fmt.Fprintf(cmd.OutOrStdout(), "version %d of the trust root of fleet %s would\n", next.Metadata.Version, show.Text(next.Metadata.Name))
		for _, line := range before.Changes(next) {
			fmt.Fprintln(cmd.OutOrStdout(), "  "+show.Text(line))
		}
	}
	if !r.confirm {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed: this is a preview; add --confirm to make this version")
		return nil
	}
	if err := dir.KeepDraft(e); err != nil {
		return err
	}
	if _, err := fleet.Follows(before, e); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "made %s, which needs the signatures of more root keys (%v): continuo keys sign --key FILE --confirm\n", dir.DraftFile(), err)
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "made %s, and enough root keys have signed it; devices count it after: continuo keys publish --confirm\n", dir.DraftFile())
	return nil
}

// signers are the root keys that were named, or the one in the data directory.
func (r *roots) signers() (out []wire.Signer, err error) {
	files := r.rootKeys
	if len(files) == 0 {
		data, err := dataDir(r.data)
		if err != nil {
			return nil, err
		}
		files = []string{filepath.Join(data, "keys", "root.nk")}
	}
	for _, file := range files {
		kp, err := fleet.LoadKey(file)
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(r.rootKeys) == 0: // it is kept elsewhere
		case err != nil:
			return nil, err
		default:
			out = append(out, kp)
		}
	}
	return out, nil
}

// bounds are the flags of what a key may.
type bounds struct {
	roles, devices, classes, kinds []string
	policy                         string
	destroy, shell                 bool
	notBefore, notAfter            string
}

func (b *bounds) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&b.roles, "role", nil, "what it may sign: root, publisher, operator, approver, control; several with commas between")
	f.StringSliceVar(&b.devices, "devices", nil, "patterns of devices, as SITE.ID with *: home.*,main.kiosk-* (default all)")
	f.StringSliceVar(&b.classes, "classes", nil, "patterns of class manifests (default all)")
	f.StringSliceVar(&b.kinds, "kinds", nil, "kinds of scores that its manifests may hold (default all)")
	f.StringVar(&b.policy, "policy", "", "loosest preset that its manifests may have: converge, guarded, reviewed (default any)")
	f.BoolVar(&b.destroy, "destroy", false, "its approvals may destroy data")
	f.BoolVar(&b.shell, "shell", false, "its manifests may run shells")
	f.StringVar(&b.notBefore, "not-before", "", "when it may sign first: a time, or a duration from now")
	f.StringVar(&b.notAfter, "not-after", "", "when it may sign no more: a time, or a duration from now such as 720h")
}

// fill writes the flags that were given into k.
func (b *bounds) fill(cmd *cobra.Command, k *trust.Key) (err error) {
	given := cmd.Flags().Changed
	if given("role") {
		k.Roles = typed[trust.Role](b.roles)
	}
	if given("devices") {
		k.Scope.Devices = b.devices
	}
	if given("classes") {
		k.Scope.Classes = b.classes
	}
	if given("kinds") {
		k.Scope.Kinds = typed[score.Kind](b.kinds)
		for _, kind := range k.Scope.Kinds {
			if _, known := score.Lookup(kind); !known {
				return cli.Usagef("there is no kind of score %q", kind)
			}
		}
	}
	if given("policy") {
		switch p := score.Preset(b.policy); p {
		case score.Converge, score.Guarded, score.Reviewed:
			k.Scope.Policy = &score.Policy{Preset: p}
		default:
			return cli.Usagef("--policy is %q: it is converge, guarded or reviewed", b.policy)
		}
	}
	if given("destroy") {
		k.Scope.Destroy = b.destroy
	}
	if given("shell") {
		k.Scope.Shell = b.shell
	}
	for flag, to := range map[string]*time.Time{"not-before": &k.NotBefore, "not-after": &k.NotAfter} {
		if !given(flag) {
			continue
		}
		var at end
		if err := at.Set(cmd.Flag(flag).Value.String()); err != nil {
			return cli.Usagef("--%s %v", flag, err)
		}
		*to = at.time()
	}
	return nil
}

func typed[T ~string](list []string) []T {
	out := make([]T, len(list))
	for i, s := range list {
		out[i] = T(s)
	}
	return out
}

func newKeysAdd() *cobra.Command {
	var r roots
	var b bounds
	var key string
	var overwrite bool
	cmd := &cobra.Command{
		Use:   "add NAME --key KEY --role ROLE... --confirm",
		Short: "Make a key one that devices count, for some roles and within some bounds",
		Long: `add makes the next version of the trust root with one key more. NAME says who has the private key, KEY is
the public key (A…, or an ssh-ed25519 line), a .pub file or the file of the key. With --overwrite the flags
that are given change what the key of that name may.`,
		Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, func(next *fleet.Root) error {
				k, err := next.Find(args[0])
				switch {
				case err == nil && !overwrite:
					return fmt.Errorf("cannot add %q: there is such a key; --overwrite changes it, and continuo keys rotate replaces it", args[0])
				case err != nil && key == "":
					return cli.Usagef("give the public key of %s with --key", args[0])
				case err == nil && key != "":
					return cli.Usagef("--overwrite changes what the key may; continuo keys rotate %s --key KEY replaces the key", k.Name)
				case err != nil:
					k = trust.Key{Name: args[0]}
					if k.Key, err = publicKey(key); err != nil {
						return err
					}
				}
				if err := b.fill(cmd, &k); err != nil {
					return err
				}
				next.Set(k)
				return nil
			})
		},
	}
	r.changing(cmd)
	b.flags(cmd)
	cmd.Flags().StringVar(&key, "key", "", "the public key, or a file with it")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "change a key that is there")
	return cmd
}

func newKeysRotate() *cobra.Command {
	var r roots
	var key string
	cmd := &cobra.Command{
		Use:   "rotate KEY --key NEW --confirm",
		Short: "Replace a key by a new one with the same roles and bounds, and revoke the old one",
		Long: `rotate makes the next version of the trust root with another key in the place of one, which is revoked:
what it signed before stays in force on devices, and what it signs later counts for nothing. As nobody
can tell the two apart in the store, publish everything of a device at once with the new key:
continuo publish FILE... --anew --confirm.`,
		Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			if key == "" {
				return cli.Usagef("give the new public key with --key")
			}
			return r.change(cmd, func(next *fleet.Root) error {
				old, err := next.Find(args[0])
				if err != nil {
					return err
				}
				k := old
				if k.Key, err = publicKey(key); err != nil {
					return err
				}
				next.Revoke(old)
				next.Set(k)
				return nil
			})
		},
	}
	r.changing(cmd)
	cmd.Flags().StringVar(&key, "key", "", "the new public key, or a file with it (required)")
	return cmd
}

func newKeysRevoke() *cobra.Command {
	var r roots
	var restart bool
	cmd := &cobra.Command{
		Use:   "revoke KEY --confirm",
		Short: "Make a key sign nothing any more",
		Long: `revoke makes the next version of the trust root without a key, and remembers that it was revoked. What it
signed before stays in force on devices. If a thief had it, give --restart: the generations of documents
begin anew, what was signed under an earlier version counts no more, whatever its generation, and devices
change nothing until something is published again (continuo publish FILE... --anew --confirm).`,
		Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.change(cmd, func(next *fleet.Root) error {
				k, err := next.Find(args[0])
				if err != nil {
					return err
				}
				next.Revoke(k)
				if restart {
					next.Spec.Restart = next.Metadata.Version
				}
				return nil
			})
		},
	}
	r.changing(cmd)
	cmd.Flags().BoolVar(&restart, "restart", false, "a thief had it: generations begin anew")
	return cmd
}

func newKeysRequire() *cobra.Command {
	var r roots
	var need trust.Required
	cmd := &cobra.Command{
		Use:   "require --documents N --confirm",
		Short: "Say how many keys must sign trust roots, documents, operations and approvals",
		Args:  cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return r.change(cmd, func(next *fleet.Root) error {
				any := false
				for flag, to := range map[string]struct{ have, want *int }{
					"root": {&next.Spec.Required.Root, &need.Root}, "documents": {&next.Spec.Required.Documents, &need.Documents},
					"operations": {&next.Spec.Required.Operations, &need.Operations}, "approvals": {&next.Spec.Required.Approvals, &need.Approvals},
				} {
					if cmd.Flags().Changed(flag) {
						*to.have, any = *to.want, true
					}
				}
				if !any {
					return cli.Usagef("say what needs how many signatures: --root, --documents, --operations, --approvals")
				}
				return nil
			})
		},
	}
	r.changing(cmd)
	f := cmd.Flags()
	f.IntVar(&need.Root, "root", 1, "root keys that must sign a trust root")
	f.IntVar(&need.Documents, "documents", 1, "publishers that must sign what a device should be")
	f.IntVar(&need.Operations, "operations", 1, "operators that must sign an operation")
	f.IntVar(&need.Approvals, "approvals", 1, "approvers that must sign an approval")
	return cmd
}
