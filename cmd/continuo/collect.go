package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
)

// A contentRow is a content that is stored, and what becomes of it.
type contentRow struct {
	fleet.Blob
	// Goes says that it is taken away.
	Goes bool `json:"goes"`
}

func newCollect() *cobra.Command {
	var c connection
	var key string
	var confirm bool
	var spare time.Duration
	var format show.Format
	cmd := &cobra.Command{
		Use:   "collect --confirm",
		Short: "Take away stored contents that nothing published needs",
		Long: `collect lists the contents that are stored for devices (large files, each by its sha256), with the
devices that need them, and takes away those that nothing published needs and that nobody stored
lately. Devices keep what their last good versions need by themselves. Without --confirm it only
shows that, and ends with 0. The store is an object store of NATS: nats object ls blobs shows it, too.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := c.publisher(cmd.Context(), key)
			if err != nil {
				return err
			}
			defer p.Close()
			all, err := p.Blobs(cmd.Context(), p.keys)
			if err != nil {
				return err
			}
			rows := []contentRow{}
			for _, b := range all {
				rows = append(rows, contentRow{b, len(b.UsedBy) == 0 && time.Since(b.Stored) >= spare})
			}
			for _, r := range rows {
				if !confirm || !r.Goes {
					continue
				}
				if err := p.CollectBlob(cmd.Context(), r.Blob); err != nil {
					return err
				}
			}
			return showContents(cmd, rows, confirm, format)
		},
	}
	c.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&key, "key", "", "file with the seed of the operator key (default DATA/keys/operator.nk)")
	fl.BoolVar(&confirm, "confirm", false, "take them away; without it that is only shown")
	fl.DurationVar(&spare, "spare", 24*time.Hour, "leave what was stored less than so long ago: what needs it may be published any moment")
	format.Flag(fl)
	return cmd
}

func showContents(cmd *cobra.Command, rows []contentRow, confirm bool, format show.Format) error {
	written, err := format.Write(cmd.OutOrStdout(), rows)
	if !written {
		t := show.NewTable("SHA256", "BYTES", "STORED", "NEEDED BY", "")
		for _, r := range rows {
			var by []string
			for _, d := range r.UsedBy {
				by = append(by, name(d))
			}
			verdict := "stays"
			if r.Goes {
				verdict = "goes"
			}
			t.Row(r.SHA256, fmt.Sprint(r.Size), r.Stored.UTC().Format(time.RFC3339), strings.Join(by, " "), verdict)
		}
		if len(rows) == 0 {
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "no contents are stored")
		} else {
			err = t.Write(cmd.OutOrStdout())
		}
	}
	if err == nil && !confirm {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was taken away: this is a preview; add --confirm to do it")
	}
	return err
}
