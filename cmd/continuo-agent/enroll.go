package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/internal/atomicfile"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/topology/pi"
)

func newEnroll() *cobra.Command {
	e := enrolment{every: 3 * time.Second}
	cmd := &cobra.Command{
		Use:   "enroll FILE",
		Short: "Ask to become a device of a fleet, under an invitation",
		Long: `enroll makes a key for this device, which never leaves it, and presents it under the invitation
in FILE (continuo device enroll). It shows the fingerprint of the key and waits until an operator
who sees the same one has approved it (continuo device approve). Then it writes the configuration
of the agent, and what it names, beside --config.

It can be interrupted, and goes on when it is started again with the same FILE. An invitation is
good for one request.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("give the FILE of one invitation")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readSmall(args[0], 2*wire.MaxEnvelope)
			if err != nil {
				return &cli.UsageError{Err: fmt.Errorf("cannot read the invitation: %w", err)}
			}
			t, err := wire.ParseTicket(b)
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			return e.run(cmd.Context(), t, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.config, "config", config.DefaultFile, "configuration to write")
	f.BoolVar(&e.replace, "replace", false, "this device has a configuration already: keep it beside the new one, under the name of it and .before")
	return cmd
}

type enrolment struct {
	config  string
	replace bool
	every   time.Duration
}

// Files beside the configuration.
const (
	askingFile = "enrolling.json" // while it is under way
	credsFile  = "device.creds"
	caFile     = "fleet-ca.pem"
	trustFile  = "trust-root.json"
	backSuffix = ".back" // beside the credential: the one by which it can only ask to be let in again
)

func (e enrolment) file(name string) string { return filepath.Join(filepath.Dir(e.config), name) }

func (e enrolment) run(ctx context.Context, t wire.Ticket, out io.Writer) error {
	a, err := e.begin(t)
	if err != nil {
		return err
	}
	fingerprint, err := a.Fingerprint()
	if err != nil {
		return err
	}
	board := boardHere()
	fmt.Fprintf(out, "this device asks to be %s\n  key    %s\n  board  %s\n", t.Device, fingerprint, orNone(board.Serial))
	fmt.Fprintf(out, "an operator lets it in: continuo device approve %s --fingerprint %s\n", strings.TrimPrefix(t.Device.String(), "main."), fingerprint)
	trust, err := e.trust(t)
	if err != nil {
		return err
	}
	o := natslink.Options{Servers: t.Servers, Device: t.Device, Plaintext: t.Plaintext, Trust: trust}
	if t.CA != "" {
		o.CA = e.file(caFile)
	}
	if err := o.CheckPlace(); err != nil {
		return err
	}
	in, err := e.wait(ctx, t, o, a, out)
	if err != nil {
		return err
	}
	if err := e.finish(t, a, in); err != nil {
		return err
	}
	fmt.Fprintf(out, "it is let in, and its configuration is %s\nstart the agent: systemctl enable --now continuo-agent (its unit: continuo-agent unit)\n", e.config)
	return nil
}

func orNone(s string) string {
	if s == "" {
		return "without a serial number"
	}
	return s
}

// boardHere is what this device says of itself.
func boardHere() wire.Board {
	host, _ := os.Hostname() // a device without a name has none
	machine, _ := os.ReadFile("/etc/machine-id")
	return wire.Board{Serial: pi.Serial(), Model: pi.Model(), Machine: strings.TrimSpace(string(machine)), Boot: identity().BootID, Hostname: host, Agent: cli.ThisBuild().Version}
}

// begin gives the request that is under way under this invitation, or makes one. It is durable before it is presented.
func (e enrolment) begin(t wire.Ticket) (a natslink.Asking, err error) {
	if b, err := os.ReadFile(e.file(askingFile)); err == nil && json.Unmarshal(b, &a) == nil && a.ID == t.ID && a.Device == t.Device {
		return a, e.place(t)
	}
	if time.Now().After(t.Until) && !trustedTime().IsZero() {
		return a, fmt.Errorf("cannot enroll: the invitation was good until %s; get a new one: continuo device enroll %s", t.Until.UTC().Format(time.RFC3339), t.Device)
	}
	if _, err := os.Stat(e.config); err == nil {
		if !e.replace {
			return a, cli.Usagef("cannot enroll: %s is there, and this device may belong to a fleet; --replace keeps it beside the new one", e.config)
		}
		if err := os.Rename(e.config, e.config+".before"); err != nil {
			return a, fmt.Errorf("cannot keep the configuration that is there: %w", err)
		}
	}
	if a, err = natslink.Ask(t, boardHere()); err != nil {
		return a, err
	}
	b, err := json.Marshal(a)
	if err != nil {
		return a, err
	}
	if err := os.MkdirAll(filepath.Dir(e.config), 0o755); err != nil {
		return a, fmt.Errorf("cannot enroll: %w", err)
	}
	if err := writeFile(e.file(askingFile), b); err != nil {
		return a, fmt.Errorf("cannot keep the key of this device: %w", err)
	}
	return a, e.place(t)
}

// place writes what the connection needs.
func (e enrolment) place(t wire.Ticket) error {
	for name, content := range map[string]string{caFile: t.CA, trustFile: string(t.Root)} {
		if content == "" {
			continue
		}
		if err := writeFile(e.file(name), []byte(content)); err != nil {
			return fmt.Errorf("cannot enroll: %w", err)
		}
	}
	return nil
}

// trust is whom the invitation says that this device has to trust.
func (e enrolment) trust(t wire.Ticket) (*natslink.Trust, error) {
	c := config.Config{Trust: config.Trust{Documents: t.Documents, Control: t.Control}, State: filepath.Join(filepath.Dir(e.config), "no-state")}
	if len(t.Root) > 0 {
		c.Trust = config.Trust{Root: e.file(trustFile)}
	}
	return trustOf(c)
}

// wait asks until somebody has decided.
func (e enrolment) wait(ctx context.Context, t wire.Ticket, o natslink.Options, a natslink.Asking, out io.Writer) (wire.LetIn, error) {
	said := ""
	for {
		in, err := natslink.Present(ctx, o, t.Knock, a)
		now := ""
		switch {
		case ctx.Err() != nil:
			return in, fmt.Errorf("cannot finish: %w; start it again with the same file, it goes on", ctx.Err())
		case err != nil && time.Now().After(t.Until):
			return in, fmt.Errorf("cannot enroll: the invitation was good until %s, and nobody approved it: %w; get a new one: continuo device enroll %s", t.Until.UTC().Format(time.RFC3339), err, t.Device)
		case err != nil:
			now = err.Error()
		case in.State == wire.StateApproved:
			return in, nil
		case in.State == wire.StateRefused:
			return in, errors.Join(fmt.Errorf("cannot enroll: the fleet refuses it (%s): %s; get a new invitation: continuo device enroll %s", in.Code, in.Message, t.Device), e.forget())
		default:
			now = "waiting for an operator"
		}
		if now != said {
			fmt.Fprintln(out, now)
			said = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(e.every):
		}
	}
}

// forget drops a request that is refused for ever.
func (e enrolment) forget() error { return os.Remove(e.file(askingFile)) }

// finish writes what the agent needs, the configuration last. Whatever it is interrupted in, it does again.
func (e enrolment) finish(t wire.Ticket, a natslink.Asking, in wire.LetIn) error {
	if err := keepCreds(e.file(credsFile))(a.Creds(in.Credential), in.Back); err != nil {
		return fmt.Errorf("cannot keep the credential: %w", err)
	}
	if err := writeFile(e.config, []byte(e.text(t))); err != nil {
		return fmt.Errorf("cannot write the configuration: %w", err)
	}
	if err := e.forget(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot finish: %w", err)
	}
	return nil
}

// text is the configuration.
func (e enrolment) text(t wire.Ticket) string {
	var b strings.Builder
	list := func(of []string) string {
		quoted := make([]string, len(of))
		for i, s := range of {
			quoted[i] = strconv.Quote(s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	fmt.Fprintf(&b, "# Made by continuo-agent enroll.\napiVersion: continuo/v1\nkind: AgentConfig\ndevice: %q\nsite: %q\nservers: %s\n", t.Device.ID, t.Device.Site, list(t.Servers))
	fmt.Fprintf(&b, "credentials: {type: creds, file: %q}\n", e.file(credsFile))
	switch {
	case t.CA != "":
		fmt.Fprintf(&b, "tls: {ca: %q}\n", e.file(caFile))
	case t.Plaintext:
		b.WriteString("tls: {plaintext: true}\n")
	}
	if len(t.Root) > 0 {
		fmt.Fprintf(&b, "trust: {root: %q} # whose signatures count\n", e.file(trustFile))
		return b.String()
	}
	fmt.Fprintf(&b, "trust:\n  documents: %s # who may sign what this device has to make true\n  control: %s # who answers heartbeats\n", list(t.Documents), list(t.Control))
	return b.String()
}

// keepCreds makes a credential durable. The one for coming back is written first: it is worth nothing by itself.
func keepCreds(file string) func(creds []byte, back string) error {
	return func(creds []byte, back string) error {
		if back != "" {
			if err := writeFile(file+backSuffix, []byte(back+"\n")); err != nil {
				return err
			}
		}
		return writeFile(file, creds)
	}
}

// writeFile replaces a file that only its owner may read, whole or not at all, and durably.
func writeFile(path string, b []byte) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return atomicfile.Write(dir, filepath.Base(path), atomicfile.File{Content: b, Mode: 0o600})
}
