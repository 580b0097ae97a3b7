package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/agent/secrets"
)

// configured writes a configuration with secrets in the directory of the bench.
func (b *bench) configured(more string) string {
	b.t.Helper()
	signer, err := nkeys.CreateAccount()
	if err != nil {
		b.t.Fatal(err)
	}
	public, err := signer.PublicKey()
	if err != nil {
		b.t.Fatal(err)
	}
	return b.write("agent.yaml", "apiVersion: continuo/v1\nkind: AgentConfig\ndevice: pi-1\nservers: [nats://127.0.0.1:4222]\n"+
		"credentials: {type: none}\ntrust: {documents: ["+public+"]}\nstate: "+filepath.Join(b.dir, "state")+"\n"+more)
}

func TestSecrets(t *testing.T) { // G58, G59
	const canary = "canary-5d01"
	b := newBench(t)
	env := b.write("secrets.env", "wifi-psk="+canary+"\ntoken='"+canary+" 2'\n")
	late := b.write("late.env", "token="+canary+"3\n")
	config := b.configured("secrets: {envFiles: [" + env + ", " + late + "], credentials: " + filepath.Join(b.dir, "none") + "}\n")
	for _, f := range []string{env, late} {
		if err := os.Chmod(f, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, errs := b.run("", "secrets", "--config", config)
	lines := strings.Split(out, "\n")
	if code != 0 || errs != "" || len(lines) != 5 || !strings.HasPrefix(lines[1], "token") || !strings.Contains(lines[1], "DIR/late.env") ||
		!strings.Contains(lines[2], "also in DIR/secrets.env, which does not count") || !strings.HasPrefix(lines[3], "wifi-psk") {
		t.Errorf("%d %q\n%s", code, errs, out)
	}
	code, doc, _ := b.run("", "secrets", "--config", config, "-o", "json")
	var all []secrets.Secret
	if err := json.Unmarshal([]byte(doc), &all); err != nil || code != 0 || len(all) != 2 || len(all[0].Fingerprint) != 64 {
		t.Errorf("%d %v\n%s", code, err, doc)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "state")); err == nil {
		t.Error("a command that only looks made the state directory")
	}
	if err := os.Chmod(late, 0o644); err != nil {
		t.Fatal(err)
	}
	code, loose, errs := b.run("", "secrets", "--config", config)
	if code != 1 || !strings.Contains(errs, "cannot use the file DIR/late.env: its mode is 0644 and must be 0600") {
		t.Errorf("%d %q\n%s", code, errs, loose)
	}
	// Nobody knows what a place holds that cannot be used: that there are none is not said.
	if code, out, errs := b.run("", "secrets", "--config", b.configured("secrets: {envFiles: ["+late+"]}\n")); code != 1 || out != "" || !strings.Contains(errs, "cannot use") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if strings.Contains(out+doc+loose+errs, canary) {
		t.Errorf("a value is shown:\n%s%s%s%s", out, doc, loose, errs)
	}
	code, _, errs = b.run("", "secrets", "--config", b.configured("secrets: {envFiles: [secrets.env]}\n"))
	if code != 2 || !strings.Contains(errs, `path "secrets.env" must be absolute and clean`) {
		t.Errorf("%d %q", code, errs)
	}
}

// What root's agent holds in memory is in no core dump; somebody else's could not look at its own files any more.
func TestHide(t *testing.T) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(before), 0, 0, 0) })
	hide()
	want := before
	if os.Geteuid() == 0 {
		want = 0
	}
	if now, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || now != want {
		t.Errorf("dumpable is %d, %v; want %d", now, err, want)
	}
	if !strings.Contains(unitFile, "\nLimitCORE=0\n") {
		t.Error("the unit lets the agent dump core")
	}
}
