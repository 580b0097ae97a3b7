package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/secrets"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
)

func newSecrets() *cobra.Command {
	var s settings
	var format show.Format
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "List the secrets of this device by name, and never their values",
		Long: `secrets lists the names that manifests can use as {secret: NAME}, the file that each value comes
from, and its fingerprint, by which a rotated value is noticed. A fingerprint is keyed with a key of
this device and tells nothing about the value to anybody else; the status of a score shows the same.

The owner of the device keeps the values, in the places that secrets in the configuration names:
  secrets: {envFiles: [/etc/continuo/secrets.env, /etc/kiosk.env], credentials: /run/credentials/x}
A file has lines NAME=value, belongs to root, and has mode 0600; values with quotes, backslashes or
several lines stand between single quotes. Credentials are those of systemd (LoadCredential=,
LoadCredentialEncrypted= in the unit; see continuo-agent unit). What a later place has counts. Exit
status 1 says that a place cannot be used; what no later place has is then unavailable.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := s.optional(cmd)
			if err != nil {
				return err
			}
			leaveAudit(cmd, c)
			all, problems := openSecrets(c, true).List(cmd.Context())
			if all == nil {
				all = []secrets.Secret{}
			}
			done, err := format.Write(cmd.OutOrStdout(), all)
			if !done && (len(all) > 0 || len(problems) == 0) { // where a place cannot be used, nobody knows that there is none
				err = writeSecrets(cmd, all)
			}
			if err != nil {
				return err
			}
			for _, p := range problems {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: cannot use %v\n", cmd.Root().Name(), p)
			}
			if len(problems) > 0 {
				return cli.ErrDiffers
			}
			return nil
		},
	}
	s.flags(cmd)
	format.Flag(cmd.Flags())
	return cmd
}

func writeSecrets(cmd *cobra.Command, all []secrets.Secret) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "this device has no secrets")
		return err
	}
	t := show.NewTable("SECRET", "SOURCE", "FINGERPRINT")
	for _, v := range all {
		t.Row(v.Name, v.Source, v.Fingerprint)
		if len(v.Shadows) > 0 {
			t.Note("also in " + strings.Join(v.Shadows, ", ") + ", which does not count")
		}
	}
	return t.Write(cmd.OutOrStdout())
}
