package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/interpret"
)

// What looks at a device takes its configuration, as everything else on it does: who it is, where its books are, and what its
// ceiling lets be played.
func TestLooksUnderTheConfiguration(t *testing.T) {
	b := newBench(t)
	conf := b.write("agent.yaml", minimal+"ceiling: {kinds: [file]}\n")
	code, out, errs := b.run("", "info", "--config", conf, "--root", b.root, "--state", b.dir+"/state", "-o", "json")
	var info interpret.DeviceInfo
	if err := json.Unmarshal([]byte(out), &info); err != nil || code != 0 || info.Device == "" || !strings.Contains(minimal, "device: "+info.Device+"\n") {
		t.Errorf("exit %d: %s%s: %v", code, out, errs, err)
	}
	code, out, errs = b.run("", "kinds", "--config", conf, "--root", b.root, "-o", "json")
	var rows []kindRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != 0 {
		t.Fatalf("exit %d: %s: %v", code, errs, err)
	}
	for _, r := range rows {
		if r.Available != (r.Kind == "file") || r.Kind == "symlink" && !strings.Contains(r.Reason, "ceiling does not list the kind") {
			t.Errorf("%+v", r)
		}
	}
	for _, cmd := range []string{"info", "kinds"} {
		if code, _, errs := b.run("", cmd, "--config", b.write("bad.yaml", minimal+"ceiling: {paths: [etc]}\n")); code != cli.Invalid || !strings.Contains(errs, "bad.yaml") {
			t.Errorf("%s: exit %d: %s", cmd, code, errs)
		}
	}
}
