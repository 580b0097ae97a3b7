package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

// The steps of the demonstration, in their order.

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
	done, err := d.fleet.Publish(ctx, ms, fleet.PublishOptions{Signer: d.srv.Keys().Operator, Root: d.root})
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
			d.say("%s:", s.Device.ID)
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
			d.say("   %s: %s %s: %s: %s → %s", want.device, sc.ID, sc.Outcome, c.Field, short(c.Have), short(c.Want))
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
	done, err := d.fleet.Publish(ctx, []score.Manifest{m}, fleet.PublishOptions{Signer: d.srv.Keys().Operator, Root: d.root})
	if err != nil {
		return err
	}
	d.fact(len(done) == 1 && !done[0].Written && before == d.disk.identity("/etc/signage.conf"), "nothing differs: nothing is written to the store, and no file is touched")
	return nil
}

func (d *demo) invalid(ctx context.Context) error {
	d.step("6. A manifest with mistakes is to be published.")
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
	d.fact(schemas.Errors(found) == 2 && s.Desired == s.Status.Generation, "it is refused before it is published: every mistake has its line and column")
	return nil
}

func (d *demo) forged(ctx context.Context) error {
	d.step("7. A document that another key signed gets into the store, past all checks.")
	before, err := d.state(ctx, "pi-1")
	if err != nil {
		return err
	}
	forged := before.Desired + 1
	if err := d.forge(ctx, "pi-1", forged); err != nil {
		return err
	}
	s, err := d.until(ctx, "pi-1", func(s fleet.DeviceState) bool { return s.Desired == forged && s.Verdict == fleet.Failed })
	if err != nil {
		return err
	}
	d.say("   pi-1: %s", s.Reason)
	d.fact(s.Status.Generation == before.Desired && d.disk.read("/etc/signage.conf") == "url=https://example.org\n",
		"the device refuses it, says so, and keeps the last good one")
	return nil
}

func (d *demo) offline(ctx context.Context) error {
	d.step("8. The server stops, the agent of pi-1 stops, a file is deleted, and the agent starts again.")
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
