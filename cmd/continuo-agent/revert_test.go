package main

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
)

// What the timer of a checkpoint runs does nothing once the checkpoint is ended.
func TestRevert(t *testing.T) {
	if code, out, errs := newBench(t).run("", "revert", t.TempDir()+"/checkpoints/firewall-1.json"); code != cli.OK || out != "" || errs != "" {
		t.Errorf("exit %d: %q, %q", code, out, errs)
	}
	if code, _, errs := newBench(t).run("", "revert"); code != cli.Invalid || !strings.Contains(errs, "one file") {
		t.Errorf("exit %d: %q", code, errs)
	}
}
