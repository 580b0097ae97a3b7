package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/golden"
)

// A bench is a place where the command runs as a user would run it.
type bench struct {
	t    *testing.T
	dir  string
	root string

	generation uint64 // that was accepted last
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.root = filepath.Join(b.dir, "root")
	if err := os.Mkdir(b.root, 0o755); err != nil {
		t.Fatal(err)
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
func (b *bench) run(stdin string, args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(b.t.Context(), newRoot(), args, strings.NewReader(stdin), &out, &errs)
	plain := strings.NewReplacer(b.dir, "DIR")
	return code, plain.Replace(out.String()), plain.Replace(errs.String())
}

// X73: every command and every flag is in the catalogue.
func TestCatalogue(t *testing.T) {
	golden.Check(t, "commands.txt", cli.Tree(newRoot()))
}

func TestUsage(t *testing.T) {
	b := newBench(t)
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no command", nil, "continuo-agent: give a command\n"},
		{"unknown command", []string{"frobnicate"}, `unknown command "frobnicate"`},
		{"unknown flag", []string{"plan", "--frobnicate"}, "unknown flag: --frobnicate"},
		{"argument", []string{"plan", "m.yaml"}, `plan takes no argument "m.yaml": name the manifest with -f FILE`},
		{"no file", []string{"apply"}, "give a manifest: -f FILE"},
		{"no file and no configuration", []string{"plan", "--config", b.dir + "/none.yaml"}, "cannot read DIR/none.yaml: no such file or directory"},
		{"file is not there", []string{"plan", "-f", b.dir + "/none.yaml"}, "cannot read DIR/none.yaml: no such file or directory"},
		{"format", []string{"kinds", "-o", "xml"}, "must be json or yaml"},
		{"no configuration", []string{"run", "--config", b.dir + "/none.yaml"}, "cannot read DIR/none.yaml: no such file or directory; continuo up --device ID writes one"},
		{"log level", []string{"run", "--log-level", "loud", "--config", b.write("agent.yaml", minimal)}, `unknown log level "loud"`},
		{"log format", []string{"run", "--log-format", "xml", "--config", b.write("agent.yaml", minimal)}, `unknown log format "xml"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := b.run("", tt.args...)
			if code != cli.Invalid || !strings.Contains(errs, tt.want) || out != "" {
				t.Errorf("exit %d, stdout %q, stderr %q, want exit 2 and %q", code, out, errs, tt.want)
			}
			if len(tt.args) > 0 && strings.Count(errs, "\n") > 2 {
				t.Errorf("a mistake takes more than two lines: %q", errs)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	b := newBench(t)
	if code, out, _ := b.run("", "version"); code != 0 || !strings.HasPrefix(out, "continuo-agent devel (") {
		t.Errorf("exit %d: %q", code, out)
	}
	if code, out, _ := b.run("", "version", "-o", "json"); code != 0 || !strings.Contains(out, `"version": "devel"`) {
		t.Errorf("exit %d: %q", code, out)
	}
}

// H46: no kind is an escape hatch. What the directory cannot have says why.
func TestKinds(t *testing.T) {
	b := newBench(t)
	code, out, errs := b.run("", "kinds", "--root", b.root)
	if code != 0 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	golden.Check(t, "kinds.txt", out)
	if _, out, _ = b.run("", "kinds", "--root", b.root, "-o", "json"); !strings.Contains(out, `"available": false`) || !strings.Contains(out, `"kind": "file"`) {
		t.Errorf("json: %s", out)
	}
}

// H30: the unit takes away every right that the agent does not need.
func TestUnit(t *testing.T) {
	b := newBench(t)
	code, out, _ := b.run("", "unit")
	if code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{
		"Type=notify\n", "WatchdogSec=", "Restart=always\n", "NoNewPrivileges=yes\n", "ProtectSystem=strict\n", "ReadWritePaths=/etc ",
		"CapabilityBoundingSet=CAP_CHOWN ", "OOMScoreAdjust=-", "StateDirectory=continuo\nStateDirectoryMode=0700\n", "WantedBy=multi-user.target\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the unit lacks %q", want)
		}
	}
}
