package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
)

// A backupRow is a file as it was before something replaced it.
type backupRow struct {
	// Name of the backup.
	Name string `json:"name"`
	// Path where it was.
	Path string `json:"path,omitempty"`
	// Time when it was kept.
	Time time.Time `json:"time,omitzero"`
	// Size in bytes.
	Size int64 `json:"size"`
	// Owner and group that the file had.
	Owner string `json:"owner,omitempty"`
	// Mode that the file had.
	Mode string `json:"mode,omitempty"`
	// Replaced by this score, as far as the books still say so.
	Replaced string `json:"replacedBy,omitempty"`
	// Damaged is true if its description cannot be read.
	Damaged bool `json:"damaged,omitempty"`
}

func newBackups() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "backups",
		Short: "List what was kept before it was overwritten",
		Long: `backups lists the files of this device that were kept before something replaced them, the
newest last: where they were, whose they were, and which score took their place.
continuo-agent restore NAME puts one back.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := s.look(cmd)
			if err != nil {
				return err
			}
			defer l.close()
			rows, err := l.backups()
			if err != nil {
				return err
			}
			if done, err := format.Write(cmd.OutOrStdout(), rows); done || err != nil {
				return err
			}
			if len(rows) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "nothing was overwritten that was not this agent's own")
				return err
			}
			t := show.NewTable("TIME", "SIZE", "OWNER", "MODE", "PATH", "REPLACED BY", "NAME")
			for _, r := range rows {
				if r.Damaged {
					t.Row(r.Time.UTC().Format(time.RFC3339), "-", "-", "-", "its description is damaged", "-", r.Name)
					continue
				}
				t.Row(r.Time.UTC().Format(time.RFC3339), fmt.Sprint(r.Size), r.Owner, r.Mode, r.Path, cmp.Or(r.Replaced, "-"), r.Name)
			}
			return t.Write(cmd.OutOrStdout())
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

// backups lists what is kept, the newest last.
func (l *look) backups() ([]backupRow, error) {
	kept, err := l.books.Backups()
	if err != nil {
		return nil, err
	}
	replaced := map[string]string{}
	for _, e := range l.books.Entries() {
		if e.Backup != "" {
			replaced[e.Backup] = e.Manifest + "/" + e.Score
		}
	}
	slices.SortStableFunc(kept, func(a, b store.Backup) int { return a.Time.Compare(b.Time) })
	rows := []backupRow{}
	for _, b := range kept {
		r := backupRow{Name: b.Name, Path: b.Path, Time: b.Time, Size: b.Size, Replaced: replaced[b.Name], Damaged: b.Path == ""}
		if !r.Damaged {
			r.Owner, r.Mode = account(b.UID, b.GID), fmt.Sprintf("%04o", b.Mode)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// account names an owner and a group as this machine does, by number if it has no name.
func account(uid, gid int) string {
	owner, group := strconv.Itoa(uid), strconv.Itoa(gid)
	if u, err := user.LookupId(owner); err == nil {
		owner = u.Username
	}
	if g, err := user.LookupGroupId(group); err == nil {
		group = g.Name
	}
	return owner + ":" + group
}

func newRestore() *cobra.Command {
	var s settings
	var confirm bool
	var format show.Format
	cmd := &cobra.Command{
		Use:   "restore BACKUP --confirm",
		Short: "Put a backup back in its place",
		Long: `restore makes a file what it was when the backup was kept: content, mode and owner. What is
there now is kept as a backup first. Without --confirm it only shows what would change, and
ends with 0. If a manifest wants the file otherwise, the agent corrects it at its next pass:
unpublish or change that manifest first. continuo-agent backups lists the names.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("name one BACKUP; continuo-agent backups lists them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := s.optional(cmd)
			if err != nil {
				return err
			}
			st, err := restore(cmd, c, args[0], confirm)
			if err != nil {
				return err
			}
			done, err := format.Write(cmd.OutOrStdout(), st)
			if !done {
				t := show.NewTable("BACKUP", "OUTCOME", "REASON")
				why := cmp.Or(st.Message, string(st.Code))
				if st.Outcome == interpret.Unchanged {
					why = "it is there as the backup has it"
				}
				t.Row(args[0], string(st.Outcome), show.Text(why))
				show.Changes(t, st.Changes)
				if st.Backup != "" {
					t.Note("what was there is kept as backup " + st.Backup)
				}
				err = t.Write(cmd.OutOrStdout())
			}
			switch {
			case err != nil:
				return err
			case !confirm && st.Outcome == interpret.Drifted:
				fmt.Fprintln(cmd.ErrOrStderr(), "nothing was changed: this is a preview; add --confirm to put it back")
				return nil
			case !st.Outcome.Converged():
				return cli.ErrDiffers
			}
			return nil
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&confirm, "confirm", false, "put it back; without it the changes are only shown")
	format.Flag(cmd.Flags())
	return cmd
}

// restore puts a backup back, or looks what that would change.
func restore(cmd *cobra.Command, c config.Config, backup string, confirm bool) (st interpret.ScoreStatus, err error) {
	var l *look
	if confirm {
		l, err = openAt(cmd, c, store.Dir(c.StateDir()), false)
	} else {
		l, err = lookAt(cmd, c)
	}
	if errors.Is(err, store.ErrLocked) {
		return st, fmt.Errorf("%w; or ask the agent that is running: continuo restore %s %s --confirm", err, cmp.Or(c.Device, "DEVICE"), backup)
	}
	if err != nil {
		return st, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	if confirm {
		st, err = l.runner.Restore(cmd.Context(), backup, byHand())
	} else {
		st, err = l.runner.PreviewRestore(cmd.Context(), backup)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrDamaged) {
		err = fmt.Errorf("%w; continuo-agent backups lists what there is", err)
	}
	return st, err
}

// look opens the device to look at, for commands that need no configuration.
func (s settings) look(cmd *cobra.Command) (*look, error) {
	c, err := s.optional(cmd)
	if err != nil {
		return nil, err
	}
	l, err := lookAt(cmd, c)
	if err == nil {
		l.tell(cmd)
		leaveAudit(cmd, c)
	}
	return l, err
}
