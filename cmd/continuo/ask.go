package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// asking is how a command asks one device for an operation.
type asking struct {
	connection
	key     string
	actor   string
	timeout time.Duration
	format  show.Format

	// of what changes something
	confirm bool
	id      string
	reason  string
	expires end
	replace bool
	out     string
	// unsigned: what is written to out has no signature yet
	unsigned bool
	device   fleet.Device
}

// flags adds the flags of every question.
func (a *asking) flags(cmd *cobra.Command) {
	a.connection.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&a.key, "key", "", "file with the seed of the operator key (default DATA/keys/operator.nk)")
	f.StringVar(&a.actor, "actor", "", "who asks, for the records (default USER@HOST)")
	f.DurationVar(&a.timeout, "timeout", 30*time.Second, "how long to wait for the answer")
	a.format.Flag(f)
}

// changing adds the flags of operations that change something.
func (a *asking) changing(cmd *cobra.Command, confirm string) {
	a.flags(cmd)
	f := cmd.Flags()
	f.BoolVar(&a.confirm, "confirm", false, confirm+"; without it that is only shown")
	f.StringVar(&a.id, "operation", "", "id of the operation, to ask for the same one again: it is done once (default a new one)")
	f.StringVar(&a.reason, "reason", "", "why, for the records")
	f.Var(&a.expires, "expires", "how long the device may take to fetch and do it, or until when (default 1h, at most 24h)")
	f.StringVar(&a.out, "out", "", "file to write the signed operation to, and ask for nothing: others sign it with continuo sign, and continuo publish asks for it")
	f.BoolVar(&a.replace, "replace", false, "ask although an earlier operation is not answered: if the device has not fetched that one, it never will")
}

// An end is a duration from now, or a time.
type end struct {
	text string
	span time.Duration
	at   time.Time
}

func (e *end) String() string { return e.text }
func (e *end) Type() string   { return "duration" }
func (e *end) Set(s string) (err error) {
	e.text = s
	if e.at, err = time.Parse(time.RFC3339, s); err == nil {
		return nil
	}
	if e.span, err = time.ParseDuration(s); err != nil || e.span <= 0 {
		return errors.New("must be a duration like 1h, or a time like 2026-01-02T15:04:05Z")
	}
	return nil
}

// time is when it ends, counted from now.
func (e *end) time() time.Time {
	if !e.at.IsZero() {
		return e.at
	}
	return time.Now().Add(cmp.Or(e.span, fleet.DefaultOperationLife)).UTC().Truncate(time.Second)
}

// who is user@host.
func (a *asking) who() string {
	return cmp.Or(a.actor, self())
}

// self is user@host, as the system says.
func self() string {
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// operation fills in what all operations have.
func (a *asking) operation(d fleet.Device, op interpret.Operation) interpret.Operation {
	op.APIVersion, op.Kind = score.APIVersion, interpret.OperationKind
	op.Device, op.Actor, op.Reason, op.Expires = d.ID, a.who(), a.reason, a.expires.time()
	op.ID, a.device = a.id, d
	return op
}

// ask asks d and gives the answer.
func (a *asking) ask(ctx context.Context, f *fleet.Fleet, d fleet.Device, op interpret.Operation) (interpret.Receipt, error) {
	if a.out != "" {
		return interpret.Receipt{}, cli.Usagef("--out and --confirm do not go together: what is written to a file is asked for later")
	}
	signer, err := a.signing(a.key)
	if err != nil {
		return interpret.Receipt{}, err
	}
	op.ID = cmp.Or(op.ID, fleet.NewOperationID())
	patient, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	root, err := a.followed(patient, f, a.key)
	if err != nil {
		return interpret.Receipt{}, err
	}
	err = f.Operate(patient, op, fleet.OperateOptions{Signer: signer, Site: d.Site, Replace: a.replace, Root: root})
	if open, ok := errors.AsType[*fleet.UnansweredError](err); ok {
		if op.Verb == interpret.VerbRollbackCheck {
			return interpret.Receipt{}, fmt.Errorf("cannot ask %s: it has not answered operation %s yet; wait for it: continuo receipts %[1]s %[2]s", name(d), show.Text(open.Operation.ID))
		}
		return interpret.Receipt{}, fmt.Errorf("%w (--replace)", err)
	}
	if err != nil {
		return interpret.Receipt{}, err
	}
	r, err := f.WaitReceipt(patient, d, op.ID)
	if errors.Is(err, context.DeadlineExceeded) {
		return r, fmt.Errorf(`%s
operation %s is valid until %s: the device does it if it comes back before
see what came of it:  continuo receipts %[4]s %[2]s
or wait again:        the same command with --operation %[2]s --expires %[3]s`,
			a.silence(ctx, f, d), op.ID, op.Expires.UTC().Format(time.RFC3339), name(d))
	}
	return r, err
}

// silence says that a device has not answered in time, and what is known of it. It is no
// statement about how the device is.
func (a *asking) silence(ctx context.Context, f *fleet.Fleet, d fleet.Device) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	text := fmt.Sprintf("%s has not answered within %s", name(d), a.timeout)
	states, err := f.Status(ctx, d)
	if err != nil {
		return text + "; how it is now is not known"
	}
	s := states[0]
	switch {
	case s.Liveness == fleet.Live:
		text += ", although its heartbeats arrive: it may be busy, or its connection slow"
	case s.Liveness == fleet.Silent && !s.LastHeard.IsZero():
		text += ": no heartbeat of it arrived since " + s.LastHeard.UTC().Format(time.RFC3339)
	case s.Status == nil && s.LastHeard.IsZero():
		text += ", and was never heard of: its name may be wrong"
	case s.Liveness == fleet.Silent:
		text += ": no heartbeat of it arrives"
	}
	return text + "; that it cannot be reached says nothing about drift"
}

// answer shows a receipt, and turns it into the exit code.
func (a *asking) answer(cmd *cobra.Command, d fleet.Device, r interpret.Receipt) error {
	written, err := a.format.Write(cmd.OutOrStdout(), r)
	if !written {
		err = show.Receipt(cmd.OutOrStdout(), r)
	}
	if err == nil {
		err = done(r)
	}
	switch {
	case r.Code == agent.CodeNoBackup:
		fmt.Fprintf(cmd.ErrOrStderr(), "receipts name backups: continuo history %s, continuo receipts %[1]s ID; on the device, continuo-agent backups lists them\n", name(d))
	case r.Code != interpret.CodePlanChanged || r.Plan == nil:
	case slices.ContainsFunc(r.Plan.Actions, installable):
		fmt.Fprintf(cmd.ErrOrStderr(), "nothing was done: look at the plan of now, and confirm that: continuo install %s --plan %s --confirm\n", name(d), r.Plan.ID)
	case r.Plan.Differs():
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was done, and the plan of now has nothing that an install does")
		next(cmd.ErrOrStderr(), name(d), *r.Plan)
	default:
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was done, and nothing is to be done: the device is as it should be")
	}
	return err
}

// A preview is what would be asked.
type preview struct {
	// Operation as it would be signed.
	Operation interpret.Operation `json:"operation"`
	// Plan that it is about, if the fleet has it.
	Plan *interpret.Plan `json:"plan,omitempty"`
	// Request that it answers.
	Request *fleet.Request `json:"request,omitempty"`
}

// preview shows what would be asked, in words, and what more tells about it.
func (a *asking) preview(cmd *cobra.Command, p preview, words string, more func() error) error {
	op := p.Operation
	if a.out != "" {
		return a.hold(cmd, op)
	}
	done, err := a.format.Write(cmd.OutOrStdout(), p)
	if !done {
		fmt.Fprintf(cmd.OutOrStdout(), "would ask %s to %s\nby %s, valid until %s", show.Text(op.Device), words, show.Text(op.Actor), op.Expires.UTC().Format(time.RFC3339))
		if op.Reason != "" {
			fmt.Fprintf(cmd.OutOrStdout(), ", because: %s", show.Text(op.Reason))
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout())
		if err == nil && more != nil {
			err = more()
		}
	}
	if err == nil {
		fmt.Fprintln(cmd.ErrOrStderr(), "nothing was asked: this is a preview; add --confirm to ask for it")
	}
	return err
}

// oneDevice wants DEVICE and from min to max more arguments, which usage names.
func oneDevice(minimum, maximum int, usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if n := len(args); n < minimum+1 || maximum >= 0 && n > maximum+1 {
			return cli.Usagef("give %s", usage)
		}
		return nil
	}
}

// theDevice is the first argument.
func theDevice(args []string) (fleet.Device, error) {
	ds, err := parseDevices(args[:1])
	if err != nil {
		return fleet.Device{}, err
	}
	return ds[0], nil
}
