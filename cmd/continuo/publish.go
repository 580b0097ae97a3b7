package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

func newPublish() *cobra.Command {
	var c connection
	var key, site, out string
	var confirm, anew bool
	var p patience
	var format show.Format
	cmd := &cobra.Command{
		Use:   "publish FILE... --confirm",
		Short: "Sign manifests and publish them to their devices",
		Long: `publish makes manifests part of what their devices should be. A manifest replaces the one
of the same name; the others of a device stay. All files are checked first, and nothing is
published if anything is wrong. Files beside a manifest that it takes contents from (contentFrom)
are published with it. Without --confirm it only shows what would change, and ends
with 0. continuo plan DEVICE says what a device would do. FILE is YAML or JSON; - is standard
input. With a trust root (continuo keys), what its devices would refuse is not published. Where more
than one publisher has to sign, --out FILE writes the signed document of one device, continuo sign FILE
adds a signature, and continuo publish FILE --confirm publishes it, an operation likewise.`,
		Args: cli.Files,
		RunE: func(cmd *cobra.Command, files []string) error {
			if out != "" && confirm {
				return cli.Usagef("--out and --confirm do not go together: what is written to a file is published later")
			}
			if signed, err := c.publishSigned(cmd, files, key, confirm, format); signed {
				return err
			}
			var b besides
			defer b.close()
			manifests, found, err := readManifests(cmd.Context(), files, cmd.InOrStdin(), &b)
			if err != nil {
				return err
			}
			for _, d := range found {
				fmt.Fprintln(cmd.ErrOrStderr(), d)
			}
			if schemas.Errors(found) > 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "nothing was published")
				return cli.ErrInvalid
			}
			for _, m := range manifests {
				if m.Spec.Target.Selector != nil {
					return cli.Usagef("manifest %q has a selector, and this version publishes to single devices only: give target.device", m.Metadata.Name)
				}
			}
			signer, err := c.signing(key)
			if err != nil {
				return err
			}
			ctx, cancel := p.context(cmd.Context())
			defer cancel()
			f, err := c.connect(ctx, p.wait)
			if err != nil {
				return err
			}
			defer f.Close()
			if confirm {
				if err := b.store(ctx, f); err != nil {
					return err
				}
			}
			root, err := c.followed(ctx, f, key)
			if err != nil {
				return err
			}
			o := fleet.PublishOptions{Signer: signer, Site: site, DryRun: !confirm, Root: root, Anew: anew, Hold: out != "", Actor: self()}
			done, err := f.Publish(ctx, manifests, o)
			if err != nil {
				return halfPublished(cmd, done, format, err)
			}
			if out != "" {
				return holdDocument(cmd, done, out)
			}
			if p.wait && confirm {
				return waitPublished(ctx, cmd, f, manifests, done, p, format)
			}
			planned, err := withRemovals(ctx, f, manifests, done)
			if err != nil {
				return err
			}
			return showPublished(cmd, planned, confirm, format)
		},
	}
	c.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&key, "key", "", "file with the seed of the operator key (default DATA/keys/operator.nk)")
	fl.StringVar(&site, "site", "", "site of the devices (default main)")
	fl.BoolVar(&confirm, "confirm", false, "publish; without it the changes are only shown")
	fl.BoolVar(&anew, "anew", false, "begin with nothing where devices do not take any more what is published now")
	fl.StringVar(&out, "out", "", "file to write the signed document of one device to, and publish nothing")
	p.flags(fl, "wait until the devices are what they should be and everything is ready, or say that they cannot")
	format.Flag(fl)
	return cmd
}

// A publication is what is published for one device, and what becomes of what is
// no longer named.
type publication struct {
	fleet.Publication
	// Absent are the scores that the device has and that its manifests no longer name.
	Absent []fate `json:"absent,omitempty"`

	unheard bool // the device never reported and no heartbeat of it arrived
}

// withRemovals compares what devices reported last with what is published for them.
func withRemovals(ctx context.Context, f *fleet.Fleet, manifests []score.Manifest, done []fleet.Publication) ([]publication, error) {
	out := make([]publication, len(done))
	devices := make([]fleet.Device, len(done))
	for i, p := range done {
		out[i].Publication, devices[i] = p, p.Device
	}
	if len(devices) == 0 {
		return out, nil
	}
	states, err := f.Status(ctx, devices...)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what the devices have: %w", err)
	}
	for i, s := range states {
		out[i].unheard = s.Status == nil && s.LastHeard.IsZero() && s.Unreadable == ""
		if s.Status == nil {
			continue
		}
		for _, m := range manifests {
			if m.Spec.Target.Device == s.Device.ID {
				out[i].Absent = append(out[i].Absent, unnamed(m, s)...)
			}
		}
	}
	return out, nil
}

// unnamed are the scores of m that the device has and that m does not name any more.
func unnamed(m score.Manifest, s fleet.DeviceState) (out []fate) {
	named := map[score.ID]bool{}
	for _, sc := range m.Spec.Scores {
		named[sc.ID] = true
	}
	for _, had := range s.Status.Manifests {
		if had.Name != m.Metadata.Name {
			continue
		}
		for _, sc := range had.Scores {
			if !named[sc.ID] {
				out = append(out, fate{Manifest: had.Name, Score: sc.ID, Kind: sc.Kind, OnAbsent: authority.Effective(nil, m.Spec.Policy, nil).OnAbsent})
			}
		}
	}
	return out
}

// halfPublished shows what was published before err stopped it.
func halfPublished(cmd *cobra.Command, done []fleet.Publication, format show.Format, err error) error {
	done = slices.DeleteFunc(done, func(p fleet.Publication) bool { return !p.Written })
	if len(done) == 0 {
		return err
	}
	written, werr := format.Write(cmd.OutOrStdout(), done)
	if !written {
		out := make([]publication, len(done))
		for i, p := range done {
			out[i].Publication = p
		}
		werr = publications(cmd.OutOrStdout(), out)
	}
	return errors.Join(fmt.Errorf("%w\npublished before that: %s, as shown", err, show.Plural(len(done), "device")), werr)
}

const unchanged = "nothing differs from what is published"

func showPublished(cmd *cobra.Command, done []publication, confirm bool, format show.Format) error {
	changes := false
	for _, p := range done {
		changes = changes || p.Changes()
	}
	written, err := format.Write(cmd.OutOrStdout(), done)
	if !written {
		err = publications(cmd.OutOrStdout(), done)
	}
	for _, p := range done {
		if p.unheard && p.Changes() {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s was never heard of: if its name is right, it takes this once it runs\n", name(p.Device))
		}
	}
	switch {
	case err != nil:
		return err
	case !changes:
		fmt.Fprintln(cmd.ErrOrStderr(), unchanged)
		return nil
	case !confirm:
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was published: this is a preview; add --confirm to publish it")
	default:
		var names []string
		for _, p := range done {
			names = append(names, name(p.Device))
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "published; what comes of it: continuo status %s --wait\n", strings.Join(names, " "))
	}
	return nil
}

func publications(w io.Writer, done []publication) error {
	t := show.NewTable("DEVICE", "GENERATION", "MANIFEST", "CHANGE")
	for _, p := range done {
		for _, m := range p.Manifests {
			t.Row(name(p.Device), fmt.Sprint(p.Generation), show.Text(m.Name), string(m.Action))
			for _, a := range p.Absent {
				if a.Manifest == m.Name {
					t.Note("no longer has " + a.String() + ", unless another score claims the same")
				}
			}
		}
	}
	return t.Write(w)
}

// waitPublished waits until every device is ready with what was published for it.
func waitPublished(ctx context.Context, cmd *cobra.Command, f *fleet.Fleet, manifests []score.Manifest, done []fleet.Publication, patient patience, format show.Format) error {
	var out overview
	for _, p := range done {
		s, err := waitSettled(ctx, f, p.Device, p.Generation, rollingBack(manifests))
		if err != nil && ctx.Err() == nil {
			return err
		}
		s.Device = p.Device
		out.add(s)
	}
	patient.gaveUp(ctx, cmd)
	if !slices.ContainsFunc(done, fleet.Publication.Changes) {
		fmt.Fprintln(cmd.ErrOrStderr(), unchanged)
	}
	return out.show(cmd, format, len(out.Devices) == 1)
}
