package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

// theirs is what somebody wrote before there was a manifest.
const theirs = "brightness=20\nlanguage=en\n"

// foreign shows that nothing that others made is overwritten before a person has seen the plan of exactly that.
func (d *demo) foreign(ctx context.Context) error {
	d.step("4. A manifest claims a file of pi-1 that somebody else wrote.")
	file := filepath.Join(d.disk.root, "etc/panel.conf")
	if err := os.WriteFile(file, []byte(theirs), 0o644); err != nil {
		return fmt.Errorf("cannot write a file: %w", err)
	}
	m, found, err := demoManifest("panel.yaml")
	if err != nil || schemas.Errors(found) > 0 {
		return fmt.Errorf("cannot use the manifest panel.yaml: %v %w", found, err)
	}
	signer := d.srv.Keys().Operator
	if _, err := d.fleet.Publish(ctx, []score.Manifest{m}, fleet.PublishOptions{Signer: signer}); err != nil {
		return err
	}
	s, err := d.until(ctx, "pi-1", func(s fleet.DeviceState) bool {
		sc, ok := s.Score("panel", "conf")
		return ok && s.Verdict.Settled() && sc.Outcome == interpret.Conflict
	})
	if err != nil {
		return err
	}
	sc, _ := s.Score("panel", "conf")
	d.say("   pi-1: %s %s: %s", sc.ID, sc.Outcome, sc.Message)
	d.fact(d.disk.read("/etc/panel.conf") == theirs && sc.Code == authority.CodeForeign, "the file is left alone, and the device says so")

	began := time.Now()
	plan, err := d.fleet.Plan(ctx, device("pi-1"), "demo", fleet.OperateOptions{Signer: signer, Root: d.root})
	if err != nil {
		return err
	}
	d.say("$ continuo plan pi-1")
	if err := show.Plan(d.out, plan); err != nil {
		return err
	}
	d.fact(d.disk.read("/etc/panel.conf") == theirs && len(plan.Actions) == 1 && plan.Actions[0].Provenance == interpret.Foreign,
		"the device answers what it would do, field by field, and changes nothing (%d ms)", time.Since(began).Milliseconds())

	began = time.Now()
	op := interpret.Operation{ID: fleet.NewOperationID(), Device: "pi-1", Verb: interpret.VerbInstall, Plan: plan.ID, Actor: "demo", Reason: "the panel is too dark"}
	if err := d.fleet.Operate(ctx, op, fleet.OperateOptions{Signer: signer, Root: d.root}); err != nil {
		return err
	}
	receipt, err := d.fleet.WaitReceipt(ctx, device("pi-1"), op.ID)
	if err != nil {
		return err
	}
	d.say("$ continuo install pi-1 --plan %s… --confirm", short(plan.ID))
	if err := show.Receipt(d.out, receipt); err != nil {
		return err
	}
	done := receipt.Result == interpret.ResultDone && len(receipt.Actions) == 1 && receipt.Actions[0].Backup != "" && strings.Contains(receipt.Actions[0].Diff, "+brightness=80")
	d.fact(done && d.disk.read("/etc/panel.conf") == "brightness=80\nlanguage=en\n",
		"exactly that plan is done when it is confirmed; the receipt has the diff, and the backup of what was there (%d ms)", time.Since(began).Milliseconds())

	op.Reason = "another reason"
	if err := d.fleet.Operate(ctx, op, fleet.OperateOptions{Signer: signer, Root: d.root}); err != nil {
		return err
	}
	if receipt, err = d.fleet.WaitReceipt(ctx, device("pi-1"), op.ID); err != nil {
		return err
	}
	d.fact(receipt.Result == interpret.ResultConflict, "the same operation is done once: another one under its id is refused")
	return nil
}

// absent shows that absence destroys nothing.
func (d *demo) absent(ctx context.Context) error {
	d.step("5. The manifest is taken away again.")
	done, err := d.fleet.Remove(ctx, device("pi-1"), "panel", fleet.PublishOptions{Signer: d.srv.Keys().Operator, Root: d.root})
	if err != nil {
		return err
	}
	s, err := d.until(ctx, "pi-1", func(s fleet.DeviceState) bool {
		return s.Verdict == fleet.Converged && s.Status.Generation == done[0].Generation && len(s.Status.Orphans) > 0
	})
	if err != nil {
		return err
	}
	o := s.Status.Orphans[0]
	d.say("   pi-1: left over: %s, of score %s of manifest %s: %s", o.Resource, o.Score, o.Manifest, o.Message)
	d.fact(o.Resource == "file:/etc/panel.conf" && d.disk.read("/etc/panel.conf") != "", "nothing is removed by absence alone: it stays, and is reported as left over")
	return nil
}
