package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology/memory"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// A wiretap is between an agent and its server, and keeps every byte.
type wiretap struct {
	mu    sync.Mutex
	bytes []byte
}

func (w *wiretap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes = append(w.bytes, b...)
	return len(b), nil
}

func (w *wiretap) all() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.bytes)
}

// tap gives the address to connect to instead of server.
func (w *wiretap) tap(t *testing.T, server string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", strings.TrimPrefix(server, "nats://"))
			if err != nil {
				_ = c.Close()
				continue
			}
			pipe := func(to, from net.Conn) {
				_, _ = io.Copy(to, io.TeeReader(from, w))
				_, _ = to.Close(), from.Close()
			}
			go pipe(s, c)
			go pipe(c, s)
		}
	}()
	return "nats://" + l.Addr().String()
}

// A canary is a secret that must be found nowhere: neither itself, nor written otherwise, nor a digest that somebody
// could guess at.
type canary string

func (c canary) forms() map[string]string {
	forms := map[string]string{"itself": string(c), "hex": hex.EncodeToString([]byte(c))}
	for i, pad := range []string{"", "x", "xx"} {
		b := base64.StdEncoding.EncodeToString([]byte(pad + string(c)))
		forms[fmt.Sprintf("base64 %d", i)] = b[4 : len(b)-4]
	}
	sum := sha256.Sum256([]byte(c))
	forms["sha256"], forms["sha256 in base64"] = hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum[:])
	forms["sha256, short"] = forms["sha256"][:12]
	return forms
}

// in reports in which form the canary is somewhere, also inside of what is compressed.
func (c canary) in(b []byte) (form string) {
	for name, f := range c.forms() {
		if bytes.Contains(b, []byte(f)) {
			return name
		}
	}
	for rest := b; ; {
		i := bytes.Index(rest, []byte{0x1f, 0x8b, 8})
		if i < 0 {
			return ""
		}
		rest = rest[i+1:]
		if z, err := gzip.NewReader(bytes.NewReader(b[len(b)-len(rest)-1:])); err == nil {
			z.Multistream(false)
			plain, _ := io.ReadAll(z) // what came before it breaks
			for name, f := range c.forms() {
				if bytes.Contains(plain, []byte(f)) {
					return "compressed, " + name
				}
			}
		}
	}
}

func TestCanaryIsFound(t *testing.T) {
	const c = canary("canary-1b2c3d4e")
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write([]byte("some text, " + string(c)))
	_ = w.Close()
	for name, b := range map[string][]byte{
		"text": []byte("a " + string(c)), "base64": []byte(base64.StdEncoding.EncodeToString([]byte("ab" + string(c) + "cd"))),
		"compressed": append([]byte("\x1f\x8b\x08 no, "), z.Bytes()...),
	} {
		if c.in(b) == "" {
			t.Errorf("not found in %s", name)
		}
	}
	if form := c.in([]byte("canary-1b2c3d4")); form != "" {
		t.Error(form)
	}
}

const secretFile = head2 + `    - kind: file
      id: app
      spec: {path: /etc/app.conf, mode: "0600", template: {text: "user = kiosk\npassword = {{ secret \"db\" }}\n"}}
    - kind: file
      id: pin
      spec: {path: /etc/pin, mode: "0600", content: "none\n"}
`

const head2 = "apiVersion: continuo/v1\nkind: Manifest\nmetadata: {name: files}\nspec:\n  target: {device: pi-1}\n  policy: {preset: converge}\n  scores:\n"

const secretKinds = `apiVersion: continuo/v1
kind: Manifest
metadata: {name: kinds}
spec:
  target: {device: pi-2}
  policy: {preset: converge}
  scores:
    - kind: container
      id: web
      spec:
        name: web
        image: registry.example.org/web:1.4
        env: {DB_PASSWORD: {secret: db}, TZ: UTC}
        secrets: [{secret: tls, target: /run/secrets/tls.key}]
    - kind: file
      id: app
      spec: {path: /etc/app.conf, mode: "0600", template: {text: "password = {{ secret \"db\" }}\n"}}
    - kind: file
      id: pin
      spec: {path: /etc/pin, mode: "0600", content: "none\n"}
`

// Secrets are on the device, where its owner put them and where a score says, and nowhere else: not in what is published,
// planned, reported, kept or logged, not on the wire, and not as a digest that could be guessed at (G58, G59, X89).
func TestCanary(t *testing.T) {
	const first, second, tls = canary("canary-Zq8vT1"), canary("canary-Jm4kX7"), canary("canary-Pw9sL3")
	b := newBench(t)
	b.up("--device", "pi-1", "--device", "pi-2")
	wire := &wiretap{}
	log := logrus.New()
	logged := newLines()
	log.SetOutput(logged)
	log.SetLevel(logrus.TraceLevel)
	start := func(id string, a *demoAgent) *demoAgent {
		t.Helper()
		var err error
		if a.config, err = localnats.Dir(filepath.Join(b.dir, "data")).AddDevice(device(id)); err != nil {
			t.Fatal(err)
		}
		for i, s := range a.config.Servers {
			a.config.Servers[i] = wire.tap(t, s)
		}
		a.log, a.disk = log.WithField("device", id), store.Dir(filepath.Join(b.dir, id+".state"))
		if err := a.start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.finish)
		return a
	}

	// A device on a directory has them in a file, and one in memory in the model.
	root := filepath.Join(b.dir, "root")
	if err := os.MkdirAll(filepath.Join(root, "etc/continuo"), 0o755); err != nil {
		t.Fatal(err)
	}
	env := filepath.Join(root, "etc/continuo/secrets.env")
	rotate := func(c canary) {
		t.Helper()
		if err := os.WriteFile(env+".new", []byte("db='"+string(c)+"'\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(env+".new", env); err != nil {
			t.Fatal(err)
		}
	}
	rotate(first)
	dev, err := pi.Open(t.Context(), pi.Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	on := &directory{Device: dev, root: root, state: filepath.Join(b.dir, "pi-1.state")}
	start("pi-1", &demoAgent{dev: on, dir: on, root: root, closed: dev.Close})
	mem := memory.New()
	mem.SetSecret("db", string(first))
	mem.SetSecret("tls", string(tls))
	start("pi-2", &demoAgent{dev: mem, mem: mem, closed: func() error { return nil }})

	// Somebody else keeps something short in a file that is not for everybody: the digest of that is as good as itself.
	const pin, edited = canary("4711-pin"), canary("4712-pin")
	private := func(c canary) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "etc/pin"), []byte(c), 0o600); err != nil {
			t.Fatal(err)
		}
		mem.Put("/etc/pin", string(c))
		mem.Chmod("/etc/pin", 0o600)
	}
	private(pin)

	// Every verb, with what goes wrong in between.
	var said bytes.Buffer
	run := func(args ...string) {
		t.Helper()
		code, out, errs := b.run(args...)
		fmt.Fprintf(&said, "%v: %d\n%s%s\n", args, code, out, errs)
	}
	conf := filepath.Join(root, "etc/app.conf")
	until := func(what string, is func() bool) {
		t.Helper()
		for late := time.Now().Add(20 * time.Second); !is(); {
			if time.Now().After(late) {
				t.Fatalf("never %s:\n%s\n%s", what, &said, logged)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	has := func(c canary) func() bool {
		return func() bool {
			text, _ := os.ReadFile(conf)
			inMemory, _ := mem.Read("/etc/app.conf")
			return strings.Contains(string(text), string(c)) && strings.Contains(inMemory, string(c))
		}
	}
	files, kinds := b.write("files.yaml", secretFile), b.write("kinds.yaml", secretKinds)
	run("validate", files, kinds)
	run("publish", files, kinds)
	run("publish", files, kinds, "--confirm", "--wait")
	until("applied", has(first))
	look := func() {
		t.Helper()
		for _, d := range []string{"pi-1", "pi-2"} {
			run("status", d)
			run("status", d, "-o", "json")
			run("plan", d)
			run("plan", d, "-o", "json")
			run("receipts", d)
			run("receipts", d, "-o", "json")
			run("history", d)
			run("rollback-check", d)
			run("info", d)
		}
		run("status", "-o", "yaml")
	}
	look()
	for _, d := range []string{"pi-1", "pi-2"} { // the foreign file is overwritten, and comes back
		_, out, _ := b.run("plan", d, "-o", "json")
		var p interpret.Plan
		if err := json.Unmarshal([]byte(out), &p); err != nil || len(p.Actions) != 1 {
			t.Fatalf("%s: %v", out, err)
		}
		run("install", d, "--plan", p.ID)
		run("install", d, "--plan", p.ID, "--confirm")
	}
	none := func() bool {
		text, _ := os.ReadFile(filepath.Join(root, "etc/pin"))
		inMemory, _ := mem.Read("/etc/pin")
		return string(text) == "none\n" && inMemory == "none\n"
	}
	until("overwritten", none)
	look()
	private(edited)
	until("corrected", none)
	look()
	rotate(second) // seen by an event on the directory
	mem.SetSecret("db", string(second))
	until("rotated", has(second))
	look()
	// Somebody edits what holds a secret: drift, its diff, and the copy that is kept of it.
	if err := os.WriteFile(conf, []byte("password = "+string(second)+"\nedited\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mem.Put("/etc/app.conf", "password = "+string(second)+"\nedited\n")
	until("corrected", func() bool {
		text, _ := os.ReadFile(conf)
		inMemory, _ := mem.Read("/etc/app.conf")
		return !strings.Contains(string(text), "edited") && !strings.Contains(inMemory, "edited")
	})
	look()
	// It cannot be had, and what says so.
	if err := os.Chmod(env, 0o644); err != nil {
		t.Fatal(err)
	}
	mem.ExposeSecret("db")
	if err := os.Remove(conf); err != nil {
		t.Fatal(err)
	}
	until("told", func() bool {
		_, out, _ := b.run("status", "pi-1")
		return strings.Contains(out, "secret_unavailable")
	})
	look()
	run("adopt", "pi-1", "files", "app", "--confirm")
	run("release", "pi-2", "kinds", "--confirm")
	run("unpublish", "pi-1", "files", "--confirm")
	look()

	if n := len(wire.all()); n < 10_000 {
		t.Errorf("only %d bytes went over the wire", n)
	}
	places := map[string][]byte{"the wire": wire.all(), "the logs": []byte(logged.String()), "what the commands say": said.Bytes()}
	err = filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == env || path == conf || path == filepath.Join(root, "etc/pin") {
			return err
		}
		content, err := os.ReadFile(path)
		places[path] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(places) < 20 {
		t.Errorf("only %d places", len(places))
	}
	kept := 0
	for place, content := range places {
		if filepath.Base(filepath.Dir(place)) == "backups" { // the copy itself, for root alone, and its digest beside it
			kept++
		} else {
			for _, c := range []canary{pin, edited} {
				if form := c.in(content); form != "" {
					t.Errorf("%s tells of a foreign private file (%s)", strings.TrimPrefix(place, b.dir), form)
				}
			}
		}
		for _, c := range []canary{pin, edited} {
			if strings.Contains(place, c.forms()["sha256, short"][:8]) {
				t.Errorf("%s is named by a digest", place)
			}
		}
		for _, c := range []canary{first, second, tls} {
			if form := c.in(content); form != "" {
				t.Errorf("%s holds a secret (%s)", strings.TrimPrefix(place, b.dir), form)
			}
		}
		for _, text := range []string{"user = kiosk\npassword = " + string(first) + "\n", "user = kiosk\npassword = " + string(second) + "\n", "password = " + string(second) + "\n"} {
			sum := sha256.Sum256([]byte(text))
			if bytes.Contains(content, []byte(hex.EncodeToString(sum[:]))) {
				t.Errorf("%s holds the digest of a content with a secret", strings.TrimPrefix(place, b.dir))
			}
		}
	}
	if kept == 0 {
		t.Error("no copy was kept of what was overwritten")
	}
	if strings.Contains(said.String(), "panic") {
		t.Error(said.String())
	}
}
