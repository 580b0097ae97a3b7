//go:build device

package pi

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A container that is replaced is told to end, has its time to do so, and is gone before
// the new one starts; one that does not end is killed when its time is over (X36).
func TestReplacedContainerHasItsTime(t *testing.T) {
	_, c := box(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	// Systemd of this device is impatient, which is no business of a container.
	sh(t, "mkdir -p /run/systemd/system.conf.d; printf '[Manager]\nDefaultTimeoutStopSec=2s\n' >/run/systemd/system.conf.d/ct-grace.conf; systemctl daemon-reload")
	t.Cleanup(func() { sh(t, "rm /run/systemd/system.conf.d/ct-grace.conf; systemctl daemon-reload") })
	const (
		saves    = `say start; trap 'say term; sleep 4; say saved; exit 0' TERM; sleep 1d & wait`
		stubborn = `say start; trap 'say term' TERM; while :; do sleep 1d & wait; done`
		fails    = `say start; exit 3`
	)
	// replace runs another one and returns how long that took, and what was said meanwhile.
	said := 0
	replace := func(run, script string) (took time.Duration, words string, err error) {
		t.Helper()
		cfg := config("ct-grace")
		cfg.Restart, cfg.SpecDigest, cfg.Volumes = "never", "sha256:"+run, []string{dir + ":/log"}
		cfg.Command = []string{"sh", "-c", `say() { echo "$1 ` + run + `" >>/log/log; }; ` + script}
		began := time.Now()
		err = c.Run(t.Context(), cfg)
		took = time.Since(began)
		log, rerr := os.ReadFile(dir + "/log")
		if rerr != nil {
			t.Fatal(rerr)
		}
		words, said = strings.ReplaceAll(strings.TrimSpace(string(log[said:])), "\n", ", "), len(log)
		return took, words, err
	}
	t.Cleanup(func() { _ = c.RemoveContainer(t.Context(), "ct-grace") }) // if the test ends early

	_, words, err := replace("1", saves)
	if err != nil || words != "start 1" {
		t.Fatalf("said %q, %v", words, err)
	}
	first := look(t, c, "ct-grace")
	if recorded := sh(t, "cat /run/ct-grace.cid"); recorded != first.ID {
		t.Errorf("systemd would stop %s; %s runs", recorded, first.ID)
	}

	took, words, err := replace("2", stubborn)
	if err != nil || words != "term 1, saved 1, start 2" || took < 4*time.Second {
		t.Fatalf("said %q in %v, %v", words, took, err)
	}
	second := look(t, c, "ct-grace")
	if second.State != "running" || second.ID == first.ID || second.SpecDigest != "sha256:2" {
		t.Errorf("%+v", second)
	}
	if left := sh(t, "podman ps -a -q --no-trunc --filter id="+first.ID); left != "" {
		t.Errorf("the old container is still there: %s", left)
	}

	took, words, err = replace("3", saves)
	if err != nil || words != "term 2, start 3" || took < 10*time.Second || took > 40*time.Second {
		t.Fatalf("said %q in %v, %v", words, took, err)
	}
	t.Logf("one that does not end was replaced within %v", took)

	// The new one fails, and that is what is reported; the old one had its time before.
	_, words, err = replace("4", fails)
	wantCode(t, err, topology.CodeExited, "exit code 3")
	if words != "term 3, saved 3, start 4" {
		t.Errorf("said %q", words)
	}
	if st := look(t, c, "ct-grace"); st.State != "exited" || st.ExitCode != 3 || st.SpecDigest != "sha256:4" {
		t.Errorf("%+v", st)
	}

	// A removal gives time as well.
	if _, words, err = replace("5", saves); err != nil || words != "start 5" {
		t.Fatalf("said %q, %v", words, err)
	}
	if err := c.RemoveContainer(t.Context(), "ct-grace"); err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(dir + "/log"); err != nil || !strings.HasSuffix(string(log), "term 5\nsaved 5\n") {
		t.Errorf("said %q, %v", log, err)
	}
}
