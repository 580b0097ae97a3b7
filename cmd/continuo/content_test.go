package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is beside a manifest is published with it: text in the document, the rest as a blob (X54).
func TestPublishContentFrom(t *testing.T) {
	b := newBench(t)
	b.up("--device", "pi-1")
	pi := b.device("pi-1")
	if err := os.MkdirAll(filepath.Join(b.dir, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("0123456789", 10_000)
	b.write("files/motd", "Welcome.\n")
	b.write("files/model.bin", large)
	pi.mem.OfferBlob(large) // the device of this test has a fleet of its own
	text := good + strings.ReplaceAll(file("motd", `contentFrom: files/motd, mode: "0644"`), "content: x, ", "") +
		strings.ReplaceAll(file("model", `contentFrom: files/model.bin, mode: "0644"`), "content: x, ", "")
	m := b.write("m.yaml", text)
	if code, out, errs := b.run("publish", m); code != 0 || !strings.Contains(errs, "this is a preview") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs := b.run("publish", m, "--confirm", "--wait"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	for p, want := range map[string]string{"/etc/motd": "Welcome.\n", "/etc/model": large} {
		if got, _ := pi.mem.Read(p); got != want {
			t.Errorf("%s has %d bytes, want %d", p, len(got), len(want))
		}
	}
	b.write("files/motd", "Changed.\n")
	if code, out, errs := b.run("publish", m, "--confirm", "--wait"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	if got, _ := pi.mem.Read("/etc/motd"); got != "Changed.\n" {
		t.Errorf("the device has %q", got)
	}

	bad := b.write("bad.yaml", strings.Replace(text, "files/motd", "files/none", 1))
	for _, args := range [][]string{{"validate", bad}, {"publish", bad, "--confirm"}} {
		code, out, errs := b.run(args...)
		if want := "DIR/bad.yaml:"; code != 2 || !strings.Contains(out+errs, want) || !strings.Contains(out+errs, `: /spec/scores/`) ||
			!strings.Contains(out+errs, `cannot take the content of score "motd" from "files/none": there is no such file beside the manifest`) {
			t.Errorf("%v: exit %d: %s%s", args, code, out, errs)
		}
	}
}
