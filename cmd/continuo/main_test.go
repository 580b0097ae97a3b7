package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

// A bench is a place where the command runs as a user would run it: with a directory and
// an environment of its own.
type bench struct {
	t   *testing.T
	dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	t.Setenv("HOME", filepath.Join(b.dir, "home"))
	t.Setenv("CONTINUO_DATA", filepath.Join(b.dir, "data"))
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "NATS_URL", "NATS_CONTEXT", "NATS_CREDS", "NATS_NKEY", "NATS_USER", "NATS_TOKEN"} {
		t.Setenv(name, "")
	}
	return b
}

func (b *bench) write(name, content string) string {
	b.t.Helper()
	file := filepath.Join(b.dir, name)
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
	return file
}

// run gives the exit code, the standard output and the standard error, with names of the
// temporary directory taken out.
func (b *bench) run(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	return b.runWith("", args...)
}

func (b *bench) runWith(stdin string, args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code = cli.Run(ctx, newRoot(), args, strings.NewReader(stdin), &out, &errs)
	plain := strings.NewReplacer(b.dir, "DIR")
	return code, plain.Replace(out.String()), plain.Replace(errs.String())
}

// X73: every command and every flag is in the catalogue.
func TestCatalogue(t *testing.T) {
	golden.Check(t, "commands.txt", cli.Tree(newRoot()))
}

func TestUsage(t *testing.T) {
	b := newBench(t)
	class := b.write("class.yaml", strings.Replace(good, "{device: pi-1}", "{selector: {matchLabels: {a: b}}}", 1))
	good := b.write("good.yaml", good)
	tests := []struct {
		name string
		code int
		args []string
		want string
	}{
		{"no command", 2, nil, "continuo: give a command\n"},
		{"unknown command", 2, []string{"frobnicate"}, `unknown command "frobnicate"`},
		{"misspelt command", 2, []string{"validte"}, `unknown command "validte", did you mean "validate"?`},
		{"argument too much", 2, []string{"up", "pi-1"}, `up takes no argument "pi-1"`},
		{"unknown flag", 2, []string{"status", "--frobnicate"}, "unknown flag: --frobnicate"},
		{"nothing to validate", 2, []string{"validate"}, "name at least one FILE; - is standard input"},
		{"directory", 2, []string{"validate", b.dir}, "cannot read DIR: it is a directory; name the files in it"},
		{"nothing inside", 2, []string{"explain", "file.mode.x"}, `file.mode has no field "x": it has no fields`},
		{"file is not there", 2, []string{"validate", "none.yaml"}, "cannot read none.yaml: no such file or directory"},
		{"format", 2, []string{"status", "-o", "xml"}, "must be json or yaml"},
		{"no device", 2, []string{"status", "Pi.1"}, `cannot use "Pi" as a site`},
		{"unknown kind", 2, []string{"explain", "fle"}, "fle"},
		{"half a certificate", 2, []string{"up", "--server-cert", "x.pem"}, "go together"},
		{"certificate is not there", 2, []string{"up", "--server-cert", b.dir + "/x.pem", "--server-key", b.dir + "/x.key"}, "cannot use a certificate or key: stat DIR/x.pem: no such file or directory"},
		{"selector", 2, []string{"publish", class}, `manifest "kiosk" has a selector`},
		{"no key", 1, []string{"publish", good}, "cannot sign: there is no key in DIR/data/keys/operator.nk; continuo up makes one, and --key names another file"},
		{"no server there", 1, []string{"status", "--data", b.dir + "/none"}, "no server ever ran there; start one with continuo up --data DIR/none"},
		{"server does not answer", 1, []string{"status", "--server", "nats://127.0.0.1:1"}, "is the server running? continuo up starts one"},
		{"listening to everybody in the clear", 1, []string{"up", "--listen", "0.0.0.0:0"}, "would not be encrypted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := b.run(tt.args...)
			if code != tt.code || !strings.Contains(errs, tt.want) || out != "" {
				t.Errorf("exit %d, stdout %q, stderr %q, want exit %d and %q", code, out, errs, tt.code, tt.want)
			}
			if len(tt.args) > 0 && strings.Count(errs, "\n") > 2 {
				t.Errorf("a mistake takes more than two lines: %q", errs)
			}
		})
	}
}

// X89: a credential is in no error.
func TestErrorsHoldNoCredential(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{
		{"status", "--server", "nats://127.0.0.1:1", "--user", "u", "--password", "hunter2"},
		{"status", "--server", "nats://u:hunter2@127.0.0.1:1"},
		{"status", "--server", "nats://hunter2@127.0.0.1:1"},
		{"serve", "--trust", "SAhunter2"},
	} {
		if code, _, errs := b.run(args...); code == 0 || strings.Contains(errs, "hunter2") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}

const head = "apiVersion: continuo/v1\nkind: Manifest\nmetadata: {name: kiosk}\nspec:\n  target: {device: pi-1}\n  policy: {preset: converge}\n"

const good = head + "  scores:\n    - {kind: file, id: conf, spec: {path: /etc/kiosk.conf, content: hello, mode: \"0644\"}}\n"

// badInput is the table of mistakes; each is exit 2 with a place, wherever a manifest is read.
var badInput = []struct{ name, in, want string }{
	{"unknown field", scores(file("a", `mode: "0644", pth: x`)), "unknown field `pth`"},
	{"wrong type", scores("    - {kind: file, id: a, spec: {path: /etc/a, content: [x], mode: \"0644\"}}\n"), "a list"},
	{"mode without quotes", scores(file("a", "mode: 0644")), "0644"},
	{"duplicate id", scores(file("a", `mode: "0644"`) + "    - {kind: file, id: a, spec: {path: /etc/b, content: x, mode: \"0644\"}}\n"), `id "a" is used twice`},
	{"duplicate key", scores(file("a", `mode: "0644", mode: "0600"`)), "twice"},
	{"unknown kind", scores("    - {kind: fle, id: a, spec: {}}\n"), "fle"},
	{"missing dependency", scores("    - {kind: file, id: a, after: [b], spec: {path: /etc/a, content: x, mode: \"0644\"}}\n"), `there is no score "b"`},
	{"cycle", scores("    - {kind: file, id: a, after: [b], spec: {path: /etc/a, content: x, mode: \"0644\"}}\n" +
		"    - {kind: file, id: b, after: [a], spec: {path: /etc/b, content: x, mode: \"0644\"}}\n"), "wait for each other"},
	{"two documents", good + "---\n" + good, "document"},
	{"empty file", "", "no manifest in file"},
	{"only a comment", "# todo\n", "no manifest in file"},
	{"null", "null\n", "no manifest in file"},
	{"the agent's own files", scores("    - {kind: file, id: a, spec: {path: /etc/continuo/agent.yaml, content: x, mode: \"0644\"}}\n"), "belongs to the agent itself"}, // cases 147
	{"10 MB", strings.Repeat("# padding\n", 1<<20), "at most"},
	{"aliases", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchor"},
	{"deep", strings.Repeat("[", 100000), ""},
	{"deep JSON", strings.Repeat(`{"a":`, 100000), ""},
}

func scores(s string) string { return head + "  scores:\n" + s }

func file(id, rest string) string {
	return "    - {kind: file, id: " + id + ", spec: {path: /etc/" + id + ", content: x, " + rest + "}}\n"
}

// Every mistake has its place, and one mistake is told in one or two lines: H09, cases 1, 12, 16, 147, 157.
func TestValidateBadInput(t *testing.T) {
	b := newBench(t)
	for _, tt := range badInput {
		t.Run(tt.name, func(t *testing.T) {
			code, out, _ := b.runWith(tt.in, "validate", "-")
			if code != 2 || !strings.HasPrefix(out, "standard input:") || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d: %.300q, want exit 2, a place and %q", code, out, tt.want)
			}
			if n := strings.Count(out, "\n"); n > 2 {
				t.Errorf("one mistake gives %d lines: %.500s", n, out)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	b := newBench(t)
	first := b.write("first.yaml", good)
	second := b.write("second.yaml", strings.Replace(good, "kiosk}", "other}", 1))
	code, out, errs := b.run("validate", first, second)
	if code != 0 || out != "2 files, no error\n" || errs != "" {
		t.Errorf("exit %d: %q %q", code, out, errs)
	}
	again := b.write("again.yaml", good)
	code, out, errs = b.run("validate", first, second, again)
	if code != 2 || !strings.Contains(out, `DIR/again.yaml:1:1: /metadata/name: manifest "kiosk" for the same target is in DIR/first.yaml too`) || errs != "1 error in 3 files\n" {
		t.Errorf("exit %d: %q %q", code, out, errs)
	}
	bad := b.write("bad.yaml", scores(file("a", "mode: 0644, pth: x")+file("b", `mode: "0644", owner: Me!`)+"    - {kind: file, id: c, after: [d], spec: {path: c, content: x, mode: \"0644\"}}\n"))
	code, out, errs = b.run("validate", bad)
	if code != 2 {
		t.Errorf("exit %d", code)
	}
	golden.Check(t, "validate.txt", out+errs)
	code, out, _ = b.run("validate", bad, "-o", "json")
	var v validation
	if err := score.Decode([]byte(out), &v); code != 2 || err != nil || v.Errors != schemas.Errors(v.Diagnostics) || v.Errors < 4 || v.Files != 1 || v.Diagnostics[0].Line == 0 {
		t.Errorf("exit %d: %v: %+v", code, err, v)
	}
}

func TestExplain(t *testing.T) {
	b := newBench(t)
	code, out, _ := b.run("explain")
	if code != 0 || !strings.Contains(out, "hostname ") || strings.Count(out, "\n") != len(score.Kinds())+3 || !strings.Contains(out, "manifest") {
		t.Errorf("exit %d: %s", code, out)
	}
	for _, line := range strings.Split(out, "\n")[:len(score.Kinds())] { // in a column, also behind the longest name
		if i := strings.Index(line, "  "); i < 0 || !strings.HasPrefix(strings.TrimLeft(line[i:], " "), strings.TrimSpace(line[len("containerNetwork  "):])) {
			t.Errorf("not in its column: %q", line)
		}
	}
	code, out, _ = b.run("explain", "file.mode")
	if code != 0 || !strings.Contains(out, "Mode is the permission bits") {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestVersion(t *testing.T) {
	b := newBench(t)
	if code, out, _ := b.run("version", "-o", "json"); code != 0 || !strings.Contains(out, `"version": "devel"`) {
		t.Errorf("exit %d: %q", code, out)
	}
}

// H28: the demonstration ends with 0, says no untruth, and leaves nothing behind.
func TestDemo(t *testing.T) {
	b := newBench(t)
	tmp := filepath.Join(b.dir, "tmp")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	code, out, errs := b.run("demo")
	if code != 0 || strings.Contains(out, "FALSE") || strings.Count(out, "\n  true   ") < 10 {
		t.Errorf("exit %d:\n%s%s", code, out, errs)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if strings.Contains(out, "\x1b") {
		t.Error("escape sequences where no terminal is")
	}
}

// A demonstration that shows something untrue fails.
func TestDemoFails(t *testing.T) {
	var out bytes.Buffer
	d := &demo{out: &out}
	d.fact(true, "this is so")
	d.fact(false, "this is not so")
	if err := d.summary(); err == nil || !strings.Contains(out.String(), "FALSE  this is not so") {
		t.Errorf("got %v\n%s", err, out.String())
	}
}

// A pipe of lines, for commands that run until they are stopped.
type lines struct {
	mu   sync.Mutex
	text string
	more chan struct{}
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.text += string(b)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text
}

// until waits until want was written.
func (l *lines) until(t *testing.T, want string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for !strings.Contains(l.String(), want) {
		select {
		case <-l.more:
		case <-late:
			t.Fatalf("waiting for %q, got:\n%s", want, l)
		}
	}
}

// background runs a command until stop is called, and gives what it writes.
func (b *bench) background(args ...string) (out *lines, stop func() int) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	out = newLines()
	ended := make(chan int, 1)
	go func() { ended <- cli.Run(ctx, newRoot(), args, nil, out, out) }()
	stop = sync.OnceValue(func() int {
		cancel()
		return <-ended
	})
	b.t.Cleanup(func() { stop() })
	return out, stop
}
