package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/score"
)

func newUnpublish() *cobra.Command {
	var c connection
	var key string
	var confirm bool
	var format show.Format
	cmd := &cobra.Command{
		Use:   "unpublish DEVICE MANIFEST --confirm",
		Short: "Take a manifest away from what a device should be",
		Long: `unpublish takes one manifest away from a device; its other manifests stay. What the device does
about what it made for it is said by the policy that the manifest had: collect and restore remove it,
report (the default) leaves it and says so, release leaves it for good. Without --confirm it only
shows that, score by score, and ends with 0.`,
		Args: oneDevice(1, 1, "a DEVICE and a MANIFEST"),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := theDevice(args)
			if err != nil {
				return err
			}
			p, err := c.publisher(cmd.Context(), key)
			if err != nil {
				return err
			}
			defer p.Close()
			as, _, err := p.Published(cmd.Context(), d, p.keys)
			if err != nil {
				return fmt.Errorf("cannot unpublish: %w", err)
			}
			fates, err := withdrawn(as, args[1])
			if err != nil {
				return fmt.Errorf("cannot unpublish: %s has %w", name(d), err)
			}
			done, err := p.Remove(cmd.Context(), d, args[1], fleet.PublishOptions{Signer: p.signer, Root: p.root, DryRun: !confirm, Actor: self()})
			if err != nil {
				return err
			}
			return showWithdrawn(cmd, withdrawal{done[0], fates}, len(as.Spec.Manifests) == 1, confirm, format)
		},
	}
	c.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&key, "key", "", "file with the seed of the operator key (default DATA/keys/operator.nk)")
	fl.BoolVar(&confirm, "confirm", false, "unpublish it; without it that is only shown")
	format.Flag(fl)
	return cmd
}

// A withdrawal is what comes of unpublishing a manifest.
type withdrawal struct {
	fleet.Publication
	// Scores of the manifest, and what the device does about each.
	Scores []fate `json:"scores"`
}

// A fate is what a device does about a score that is no longer named.
type fate struct {
	// Manifest that named it.
	Manifest string `json:"manifest"`
	// Score that is no longer named.
	Score score.ID `json:"score"`
	// Kind of the score.
	Kind score.Kind `json:"kind"`
	// Resources that it claims.
	Resources []score.Resource `json:"resources"`
	// OnAbsent is the policy; transfer if another manifest claims the same.
	OnAbsent score.OnAbsent `json:"onAbsent"`
	// To is the manifest that takes it over.
	To string `json:"to,omitempty"`
}

const transfer score.OnAbsent = "transfer"

func (f fate) String() string {
	what := show.Text(string(f.Score)) + " (" + show.Text(string(f.Kind)) + "): "
	if r := resources(f.Resources); r != "" {
		what = show.Text(string(f.Score)) + " (" + show.Text(string(f.Kind)) + ", " + show.Text(r) + "): "
	}
	switch f.OnAbsent {
	case transfer:
		return what + "it goes over to manifest " + show.Text(f.To)
	case score.AbsentCollect:
		return what + "the device removes what it made for it"
	case score.AbsentRestore:
		return what + "the device removes what it made for it, and puts back what was there before"
	case score.AbsentRelease:
		return what + "it stays, and is the device's own from then on"
	}
	return what + "it stays, and is reported as left over"
}

// resources names what is to be told of claims: ports go with what holds them.
func resources(claims []score.Resource) string {
	var out []string
	for _, c := range claims {
		if !c.IsPort() {
			out = append(out, string(c))
		}
	}
	return strings.Join(out, ", ")
}

// fateOf is what the policies say, without the ceiling of the device, which may allow less.
func fateOf(s score.Score, m score.Manifest, others []score.Manifest) fate {
	f := fate{Manifest: m.Metadata.Name, Score: s.ID, Kind: s.Spec.Kind(), Resources: s.Spec.Claims()}
	f.OnAbsent = cmp.Or(authority.Effective(nil, m.Spec.Policy, s.Policy).OnAbsent, score.AbsentReport)
	for _, o := range others {
		for _, other := range o.Spec.Scores {
			if len(f.Resources) > 0 && slices.Contains(other.Spec.Claims(), f.Resources[0]) {
				f.OnAbsent, f.To = transfer, o.Metadata.Name
			}
		}
	}
	return f
}

// withdrawn are the fates of the scores of a manifest that is taken away.
func withdrawn(as score.Assignment, manifest string) ([]fate, error) {
	i := slices.IndexFunc(as.Spec.Manifests, func(m score.Manifest) bool { return m.Metadata.Name == manifest })
	if i < 0 {
		var names []string
		for _, m := range as.Spec.Manifests {
			names = append(names, m.Metadata.Name)
		}
		if n, ok := score.Nearest(manifest, names); ok {
			return nil, fmt.Errorf("no manifest %q, did you mean %q?", manifest, n)
		}
		return nil, fmt.Errorf("no manifest %q", manifest)
	}
	m := as.Spec.Manifests[i]
	others := slices.Delete(slices.Clone(as.Spec.Manifests), i, i+1)
	out := []fate{}
	for _, s := range m.Spec.Scores {
		out = append(out, fateOf(s, m, others))
	}
	return out, nil
}

// showWithdrawn shows what comes of it. last says that no other manifest is left.
func showWithdrawn(cmd *cobra.Command, w withdrawal, last, confirm bool, format show.Format) error {
	written, err := format.Write(cmd.OutOrStdout(), w)
	if !written {
		t := show.NewTable("DEVICE", "GENERATION", "MANIFEST", "CHANGE")
		for _, m := range w.Manifests {
			t.Row(name(w.Device), fmt.Sprint(w.Generation), show.Text(m.Name), string(m.Action))
			if m.Action == fleet.Removed {
				for _, f := range w.Scores {
					t.Note(f.String())
				}
			}
		}
		err = t.Write(cmd.OutOrStdout())
	}
	if err != nil {
		return err
	}
	removes := slices.ContainsFunc(w.Scores, func(f fate) bool { return f.OnAbsent == score.AbsentCollect || f.OnAbsent == score.AbsentRestore })
	if last && removes {
		fmt.Fprintln(cmd.ErrOrStderr(), "no manifest is left for this device: it removes nothing before an approval is signed (continuo plan, continuo approve)")
	}
	if !confirm {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was unpublished: this is a preview; add --confirm to do it")
	} else {
		fmt.Fprintf(cmd.ErrOrStderr(), "unpublished; what comes of it: continuo status %s --wait\n", name(w.Device))
	}
	return nil
}
