package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
)

func newSign() *cobra.Command {
	cmd := signing("")
	cmd.Use = "sign FILE --confirm"
	cmd.Short = "Add a signature to a document that needs more than one"
	return cmd
}

// signing is the command that signs a file, or draft if no file is named.
func signing(draft string) *cobra.Command {
	var c connection
	var key, toSign, signature string
	var confirm bool
	var format show.Format
	cmd := &cobra.Command{
		Long: `sign shows what a signed document says and who it is for (continuo publish --out, continuo approve --out,
continuo keys), and with --confirm adds a signature to the file. Without a connection a person signs
where the key is. A key of OpenSSH signs in three steps:

  continuo sign FILE --to-sign bytes
  ssh-keygen -Y sign -n continuo -f KEY bytes
  continuo sign FILE --ssh-signature bytes.sig --confirm

continuo publish FILE, or continuo keys publish, then says whether that is enough.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 0 && draft == "" {
				return cli.Usagef("name one FILE")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := c.rootDir(key)
			if err != nil {
				return err
			}
			file, keyName := dir.DraftFile(), "root.nk"
			if len(args) > 0 {
				file = args[0]
			}
			e, err := fleet.ReadEnvelope(file)
			if err != nil {
				return fmt.Errorf("cannot sign: %w", err)
			}
			s, err := fleet.ReadSigned(e)
			if err != nil {
				return err
			}
			root, err := c.known(key)
			if err != nil {
				return err
			}
			if err := showSigned(cmd.OutOrStdout(), s, root, format); err != nil {
				return err
			}
			switch {
			case toSign != "":
				if err := os.WriteFile(toSign, e.ToSign(), 0o600); err != nil {
					return fmt.Errorf("cannot write what is to be signed: %w", err)
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "sign it: ssh-keygen -Y sign -n continuo -f KEY %s\n", toSign)
				return nil
			case !confirm:
				fmt.Fprintln(cmd.ErrOrStderr(), "nothing was signed: this is a preview; add --confirm to sign it")
				return nil
			case signature != "":
				armored, err := os.ReadFile(signature)
				if err != nil {
					return fmt.Errorf("cannot read the signature: %w", err)
				}
				public, err := e.AddSSHSignature(armored)
				if err == nil {
					err = fleet.MaySign(root, sshKey(public), s)
				}
				if err != nil {
					return err
				}
			default:
				if s.Root == nil {
					keyName = "operator.nk"
				}
				signer, err := c.key(key, keyName, "--key")
				if err == nil {
					err = fleet.MaySign(root, signer, s)
				}
				if err == nil {
					err = e.Sign(signer)
				}
				if err != nil {
					return err
				}
			}
			if err := fleet.WriteEnvelope(file, e); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "signed: %s has %s now\n", file, show.Plural(len(e.Signatures), "signature"))
			return nil
		},
	}
	dataFlag(cmd, &c.data)
	f := cmd.Flags()
	f.StringVar(&c.root, "trust-root", "", "directory with the trust root that devices follow, or none (default DATA/trust)")
	f.StringVar(&key, "key", "", "file with the seed of the key (default DATA/keys/operator.nk, for a trust root DATA/keys/root.nk)")
	f.StringVar(&toSign, "to-sign", "", "file to write the bytes to that ssh-keygen -Y sign signs")
	f.StringVar(&signature, "ssh-signature", "", "file with the signature that ssh-keygen -Y sign made")
	f.BoolVar(&confirm, "confirm", false, "sign; without it the document is only shown")
	format.Flag(f)
	return cmd
}

// An sshKey is the public key of somebody who has signed already.
type sshKey string

func (k sshKey) PublicKey() (string, error) { return string(k), nil }
func (sshKey) Sign([]byte) ([]byte, error)  { return nil, errors.New("there is no private key") }

// showSigned says what somebody is about to sign.
func showSigned(w io.Writer, s fleet.Signed, root fleet.Root, format show.Format) error {
	if done, err := format.Write(w, s); done || err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, issued %s, %s\n", what(s), s.Issued.Format(time.RFC3339), show.Plural(s.Signatures, "signature"))
	switch {
	case s.Assignment != nil:
		for _, m := range s.Assignment.Spec.Manifests {
			fmt.Fprintf(w, "  manifest %s, generation %d, with %s\n", show.Text(m.Metadata.Name), m.Metadata.Generation, show.Plural(len(m.Spec.Scores), "score"))
		}
	case s.Operation != nil:
		op := *s.Operation
		fmt.Fprintf(w, "  by %s, valid until %s, because: %s\n", show.Text(op.Actor), s.Expires.Format(time.RFC3339), show.Text(cmp.Or(op.Reason, "no reason is given")))
		says := "lets"
		if op.Verb == interpret.VerbReject {
			says = "says no to"
		}
		for _, a := range op.Approvals {
			fmt.Fprintf(w, "  %s %s %s/%s, effect %s, on %s\n", says, show.Text(string(a.Action)), show.Text(a.Manifest), show.Text(string(a.Score)), show.Text(string(a.Effect)), show.Text(fmt.Sprint(a.Resources)))
		}
	case s.Root != nil:
		for _, line := range root.Changes(*s.Root) {
			fmt.Fprintln(w, "  "+show.Text(line))
		}
	}
	return nil
}

func what(s fleet.Signed) string {
	switch {
	case s.Assignment != nil:
		return fmt.Sprintf("generation %d of what %s should be", s.Generation, show.Text(s.For))
	case s.Operation != nil:
		return fmt.Sprintf("operation %s of %s: %s", show.Text(s.Operation.ID), show.Text(s.For), show.Text(string(s.Operation.Verb)))
	}
	return fmt.Sprintf("version %d of the trust root of fleet %s", s.Generation, show.Text(s.Root.Metadata.Name))
}

// holdDocument writes what others have to sign as well.
func holdDocument(cmd *cobra.Command, done []fleet.Publication, out string) error {
	done = slices.DeleteFunc(done, func(p fleet.Publication) bool { return !p.Changes() })
	switch len(done) {
	case 0:
		fmt.Fprintln(cmd.ErrOrStderr(), unchanged)
		return nil
	case 1:
	default:
		return cli.Usagef("--out is for one device at a time, and these manifests are for %d", len(done))
	}
	return writeHeld(cmd, done[0].Envelope, out)
}

// hold writes an operation that others have to sign as well.
func (a *asking) hold(cmd *cobra.Command, op interpret.Operation) error {
	root, err := a.known(a.key)
	if err != nil {
		return err
	}
	o := fleet.OperateOptions{Site: a.device.Site, Root: root}
	if !a.unsigned {
		if o.Signer, err = a.signing(a.key); err != nil {
			return err
		}
	}
	op.ID = cmp.Or(op.ID, fleet.NewOperationID())
	e, err := fleet.SignOperation(op, o)
	if err != nil {
		return err
	}
	return writeHeld(cmd, e, a.out)
}

func writeHeld(cmd *cobra.Command, e fleet.Envelope, out string) error {
	if err := fleet.WriteEnvelope(out, e); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "written to %[1]s; others sign it:  continuo sign %[1]s --confirm\nand then:  continuo publish %[1]s --confirm\n", out)
	return nil
}

// publishSigned publishes files that hold signed documents. signed is false if they are manifests.
func (c *connection) publishSigned(cmd *cobra.Command, files []string, key string, confirm bool, format show.Format) (signed bool, err error) {
	var all []fleet.Envelope
	for _, file := range files {
		if e, err := fleet.ReadEnvelope(file); err == nil {
			all = append(all, e)
		}
	}
	switch len(all) {
	case 0:
		return false, nil
	case len(files):
	default:
		return true, cli.Usagef("publish manifests and signed documents one after the other")
	}
	f, err := c.connect(cmd.Context(), false)
	if err != nil {
		return true, err
	}
	defer f.Close()
	root, err := c.followed(cmd.Context(), f, key)
	if err != nil {
		return true, err
	}
	var done []fleet.Signed
	for _, e := range all {
		s, err := f.PublishSigned(cmd.Context(), e, root, !confirm)
		if err != nil {
			return true, err
		}
		done = append(done, s)
	}
	return true, showPublishedSigned(cmd, done, confirm, format)
}

func showPublishedSigned(cmd *cobra.Command, done []fleet.Signed, confirm bool, format show.Format) error {
	if written, err := format.Write(cmd.OutOrStdout(), done); written || err != nil {
		return err
	}
	for _, s := range done {
		fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(what(s)))
	}
	if !confirm {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was published: enough have signed, and this is a preview; add --confirm to publish it")
		return nil
	}
	for _, s := range done {
		d, err := s.Device()
		switch {
		case err != nil:
		case s.Operation != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "asked for; what comes of it: continuo receipts %s %s\n", name(d), show.Text(s.Operation.ID))
		default:
			fmt.Fprintf(cmd.ErrOrStderr(), "published; what comes of it: continuo status %s --wait\n", name(d))
		}
	}
	return nil
}
