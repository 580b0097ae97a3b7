package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
)

func newStatus() *cobra.Command {
	var c connection
	var p patience
	var format show.Format
	cmd := &cobra.Command{
		Use:   "status [DEVICE...]",
		Short: "Show how the devices are",
		Long: `status reads what is published for devices and what they reported last. No device is
asked. With one DEVICE it shows every score. It ends with 1 unless every device holds what
is published for it.

STATE of a device:
  converged    it is what it should be
  converging   it is on its way
  drifted      it was left otherwise than it should be
  pending      it waits for a person: continuo plan DEVICE says for what
  unsupported  it cannot be what it should be
  failed       it tried, or refused, or rolled back; what can be tried again is
  stale        it is silent
  unknown      nothing is known that could be judged
GENERATION counts what was published for it; "1 of 2" has not taken the second yet.
CONVERGED counts its scores that hold. HEARD says whether its heartbeats arrive.

OUTCOME of a score, when it was looked at last:
  unchanged    it was true already
  changed      it was made true; REASON is intent (the manifest is new), drift (the device
               was changed, or a secret on it) or dependency (a score that restarts it has changed)
  drifted      it is not true, and was left so
  waiting      a score that it comes after has not converged
  rolled_back  it failed, and the last good version of its manifest is in force again; with the REASON
               connectivity the fleet was not reached after it, and what was there before it is again
  pending, conflict, refused, unsupported, failed: REASON says why
AUTHORITY is what allowed its last change: standing:PRESET is the policy of its manifest,
plan:ID and signed:ID are operations, see continuo receipts DEVICE ID.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			devices, err := parseDevices(args)
			if err != nil {
				return err
			}
			ctx, cancel := p.context(cmd.Context())
			defer cancel()
			f, err := c.connect(ctx, p.wait)
			if err != nil {
				return err
			}
			defer f.Close()
			states, err := f.Status(ctx, devices...)
			if err != nil {
				return err
			}
			if p.wait {
				if err := waitAll(ctx, f, states); err != nil {
					return err
				}
				p.gaveUp(ctx, cmd)
			}
			out := overview{named: len(devices) > 0}
			for _, s := range states {
				out.add(s)
			}
			return out.show(cmd, format, len(devices) == 1)
		},
	}
	c.flags(cmd)
	p.flags(cmd.Flags(), "wait until every device holds what is published for it, or says that it cannot")
	format.Flag(cmd.Flags())
	return cmd
}

// waitAll waits until every device has settled at what is published for it, and replaces
// the states by the last ones.
func waitAll(ctx context.Context, f *fleet.Fleet, states []fleet.DeviceState) error {
	for i, s := range states {
		last, err := f.Wait(ctx, s.Device, max(s.Desired, 1))
		if err != nil && ctx.Err() == nil {
			return err
		}
		if last.Device == s.Device {
			states[i] = last
		}
	}
	return nil
}

func parseDevices(args []string) ([]fleet.Device, error) {
	var out []fleet.Device
	for _, a := range args {
		d, err := fleet.ParseDevice(a)
		if err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		out = append(out, d)
	}
	return out, nil
}

// name is how people write a device: without the site if it is the only one.
func name(d fleet.Device) string { return strings.TrimPrefix(d.String(), "main.") }

// An overview is the states of devices, and how many are in each.
type overview struct {
	// Counts of devices by verdict.
	Counts map[fleet.Verdict]int `json:"counts"`
	// Devices in the order of their names, or as they were asked for.
	Devices []fleet.DeviceState `json:"devices"`

	named bool // the devices were named by the user
}

func (o *overview) add(s fleet.DeviceState) {
	if o.Counts == nil {
		o.Counts = map[fleet.Verdict]int{}
	}
	if s.Verdict == "" {
		s.Verdict, s.Reason = fleet.Fold(s)
	}
	o.Counts[s.Verdict]++
	o.Devices = append(o.Devices, s)
}

// show writes the overview, and turns it into the exit code.
func (o *overview) show(cmd *cobra.Command, format show.Format, detail bool) error {
	done, err := format.Write(cmd.OutOrStdout(), o)
	if !done {
		err = o.table(cmd.OutOrStdout(), detail)
	}
	if err != nil {
		return err
	}
	for _, s := range o.Devices {
		if s.Verdict != fleet.Converged && (s.Desired > 0 || o.named || s.Verdict != fleet.Unknown) {
			return cli.ErrDiffers
		}
	}
	return nil
}

func (o *overview) table(w io.Writer, detail bool) error {
	if len(o.Devices) == 0 {
		_, err := fmt.Fprintln(w, "no device is known: nothing is published, and none has reported")
		return err
	}
	detail = detail && len(o.Devices) == 1
	t := show.NewTable("DEVICE", "STATE", "GENERATION", "CONVERGED", "HEARD", "REASON")
	for _, s := range o.Devices {
		if detail {
			s.Reason = withoutDetail(s)
		}
		t.Row(row(s)...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if st := o.Devices[0].Status; detail && st != nil {
		if len(st.Manifests)+len(st.Orphans)+len(st.Unmanaged)+len(st.Problems) > 0 {
			fmt.Fprintln(w)
		}
		return show.Scores(w, *st)
	}
	var counts []string
	for v, n := range o.Counts {
		counts = append(counts, fmt.Sprintf("%d %s", n, v))
	}
	slices.Sort(counts)
	_, err := fmt.Fprintf(w, "%s: %s\n", show.Plural(len(o.Devices), "device"), strings.Join(counts, ", "))
	return err
}

// withoutDetail is the reason of s without what the row of the score says once more.
func withoutDetail(s fleet.DeviceState) string {
	if s.Status == nil {
		return s.Reason
	}
	for _, m := range s.Status.Manifests {
		for _, sc := range m.Scores {
			if head := fmt.Sprintf("%s/%s is %s", m.Name, sc.ID, sc.Outcome); strings.HasPrefix(s.Reason, head+": ") {
				return head
			}
		}
	}
	return s.Reason
}

// row is the line of one device.
func row(s fleet.DeviceState) []string {
	generation, converged := fmt.Sprint(s.Desired), "-"
	if s.Desired == 0 {
		generation = "-"
	}
	if s.Status != nil {
		n, total := show.Converged(*s.Status)
		converged = fmt.Sprintf("%d/%d", n, total)
		if s.Status.Generation != s.Desired {
			generation = fmt.Sprintf("%d of %d", s.Status.Generation, s.Desired)
		}
	}
	return []string{name(s.Device), string(s.Verdict), generation, converged, heard(s), show.Text(s.Reason)}
}

func heard(s fleet.DeviceState) string {
	switch {
	case s.Liveness == fleet.Silent && !s.LastHeard.IsZero():
		return "silent since " + s.LastHeard.UTC().Format(time.RFC3339)
	case s.Liveness == fleet.Live || s.Liveness == fleet.Silent:
		return string(s.Liveness)
	case !s.ReportedAt.IsZero():
		return "reported " + s.ReportedAt.UTC().Format(time.RFC3339)
	}
	return "unknown"
}
