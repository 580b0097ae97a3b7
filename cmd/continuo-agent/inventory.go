package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// An owned is one resource that the books say is this device's, and what is there.
type owned struct {
	// Resource that is owned.
	Resource string `json:"resource"`
	// Manifest that owns it.
	Manifest string `json:"manifest"`
	// Score of the manifest.
	Score string `json:"score"`
	// Kind of the score.
	Kind string `json:"kind"`
	// Provenance is created or adopted.
	Provenance store.Provenance `json:"provenance"`
	// Generation that touched it last.
	Generation uint64 `json:"generation"`
	// Authority that allowed the last change.
	Authority string `json:"authority,omitempty"`
	// Now is what inspection finds: as_applied, changed, absent or unknown.
	Now presence `json:"now"`
	// Reason why it is unknown.
	Reason string `json:"reason,omitempty"`
}

// A presence is what was found of an owned resource.
type presence string

const (
	asApplied presence = "as_applied" // it is there as it was applied last
	changed   presence = "changed"    // it is there and differs
	absent    presence = "absent"     // it is not there
	unknown   presence = "unknown"    // it cannot be looked at
)

func newInventory() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "inventory [PATH…]",
		Short: "List what this device owns, or what is at some paths",
		Long: `inventory lists every resource that the books of this device own, and nothing else that is on it:
which score of which manifest it is, whether it was created or adopted (somebody else made it
first), which generation touched it last, and what allowed that. The books are not trusted: NOW is
found by looking at the device (as_applied, changed, absent, unknown).

With paths it lists the files, directories and links there and below, whoever made them: their
class (only what is versionable can be exported), size, digest, rights, and the score that owns them.
What not everybody may read, or may hold a secret, is told of by a fingerprint, which only this
device can make. A file above 1 MiB has no digest, and more than 4,096 things or 16 MiB at a time
are refused.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := s.look(cmd)
			if err != nil {
				return err
			}
			defer l.close()
			if len(args) > 0 {
				return l.files(cmd, format, args)
			}
			rows, err := l.inventory(cmd.Context())
			if err != nil {
				return err
			}
			if done, err := format.Write(cmd.OutOrStdout(), rows); done || err != nil {
				return err
			}
			if len(rows) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "this device owns nothing")
				return err
			}
			t := show.NewTable("RESOURCE", "SCORE", "PROVENANCE", "GENERATION", "AUTHORITY", "NOW")
			for _, r := range rows {
				now := string(r.Now)
				if r.Reason != "" {
					now += ": " + show.Text(r.Reason)
				}
				t.Row(r.Resource, r.Manifest+"/"+r.Score, string(r.Provenance), fmt.Sprint(r.Generation), r.Authority, now)
			}
			return t.Write(cmd.OutOrStdout())
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

// inventory compares the ledger with the device: what was applied last is planned once more,
// as if each manifest still said it.
func (l *look) inventory(ctx context.Context) ([]owned, error) {
	entries := l.books.Entries()
	found := map[topology.Mark]owned{}
	var order []string
	manifests := map[string]*score.Manifest{}
	n := 0
	for _, e := range entries {
		if len(e.Spec) == 0 {
			continue // it goes with another entry of its score
		}
		var s score.Score
		if err := score.Decode(e.Spec, &s); err != nil {
			found[mark(e.Manifest, e.Score)] = owned{Now: unknown, Reason: "cannot read what was applied: " + err.Error()}
			continue
		}
		s.After, s.Decommission = nil, false
		m := manifests[e.Manifest]
		if m == nil {
			m = &score.Manifest{APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: e.Manifest, Generation: e.Generation}}
			manifests[e.Manifest], order = m, append(order, e.Manifest)
		}
		m.Spec.Scores = append(m.Spec.Scores, s)
		n++
	}
	in := agent.Intent{Assignment: score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Spec: score.AssignmentSpec{Scores: n}}}
	for _, name := range order {
		in.Assignment.Spec.Manifests = append(in.Assignment.Spec.Manifests, *manifests[name])
	}
	l.runner.Ceiling = authority.Ceiling{} // it bounds what is done, not what is looked at
	p, err := l.runner.Plan(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, a := range p.Actions {
		o := owned{Now: changed}
		switch a.Action {
		case interpret.ActionCreate:
			o.Now = absent
		case interpret.ActionNone:
			o.Now, o.Reason = unknown, a.Reason
		}
		found[mark(a.Manifest, string(a.Score))] = o
	}
	rows := []owned{}
	for _, e := range entries {
		o, ok := found[mark(e.Manifest, e.Score)]
		if !ok {
			o.Now = asApplied
		}
		o.Resource, o.Manifest, o.Score, o.Kind = e.Resource, e.Manifest, e.Score, e.Kind
		o.Provenance, o.Generation, o.Authority = e.Provenance, e.Generation, e.Authority
		rows = append(rows, o)
	}
	return rows, nil
}

func mark(manifest, id string) topology.Mark { return topology.Mark(manifest + "/" + id) }
