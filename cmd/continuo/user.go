package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/internal/wire"
)

func newUser() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "user",
		Short: "Say who may connect to the server of continuo up, and as what",
		Long: `user makes, lists and revokes the credentials with which people and programs connect to the
server that "continuo up" runs. What a role may do is the server's to enforce:

  viewer      reads everything and writes nothing
  publisher   publishes manifests and their contents; reads everything, as all of these do
  operator    asks devices for operations
  approver    consents to what devices asked for
  admin       creates the streams, and publishes trust roots
  owner       all of these; "continuo up" makes one for its own machine
  controller  runs continuo serve
  ci          reads what is published and nothing else, to tell what would change

It is no right to sign: a document counts if a device trusts the key that signed it.`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.Group,
	}
	cmd.AddCommand(newUserAdd(), newUserList(), newUserRemove())
	return cmd
}

func newUserAdd() *cobra.Command {
	var data, role, out string
	var sites []string
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "add NAME --role ROLE",
		Short: "Make a credential for somebody",
		Long: `add writes a credentials file, which holds a secret: bring it to whom it is for, and delete it here.
nats --creds and continuo --creds take it. A server that is running knows it at once.

With --site, a publisher, operator or approver writes for the devices of these sites only.`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			if lasts < 0 {
				return cli.Usagef("--for is %s: a credential lasts from now on", lasts)
			}
			if role == "" {
				return cli.Usagef("--role is missing: one of %s", roles())
			}
			if _, err := wire.RolePermissions(wire.Role(role), sites...); err != nil {
				return cli.Usagef("%v; roles are %s", err, roles())
			}
			dir, err := dataDir(data)
			if err != nil {
				return err
			}
			var until time.Time
			if lasts > 0 {
				until = time.Now().Add(lasts)
			}
			if out != "" {
				if out, err = filepath.Abs(out); err != nil {
					return err
				}
			}
			file, err := localnats.Dir(dir).AddUser(args[0], role, sites, until, out)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s is a %s; the credential is in %s\n", args[0], role, file)
			return nil
		},
	}
	dataFlag(cmd, &data)
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "what it is for: "+roles())
	f.StringSliceVar(&sites, "site", nil, "site whose devices it is for; may be given several times (default all)")
	f.DurationVar(&lasts, "for", 0, "how long it lasts, such as 2160h (default without an end)")
	f.StringVar(&out, "out", "", "file to write (default DATA/users/NAME.creds)")
	return cmd
}

func newUserList() *cobra.Command {
	var data string
	var format show.Format
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List who has a credential",
		Long: `list shows who was given a credential, beside the owner and the control service of "continuo up" itself.
It shows no secret.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := dataDir(data)
			if err != nil {
				return err
			}
			users, err := localnats.Dir(dir).Users()
			if err != nil {
				return err
			}
			if done, err := format.Write(cmd.OutOrStdout(), users); done || err != nil {
				return err
			}
			if len(users) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nobody was given a credential")
				return nil
			}
			t := show.NewTable("NAME", "ROLE", "SITES", "UNTIL")
			for _, u := range users {
				sites, until := "all", "without an end"
				if len(u.Sites) > 0 {
					sites = strings.Join(u.Sites, " ")
				}
				if !u.NotAfter.IsZero() {
					until = u.NotAfter.Format(time.RFC3339)
				}
				t.Row(u.Name, u.Role, sites, until)
			}
			return t.Write(cmd.OutOrStdout())
		},
	}
	dataFlag(cmd, &data)
	format.Flag(cmd.Flags())
	return cmd
}

func newUserRemove() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Revoke the credential of somebody",
		Long: `remove makes the credential of a user worth nothing, wherever it was copied to, and ends his connections
at once. It works while no server runs, too.`,
		Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := dataDir(data)
			if err != nil {
				return err
			}
			if err := localnats.Dir(dir).RemoveUser(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the credential of %s is revoked\n", args[0])
			return nil
		},
	}
	dataFlag(cmd, &data)
	return cmd
}

func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usagef("one NAME is needed, and %d arguments were given", len(args))
	}
	if err := wire.CheckName("a user", args[0]); err != nil {
		return cli.Usagef("%v", err)
	}
	return nil
}

func roles() string {
	names := make([]string, len(wire.Roles))
	for i, r := range wire.Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}
