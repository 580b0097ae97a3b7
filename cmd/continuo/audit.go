package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
)

func newAudit() *cobra.Command {
	var c connection
	var o fleet.AuditOptions
	var since past
	var verify bool
	var format show.Format
	cmd := &cobra.Command{
		Use:   "audit [DEVICE]",
		Short: "Show what was decided, refused and asked for, and whether all of it is there",
		Long: `audit shows what was written down, the oldest first: by devices, every decision that was another one
than before, every refusal, every operation and what was done by hand; by people, signed and before it
was done, what they did from elsewhere. With a DEVICE it is what that device wrote, and what is about it.

Nobody can delete what is there. --verify looks whether anything is missing or was changed: each entry
names the one before by its digest. It ends with 1 if entries are missing or lost, have two contents,
came in another order, or were written in the name of a key that did not sign them.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("give one DEVICE, or none for all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				d, err := theDevice(args)
				if err != nil {
					return err
				}
				o.Device = d
			}
			if verify && o.Operation != "" {
				return cli.Usagef("--verify is about whole chains: leave --operation out")
			}
			o.Since = since.at
			f, err := c.connect(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer f.Close()
			if verify {
				n, breaches, err := f.VerifyAudit(cmd.Context(), o)
				if err != nil {
					return err
				}
				return showBreaches(cmd, verified{n, append([]fleet.Breach{}, breaches...)}, format)
			}
			all, err := f.Audit(cmd.Context(), o)
			if err != nil {
				return err
			}
			return showAudit(cmd, append([]fleet.Recorded{}, all...), format)
		},
	}
	c.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&o.Operation, "operation", "", "only what belongs to the operation with this id")
	fl.Var(&since, "since", "only what the fleet has got since: a duration such as 24h, or a time")
	fl.BoolVar(&verify, "verify", false, "look whether all of it is there as it was written, instead of showing it")
	format.Flag(fl)
	return cmd
}

// A past is a duration until now, or a time.
type past struct {
	text string
	at   time.Time
}

func (p *past) String() string { return p.text }
func (p *past) Type() string   { return "duration" }
func (p *past) Set(s string) (err error) {
	p.text = s
	if p.at, err = time.Parse(time.RFC3339, s); err == nil {
		return nil
	}
	span, err := time.ParseDuration(s)
	if err != nil || span <= 0 {
		return errors.New("must be a duration like 24h, or a time like 2026-01-02T15:04:05Z")
	}
	p.at = time.Now().Add(-span)
	return nil
}

func showAudit(cmd *cobra.Command, all []fleet.Recorded, format show.Format) error {
	if done, err := format.Write(cmd.OutOrStdout(), all); done || err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "nothing of this was written down")
		return err
	}
	t := show.NewTable("TIME", "BY", "WHAT", "ABOUT", "ANSWER", "REASON")
	for _, r := range all {
		e := r.Entry
		if e == nil {
			t.Row(r.StoredAt.UTC().Format(time.RFC3339), writer(r), "-", "-", "unreadable", r.Unreadable)
			continue
		}
		t.Row(e.Time.UTC().Format(time.RFC3339), writer(r), cmp.Or(e.Verb, string(e.Action), string(e.What)), subject(r), answer(r), why(*e))
		if e.Operation != "" {
			t.Note("operation " + e.Operation)
		}
	}
	return t.Write(cmd.OutOrStdout())
}

// writer is who wrote it: a device, or a person as he says himself.
func writer(r fleet.Recorded) string {
	key, person := strings.CutPrefix(r.Writer, "control.")
	if !person {
		return strings.TrimPrefix(r.Writer, "main.")
	}
	key = key[:min(8, len(key))] + "…"
	if r.Entry == nil || r.Entry.Actor == "" {
		return "key " + key
	}
	return r.Entry.Actor + " (" + key + ")"
}

func subject(r fleet.Recorded) string {
	e := r.Entry
	switch {
	case e.Score != "":
		return e.Manifest + "/" + string(e.Score)
	case strings.HasPrefix(r.Writer, "control."):
		return strings.TrimPrefix(e.Device, "main.")
	case e.Manifest != "":
		return e.Manifest
	case len(e.Resources) > 0:
		return string(e.Resources[0])
	}
	return "-"
}

func answer(r fleet.Recorded) string {
	e := r.Entry
	switch {
	case r.Unsigned():
		return "unsigned"
	case e.What == interpret.AuditRefusal:
		return "refused"
	case e.What == interpret.AuditLoss:
		return fmt.Sprintf("%d lost", e.Lost)
	}
	return cmp.Or(string(e.Decision), string(e.Result), "-")
}

func why(e interpret.AuditEntry) string {
	var parts []string
	for _, p := range []string{string(e.Code), e.Message, e.Reason, e.Authority} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}

// A verified is what came of looking whether all is there.
type verified struct {
	// Entries that were looked at.
	Entries int `json:"entries"`
	// Breaches are what does not hold.
	Breaches []fleet.Breach `json:"breaches"`
}

func showBreaches(cmd *cobra.Command, v verified, format show.Format) error {
	done, err := format.Write(cmd.OutOrStdout(), v)
	if !done {
		t := show.NewTable("WRITER", "WHAT", "NUMBERS", "CHAIN", "REASON")
		for _, b := range v.Breaches {
			numbers := "-"
			switch {
			case b.To > b.From:
				numbers = fmt.Sprintf("%d-%d", b.From, b.To)
			case b.To > 0:
				numbers = fmt.Sprint(b.To)
			}
			t.Row(strings.TrimPrefix(b.Writer, "main."), string(b.Kind), numbers, cmp.Or(b.Chain[:min(8, len(b.Chain))], "-"), b.Message)
		}
		if len(v.Breaches) > 0 {
			err = t.Write(cmd.OutOrStdout())
		} else {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "all holds: %d entries, and none is missing or was changed\n", v.Entries)
		}
	}
	if err == nil && len(v.Breaches) > 0 {
		err = cli.ErrDiffers
	}
	return err
}
