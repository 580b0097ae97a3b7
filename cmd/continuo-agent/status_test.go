package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

// What was accepted last can be looked at on the device, without a server and without a running agent.
func TestStatusWithoutIntent(t *testing.T) {
	b := newBench(t)
	file := b.write("agent.yaml", minimal)
	code, out, errs := b.run("", "status", "--config", file, "--root", b.root, "--state", b.dir+"/state")
	if code != 1 || out != "device pi-7: nothing was accepted yet\n" || errs != "" {
		t.Errorf("exit %d: %q %q", code, out, errs)
	}
}

// accept makes a manifest what was accepted last, and gives the configuration of an agent that trusts who signed it.
func (b *bench) accept(text string) (configuration string) {
	b.t.Helper()
	b.generation = max(b.generation+1, 3)
	signer, err := nkeys.CreateAccount()
	if err != nil {
		b.t.Fatal(err)
	}
	public, err := signer.PublicKey()
	if err != nil {
		b.t.Fatal(err)
	}
	m, found := source.Manifest("m.yaml", []byte(text))
	if len(found) > 0 {
		b.t.Fatal(found)
	}
	m.Metadata.Generation = b.generation
	as := score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: "pi-7", Generation: b.generation},
		Spec: score.AssignmentSpec{Complete: true, Scores: len(m.Spec.Scores), Manifests: []score.Manifest{m}}}
	payload, err := score.Encode(as)
	if err != nil {
		b.t.Fatal(err)
	}
	envelope, err := wire.Seal(wire.Statement{Kind: wire.KindDevice, Audience: "main.pi-7", Generation: b.generation, Media: wire.MediaAssignment}, payload, signer)
	if err != nil {
		b.t.Fatal(err)
	}
	books := b.open()
	if err := books.Accept(store.Intent{Name: "device", Generation: b.generation, Digest: fmt.Sprint("d", b.generation), Envelope: envelope}); err != nil {
		b.t.Fatal(err)
	}
	if err := books.Close(); err != nil {
		b.t.Fatal(err)
	}
	return b.write("agent.yaml", strings.Replace(minimal, "documents: [", "documents: ["+public+", ", 1))
}

// What was accepted is verified as at the start of the agent, compared, and not touched.
func TestStatusOfAnIntent(t *testing.T) {
	b := newBench(t)
	trusting := b.accept(kiosk)
	state := filepath.Join(b.root, config.DefaultState)
	code, out, errs := b.run("", "status", "--config", trusting, "--root", b.root, "--state", state)
	if code != 1 || !strings.HasPrefix(out, "device pi-7, generation 3: drifted\n") || !strings.Contains(out, "2 scores: 2 drifted") || errs != "" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if b.files() != "" {
		t.Errorf("status wrote %s", b.files())
	}
	code, out, _ = b.run("", "status", "--config", b.write("other.yaml", minimal), "--root", b.root, "--state", state)
	if code != 1 || !strings.Contains(out, "is not trusted any more") {
		t.Errorf("with another key: exit %d: %s", code, out)
	}
}

// How long reconnects are spread over lives on over restarts, and its loss is harmless.
func TestWindow(t *testing.T) {
	dir := t.TempDir()
	if got := readWindow(dir); got != 0 {
		t.Errorf("without a file: %s", got)
	}
	keepWindow(dir)(90 * time.Second)
	if got := readWindow(dir); got != 90*time.Second {
		t.Errorf("got %s", got)
	}
	for _, damaged := range []string{"", "1m30", "-5s", "\x00\x00"} {
		if err := os.WriteFile(filepath.Join(dir, windowFile), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readWindow(dir); got != 0 {
			t.Errorf("%q: %s", damaged, got)
		}
	}
	keepWindow(filepath.Join(dir, "none"))(time.Second) // no directory, no harm
}
