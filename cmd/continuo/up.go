package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
)

func newUp() *cobra.Command {
	var u up
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run a NATS server and the control service for a fleet on this machine",
		Long: `up runs everything that a small fleet needs in one process: a NATS server with JetStream,
its streams, and the control service. Keys, configuration and store are in one directory,
and other commands on this machine find them there. It writes a configuration for every
--device and says how to start its agent. Ctrl-C stops it; the devices go on.

Whose signatures count is said by a trust root (continuo keys). The first version is made with
the keys, and signed by DATA/keys/root.nk: move that file to where no thief finds it.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			devices, err := parseDevices(u.devices)
			if err != nil {
				return err
			}
			return u.run(cmd.Context(), devices, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	dataFlag(cmd, &u.data)
	f.StringVar(&u.listen, "listen", localnats.DefaultListen, "address of the server; port 0 chooses a free one")
	f.StringSliceVar(&u.devices, "device", nil, "id of a device to make known; may be given several times")
	f.StringVar(&u.tls.Cert, "server-cert", "", "PEM file of the server's certificate, for devices on other machines")
	f.StringVar(&u.tls.Key, "server-key", "", "PEM file of its key")
	f.StringVar(&u.ca, "server-ca", "", "PEM file of who signed it, for devices that do not know them")
	f.StringVar(&u.host, "host", "", "name or address under which devices reach the server (default one in its certificate, else its own)")
	f.BoolVar(&u.plaintext, "plaintext", false, "let other machines connect without encryption; only on a network that is protected otherwise")
	return cmd
}

type up struct {
	data, listen string
	host, ca     string
	devices      []string
	tls          localnats.TLS
	plaintext    bool
}

func (u up) run(ctx context.Context, devices []fleet.Device, out, errs io.Writer) error {
	dir, err := dataDir(u.data)
	if err != nil {
		return err
	}
	notice := func(err error) { fmt.Fprintln(errs, "continuo:", err) }
	o := localnats.Options{Dir: dir, Listen: u.listen, Host: u.host, Plaintext: u.plaintext, Notice: notice}
	if (u.tls.Cert == "") != (u.tls.Key == "") {
		return cli.Usagef("--server-cert and --server-key go together")
	}
	if u.ca != "" && u.tls.Cert == "" {
		return cli.Usagef("--server-ca needs --server-cert")
	}
	for _, file := range []*string{&u.tls.Cert, &u.tls.Key, &u.ca} {
		if *file == "" {
			continue
		}
		if *file, err = filepath.Abs(*file); err != nil { // the server's configuration is in another directory
			return err
		}
		if _, err := os.Stat(*file); err != nil {
			return cli.Usagef("cannot use a certificate or key: %v", err)
		}
	}
	if u.tls.Cert != "" {
		o.TLS = &u.tls
	}
	srv, err := localnats.Start(o)
	if err != nil {
		return err
	}
	err = u.serve(ctx, srv, dir, devices, out, notice)
	if cerr := srv.Close(); err == nil {
		err = cerr
	}
	return err
}

func (u up) serve(ctx context.Context, srv *localnats.Server, dir string, devices []fleet.Device, out io.Writer, notice func(error)) error {
	res, err := srv.Setup(ctx)
	if err != nil {
		return err
	}
	for _, d := range res.Differences {
		notice(fmt.Errorf("a stream is not as it must be: %s", d))
	}
	for _, d := range devices {
		if _, err := srv.AddDevice(d); err != nil {
			return err
		}
	}
	known, err := localnats.Dir(dir).Devices()
	if err != nil {
		return err
	}
	reach := ""
	for _, d := range known {
		c, err := srv.AddDevice(d)
		if err != nil {
			return err
		}
		if err := u.writeAgentConfig(dir, d, c); err != nil {
			return err
		}
		reach = c.Servers[0]
	}
	u.greet(out, srv.URL(), reach, dir, known)
	if err := srv.Serve(ctx, fleet.ServeOptions{Notice: notice}); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// greet says what runs, and what to do next.
func (u up) greet(out io.Writer, url, reach, dir string, devices []fleet.Device) {
	fmt.Fprintf(out, "server %s is ready, with its keys and store in %s\n", url, dir)
	at := ""
	if u.data != "" || os.Getenv("CONTINUO_DATA") != "" { // other shells do not find it by themselves
		at = " --data " + dir
	}
	fmt.Fprintf(out, "\npublish to it:     continuo publish FILE --confirm%s\nlook at devices:   continuo status%[1]s\nask what one does: continuo plan DEVICE%[1]s\n", at)
	if len(devices) == 0 {
		fmt.Fprintf(out, "make a device known: continuo up --device ID%s\n", at)
	}
	for _, d := range devices {
		fmt.Fprintf(out, "\ndevice %s\n", name(d))
		fmt.Fprintf(out, "  try it here, on a directory:  continuo-agent run --config %s --root DIR --state DIR\n", agentFile(dir, d))
		if !strings.Contains(reach, "127.0.0.1") && !strings.Contains(reach, "localhost") {
			fmt.Fprintf(out, "  on the device itself:         copy agent.yaml from %s and the files it names to /etc/continuo/, set their paths in it, then continuo-agent run\n", filepath.Dir(agentFile(dir, d)))
		}
	}
	fmt.Fprintln(out, "\nCtrl-C stops the server.")
}

func agentFile(dir string, d fleet.Device) string {
	return filepath.Join(dir, "agents", name(d), "agent.yaml")
}

// writeAgentConfig writes what the agent of d needs. It holds the path of a
// credential, and no key.
func (u up) writeAgentConfig(dir string, d fleet.Device, c localnats.AgentConfig) error {
	file := agentFile(dir, d)
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by continuo up for device %s.\n", name(d))
	b.WriteString("apiVersion: continuo/v1\nkind: AgentConfig\n")
	fmt.Fprintf(&b, "device: %s\nsite: %s\nservers:\n", strconv.Quote(c.Device), strconv.Quote(c.Site))
	for _, s := range c.Servers {
		fmt.Fprintf(&b, "  - %s\n", strconv.Quote(s))
	}
	fmt.Fprintf(&b, "credentials: {type: creds, file: %s}\n", strconv.Quote(c.CredsFile))
	switch {
	case u.ca != "":
		fmt.Fprintf(&b, "tls: {ca: %s}\n", strconv.Quote(u.ca))
	case u.plaintext && u.tls.Cert == "":
		b.WriteString("tls: {plaintext: true}\n")
	}
	fmt.Fprintf(&b, "trust: {root: %s} # whose signatures count\n", strconv.Quote(c.Root))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("cannot write the configuration of %s: %w", d, err)
	}
	// An agent that starts meanwhile reads the old one or the new one.
	err := os.WriteFile(file+".tmp", []byte(b.String()), 0o600)
	if err == nil {
		err = os.Rename(file+".tmp", file)
	}
	if err != nil {
		return fmt.Errorf("cannot write the configuration of %s: %w", d, err)
	}
	return nil
}
