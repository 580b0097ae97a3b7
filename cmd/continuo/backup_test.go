package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server whose store comes back from a backup is behind its devices: they say so and obey nothing of it, and a new
// publication ends it. What the trust root was since is put there again from the files of the fleet. Case 132.
func TestStoreFromABackup(t *testing.T) {
	b := newBench(t)
	data := filepath.Join(b.dir, "data")
	stop := b.up("--device", "pi-1")
	url, err := os.ReadFile(filepath.Join(data, "url"))
	if err != nil {
		t.Fatal(err)
	}
	listen := strings.TrimPrefix(strings.TrimSpace(string(url)), "nats://")
	pi := b.device("pi-1")
	b.want(0, "converged", "publish", b.write("m.yaml", good), "--confirm", "--wait")
	stop()
	if err := os.CopyFS(filepath.Join(b.dir, "backup"), os.DirFS(filepath.Join(data, "store"))); err != nil {
		t.Fatal(err)
	}
	stop = b.up("--listen", listen)
	b.want(0, "enough", "keys", "add", "anna", "--key", b.key(), "--role", "publisher", "--confirm")
	b.want(0, "published", "keys", "publish", "--confirm")
	second := b.write("second.yaml", strings.Replace(good, "hello", "second", 1))
	b.want(0, "converged", "publish", second, "--confirm", "--wait")
	stop()
	if err := os.RemoveAll(filepath.Join(data, "store")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(data, "store"), os.DirFS(filepath.Join(b.dir, "backup"))); err != nil {
		t.Fatal(err)
	}
	b.up("--listen", listen)
	out, stopWatch := b.background("watch", "pi-1")
	out.until(t, "did not accept generation 1")
	stopWatch()
	if _, text, _ := b.run("status", "pi-1", "-o", "json"); !strings.Contains(text, "control_plane_regressed") {
		t.Errorf("the device does not say so: %s", text)
	}
	if content, _ := pi.mem.Read("/etc/kiosk.conf"); content != "second" {
		t.Errorf("it obeyed: the file is %q", content)
	}
	b.want(0, "no other one is being made", "keys", "publish") // version 2 is there
	third := b.write("third.yaml", strings.Replace(good, "hello", "third", 1))
	b.want(0, "converged", "publish", third, "--confirm", "--wait")
	if _, text, _ := b.run("status", "pi-1", "-o", "json"); strings.Contains(text, "control_plane_regressed") {
		t.Errorf("it still says so: %s", text)
	}
}
