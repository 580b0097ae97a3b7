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
	"github.com/continuo-fleet/continuo/interpret"
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
		Short: "Show the main job on this machine: a server, two devices, drift, and refusals",
		Long: `demo starts a NATS server and two agents in this process, one on a directory and one on a
device in memory, and shows what Continuo does with them. It needs no root and no network,
and leaves nothing behind. It ends with 1 if anything is not as it says.`,
		Args: cobra.NoArgs,
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
	for _, part := range []func(context.Context) error{d.converge, d.drift, d.quiet, d.invalid, d.forged, d.offline} {
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

// manifest reads one of the demonstration's files.
func demoManifest(file string) (score.Manifest, []schemas.Diagnostic, error) {
	text, err := demoData.ReadFile("demodata/" + file)
	if err != nil {
		return score.Manifest{}, nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	m, found := schemas.Validate(file, text)
	return m, found, nil
}

func (d *demo) converge(ctx context.Context) error {
	d.step("1. Two manifests are validated, signed and published.")
	var ms []score.Manifest
	for _, file := range []string{"files.yaml", "kiosk.yaml"} {
		m, found, err := demoManifest(file)
		if err != nil || schemas.Errors(found) > 0 {
			return fmt.Errorf("cannot use the manifest %s: %v %w", file, found, err)
		}
		ms = append(ms, m)
	}
	began := time.Now()
	done, err := d.fleet.Publish(ctx, ms, fleet.PublishOptions{Signer: d.srv.Keys().Operator})
	if err != nil {
		return err
	}
	var all overview
	for _, p := range done {
		s, err := d.fleet.Wait(ctx, p.Device, p.Generation)
		if err != nil {
			return err
		}
		all.add(s)
	}
	took := time.Since(began)
	if err := all.table(d.out, false); err != nil {
		return err
	}
	for _, s := range all.Devices {
		if s.Status != nil {
			if err := show.Scores(d.out, *s.Status); err != nil {
				return err
			}
		}
	}
	d.fact(all.Counts[fleet.Converged] == 2, "both devices report, typed and per score, that they are what the manifests say (%d ms)", took.Milliseconds())
	d.fact(d.disk.read("/etc/signage.conf") == "url=https://example.org\n" && d.disk.read("/etc/motd") != "", "the files are in the directory of pi-1, durable and with their modes")
	host, err := d.memory.dev.Host().Hostname(ctx)
	d.fact(err == nil && host.Static == "kiosk-2" && d.running(ctx), "pi-2 has its host name, its container and its service")
	return nil
}

// running tells whether the service of pi-2 runs.
func (d *demo) running(ctx context.Context) bool {
	st, err := d.memory.dev.Services().Service(ctx, "kiosk.service")
	return err == nil && st.Active == "active"
}

func (d *demo) drift(ctx context.Context) error {
	d.step("2. Somebody edits a file of pi-1 by hand, and the service of pi-2 is killed.")
	began := time.Now()
	file := filepath.Join(d.disk.root, "etc/signage.conf")
	if err := os.WriteFile(file, []byte("url=https://elsewhere.example\n"), 0o640); err != nil {
		return fmt.Errorf("cannot edit a file: %w", err)
	}
	d.memory.mem.Kill("kiosk.service", 1)
	for _, want := range []struct {
		device    string
		manifest  string
		score     score.ID
		corrected string
	}{
		{"pi-1", "signage", "conf", "the edit is found by event and undone, and reported as drift"},
		{"pi-2", "kiosk", "kiosk", "the service is started again, and that is reported as drift"},
	} {
		s, err := d.until(ctx, want.device, func(s fleet.DeviceState) bool {
			sc, ok := s.Score(want.manifest, want.score)
			return ok && s.Verdict == fleet.Converged && sc.Cause == interpret.CauseDrift
		})
		if err != nil {
			return err
		}
		sc, _ := s.Score(want.manifest, want.score)
		for _, c := range sc.Changes {
			d.say("   %s: %s %s: %s: %s -> %s", want.device, sc.ID, sc.Outcome, c.Field, short(c.Have), short(c.Want))
		}
		d.fact(true, "%s (%d ms)", want.corrected, time.Since(began).Milliseconds())
	}
	d.fact(d.disk.read("/etc/signage.conf") == "url=https://example.org\n" && d.running(ctx), "the file and the service are as they were")
	return nil
}

func (d *demo) quiet(ctx context.Context) error {
	d.step("3. The same manifest is published once more.")
	before := d.disk.identity("/etc/signage.conf")
	m, _, err := demoManifest("files.yaml")
	if err != nil {
		return err
	}
	done, err := d.fleet.Publish(ctx, []score.Manifest{m}, fleet.PublishOptions{Signer: d.srv.Keys().Operator})
	if err != nil {
		return err
	}
	d.fact(len(done) == 1 && !done[0].Written && before == d.disk.identity("/etc/signage.conf"), "nothing differs: nothing is written to the store, and no file is touched")
	return nil
}

func (d *demo) invalid(ctx context.Context) error {
	d.step("4. A manifest with mistakes is to be published.")
	_, found, err := demoManifest("bad.yaml")
	if err != nil {
		return err
	}
	for _, g := range found {
		d.say("   %s", g)
	}
	s, err := d.state(ctx, "pi-1")
	if err != nil {
		return err
	}
	d.fact(schemas.Errors(found) == 2 && s.Desired == 1, "it is refused before it is published: every mistake has its line and column")
	return nil
}

func (d *demo) forged(ctx context.Context) error {
	d.step("5. A document that another key signed gets into the store, past all checks.")
	if err := d.forge(ctx, "pi-1", 2); err != nil {
		return err
	}
	s, err := d.until(ctx, "pi-1", func(s fleet.DeviceState) bool { return s.Desired == 2 && s.Verdict == fleet.Failed })
	if err != nil {
		return err
	}
	d.say("   pi-1: %s", s.Reason)
	d.fact(s.Status.Generation == 1 && d.disk.read("/etc/signage.conf") == "url=https://example.org\n",
		"the device refuses it, says so, and keeps the last good one")
	return nil
}

func (d *demo) offline(ctx context.Context) error {
	d.step("6. The server stops, the agent of pi-1 stops, a file is deleted, and the agent starts again.")
	d.disk.stop()
	d.closeServer()
	if err := os.Remove(filepath.Join(d.disk.root, "etc/motd")); err != nil {
		return fmt.Errorf("cannot delete a file: %w", err)
	}
	if err := d.disk.start(ctx); err != nil {
		return err
	}
	if err := d.disk.wait(ctx); err != nil {
		return err
	}
	d.fact(d.disk.read("/etc/motd") == "Managed by Continuo.\n", "the file is back, from the agent's own disk and without any network")
	return nil
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
		return fmt.Errorf("%s of %d not as it should be", cli.Plural(wrong, "fact"), len(d.facts))
	}
	return nil
}
