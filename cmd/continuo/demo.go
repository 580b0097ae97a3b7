package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

//go:embed demodata/*.yaml
var demoData embed.FS

// demoLimit is how long the whole demonstration may take.
const demoLimit = 55 * time.Second

func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on this machine: a server, two devices, drift, plans, and refusals",
		Long: `demo starts a NATS server and two agents in this process, one on a directory and one on a
device in memory, and shows what Continuo does with them. It needs no root and no network,
and leaves nothing behind. It ends with 1 if anything is not as it says.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), demoLimit)
			defer cancel()
			d := &demo{out: cmd.OutOrStdout(), began: time.Now()}
			err := d.run(ctx)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("cannot finish within %s: %w", demoLimit, err)
			}
			if err != nil {
				_, _ = d.log.text.WriteTo(cmd.ErrOrStderr())
				return err
			}
			return d.summary()
		},
	}
}

// A demo is one demonstration.
type demo struct {
	out   io.Writer
	log   locked // of the agents; shown when something goes wrong
	began time.Time
	facts []fact

	dir     string
	srv     *localnats.Server
	control func() // stops the control service
	fleet   *fleet.Fleet
	root    fleet.Root // whom the devices trust
	disk    *demoAgent // pi-1, on a directory
	memory  *demoAgent // pi-2, in memory
}

// A fact is something that was to be shown, and whether it was true.
type fact struct {
	text string
	true bool
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) fact(ok bool, format string, args ...any) {
	f := fact{fmt.Sprintf(format, args...), ok}
	d.facts = append(d.facts, f)
	d.say("   %s: %s", map[bool]string{true: "true", false: "FALSE"}[ok], f.text)
}

func (d *demo) step(text string) { d.say("\n%s", text) }

func (d *demo) run(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "continuo-demo-"); err != nil {
		return fmt.Errorf("cannot make a directory for the demonstration: %w", err)
	}
	defer func() {
		if rerr := os.RemoveAll(d.dir); err == nil && rerr != nil {
			err = fmt.Errorf("cannot remove the directory of the demonstration: %w", rerr)
		}
	}()
	stop, err := d.start(ctx)
	defer stop()
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{d.converge, d.drift, d.quiet, d.foreign, d.absent, d.invalid, d.forged, d.offline} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start starts the server with its control service, and both agents.
func (d *demo) start(ctx context.Context) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := len(stops) - 1; i >= 0; i-- {
			stops[i]()
		}
	}
	d.say("A NATS server and two agents start in this process; everything is in a temporary directory.")
	d.srv, err = localnats.Start(localnats.Options{Dir: filepath.Join(d.dir, "server"), Listen: "127.0.0.1:0"})
	if err != nil {
		return stop, err
	}
	d.control = func() {}
	stops = append(stops, func() { d.closeServer() })
	if _, err := d.srv.Setup(ctx); err != nil {
		return stop, err
	}
	srv := d.srv
	d.control = background(ctx, func(ctx context.Context) { _ = srv.Serve(ctx, fleet.ServeOptions{}) })
	if d.disk, err = d.onDirectory(ctx, "pi-1"); err != nil {
		return stop, err
	}
	stops = append(stops, func() { d.disk.finish() })
	if d.memory, err = d.inMemory(ctx, "pi-2"); err != nil {
		return stop, err
	}
	stops = append(stops, func() { d.memory.finish() })
	if d.fleet, err = fleet.Connect(ctx, d.srv.Operator()); err != nil {
		return stop, err
	}
	stops = append(stops, func() { d.fleet.Close() })
	chain, err := localnats.Dir(filepath.Join(d.dir, "server")).Trust()
	if err != nil {
		return stop, err
	}
	d.root = chain.Last()
	d.say("pi-1 has a directory as its disk, and nothing else. pi-2 is in memory, with services, containers and a host name.")
	return stop, nil
}

// closeServer stops the server and its control service, once.
func (d *demo) closeServer() {
	if d.srv != nil {
		d.control()
		_ = d.srv.Close()
		d.srv = nil
	}
}

// demoManifest reads one of the demonstration's files.
func demoManifest(file string) (score.Manifest, []schemas.Diagnostic, error) {
	text, err := demoData.ReadFile("demodata/" + file)
	if err != nil {
		return score.Manifest{}, nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	m, found := schemas.Validate(file, text)
	return m, found, nil
}

// state is how a device is now.
func (d *demo) state(ctx context.Context, id string) (fleet.DeviceState, error) {
	states, err := d.fleet.Status(ctx, device(id))
	if err != nil {
		return fleet.DeviceState{}, err
	}
	return states[0], nil
}

// until waits until the state of a device is as wanted.
func (d *demo) until(ctx context.Context, id string, wanted func(fleet.DeviceState) bool) (last fleet.DeviceState, err error) {
	found := false
	err = d.fleet.Watch(ctx, []fleet.Device{device(id)}, func(s fleet.DeviceState) bool {
		last, found = s, wanted(s)
		return !found
	})
	if err == nil && !found {
		err = fmt.Errorf("cannot follow %s: the watch ended", id)
	}
	if err != nil {
		return last, fmt.Errorf("cannot wait for %s, which is %s (%s): %w", id, last.Verdict, last.Reason, err)
	}
	return last, nil
}

func device(id string) fleet.Device { return fleet.Device{Site: "main", ID: id} }

// short cuts a digest to what a person can compare.
func short(s string) string {
	if len(s) == 64 {
		return s[:12]
	}
	return s
}

func (d *demo) summary() error {
	d.say("\nShown in %.1f s:", time.Since(d.began).Seconds())
	wrong := 0
	for _, f := range d.facts {
		mark := "true "
		if !f.true {
			mark = "FALSE"
			wrong++
		}
		d.say("  %s  %s", mark, f.text)
	}
	if wrong > 0 {
		return fmt.Errorf("%s of %d not as it should be", show.Plural(wrong, "fact"), len(d.facts))
	}
	return nil
}
