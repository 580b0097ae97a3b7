package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/export"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/score"
)

// What export writes, in YAML and in JSON, is a manifest that this device finds itself to be: G34, X54.
func TestExportIsAManifest(t *testing.T) {
	b := newBench(t)
	for name, text := range map[string]string{
		"empty.conf": "", "plain.conf": "a = 1\n", "open.conf": "no end", "lines.conf": "\n\n\tx\r\n  \n", "words.conf": "grün ✓ 日本\n",
		"yaml.conf": "  - a: [1, 2]\n---\n...\n", "true.conf": "true", "octal.conf": "0644", "signs.conf": "'\"\\ # {}: &a *a !t | >\n%A @b `c`\n", "edge.conf": " a \n b ",
		"folded.conf": strings.Repeat("word ", 100) + "\n\n  indented\n",
	} {
		b.put("etc/app/"+name, text)
	}
	b.put("etc/default/app", "A=1\n")
	b.put("usr/bin/app", "x")
	b.put("etc/app/app.conf.bak", "old")
	b.put("opt/app.service", "[Service]\nExecStart=/usr/bin/app\nEnvironmentFile=-/etc/default/app\n")
	if err := os.Symlink("/opt/app.service", filepath.Join(b.root, "etc/app/unit")); err != nil {
		t.Fatal(err)
	}
	before := everything(t, b.root)
	for _, format := range [][]string{nil, {"-o", "yaml"}, {"-o", "json"}} {
		code, out, errs := b.run("", append([]string{"export", "/etc/app", "--root", b.root, "--name", "app"}, format...)...)
		if code != 0 || errs != "left out: /etc/app/app.conf.bak: by its path it is a copy that was left behind (class)\n" {
			t.Fatalf("exit %d: %s", code, errs)
		}
		if strings.HasPrefix(out, "{") != (len(format) > 1 && format[1] == "json") {
			t.Errorf("%v gave %s", format, out)
		}
		if code, plan, errs := b.run(out, "plan", "-f", "-", "--root", b.root); code != 0 {
			t.Errorf("%v: the plan of what is there: exit %d: %s%s\n%s", format, code, plan, errs, out)
		}
	}
	if everything(t, b.root) != before {
		t.Error("something was written")
	}
}

// What is refused is told by path and reason, and nothing is written, not even a part: G36, G61.
func TestExportRefuses(t *testing.T) {
	b := newBench(t)
	b.put("etc/app/a.conf", "a\n")
	b.put("etc/app/b.conf", "password = correcthorse\n")
	b.put("etc/app/tls.key", "x")
	code, out, errs := b.run("", "export", "/etc/app", "--root", b.root)
	if code != cli.Differs || out != "" || strings.Contains(errs, "correcthorse") ||
		!strings.Contains(errs, "/etc/app/b.conf: it looks like a secret is written in line 1 (a name that says so)") ||
		!strings.Contains(errs, "/etc/app/tls.key: by its path it is where keys or passwords are") ||
		!strings.Contains(errs, "nothing was exported: the device refused it") {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
	low := b.write("low.yaml", minimal+"ceiling: {paths: [/etc/motd]}\n")
	code, out, errs = b.run("", "export", "/etc/app/a.conf", "--config", low, "--root", b.root, "--state", filepath.Join(b.root, config.DefaultState))
	if code != cli.Differs || out != "" || !strings.Contains(errs, "/etc/app/a.conf: this device does not let /etc/app/a.conf be touched") {
		t.Errorf("exit %d: %q %s", code, out, errs)
	}
	for _, args := range [][]string{{"export"}, {"export", "etc/app"}, {"export", "/etc/../etc"}, {"export", "/etc/"}, {"inventory", "kiosk.service"}, {"inventory", "/etc/"}} {
		if code, out, errs := b.run("", append(args, "--root", b.root)...); code != cli.Invalid || out != "" {
			t.Errorf("%v: exit %d: %s %s", args, code, out, errs)
		}
	}
	if code, _, errs := b.run("", "export", "kiosk.service", "--root", b.root); code != cli.Differs || !strings.Contains(errs, "kiosk.service: ") {
		t.Errorf("a unit of a machine that does not run: exit %d: %s", code, errs)
	}
}

// Whoever owns a file is told, by the books: G34.
func TestInventoryOfPaths(t *testing.T) {
	b := newBench(t)
	b.put("etc/mine.conf", "a\n")
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := b.run("", "inventory", "/etc", "-o", "json", "--root", b.root)
	var rows []export.Entry
	if err := score.Decode([]byte(out), &rows); code != 0 || err != nil {
		t.Fatalf("exit %d: %v: %s", code, err, errs)
	}
	owners := map[string]string{}
	for _, r := range rows {
		owners[r.Path] = r.Provenance + " " + r.Manifest
	}
	if owners["/etc/motd"] != "created kiosk" || owners["/etc/mine.conf"] != "foreign " {
		t.Errorf("got %v", owners)
	}
	code, out, errs = b.run("", "inventory", "/etc", "--root", b.root)
	if code != 0 || !strings.Contains(out, "kiosk/motd") || !strings.Contains(out, "versionable") || !strings.Contains(out, "sha256:") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := b.run("", "inventory", "/no", "--root", b.root); code != cli.Differs || !strings.Contains(errs, "/no: it is not there (missing)") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
