package pi

import (
	"os"
	"os/exec"
	"testing"

	"github.com/continuo-fleet/continuo/topology/conform"
)

// disk adds to the hands of the suite that they start a program.
type disk struct{ conform.Disk }

func (d disk) Run(p string) (func(), error) {
	program, err := os.ReadFile("/bin/sleep")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(p, program, 0o755); err != nil {
		return nil, err
	}
	cmd := exec.Command(p, "1d")
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, nil
}

func fileBench(t *testing.T) (*Device, conform.FileBench) {
	t.Helper()
	needRoot(t)
	d, err := Open(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d, conform.FileBench{Files: d.Files(), Dir: t.TempDir(), Owner: "daemon", Group: "daemon", UID: 1, GID: 1, Hands: disk{conform.Disk{T: t}}}
}

func TestConformFiles(t *testing.T) {
	for name, cripple := range map[string]func(*tree){
		"all": func(*tree) {}, "no openat2": func(t *tree) { t.noOpenat2.Store(true) }, "no proc": func(t *tree) { t.proc = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			conform.Files(t, func(t *testing.T) conform.FileBench {
				d, b := fileBench(t)
				cripple(d.files.tree)
				return b
			})
		})
	}
}

func TestConformSnapshots(t *testing.T) { // X53
	for name, cripple := range map[string]func(*tree){
		"all": func(*tree) {}, "no openat2": func(t *tree) { t.noOpenat2.Store(true) }, "no proc": func(t *tree) { t.proc = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			conform.Snapshots(t, func(t *testing.T) conform.SnapshotBench {
				d, b := fileBench(t)
				cripple(d.files.tree)
				return conform.SnapshotBench{FileBench: b, Snapshots: d.Snapshots()}
			})
		})
	}
}

func TestConformEvents(t *testing.T) {
	conform.FileEvents(t, func(t *testing.T) conform.EventBench {
		d, b := fileBench(t)
		return conform.EventBench{FileBench: b, Events: d.Events()}
	})
}
