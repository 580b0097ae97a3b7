// Package continuo_test holds the rules of the whole repository: who may import whom, which folders exist, and
// what every package and every document must have. It has no code beside tests.
package continuo_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/continuo-fleet/continuo"

// A layer says what the packages of one row may import in their non-test files, besides the standard library.
// Our own packages are named from the module root, others by the start of their path. "…/*" means all
// packages directly below, "…/..." the package and all below.
type layer struct {
	packages string
	imports  string
	why      string
}

// The first row that matches a package counts. A package without a row may not exist.
var layers = []layer{
	{"score", "github.com/go-json-experiment/json github.com/robfig/cron/v3", "the language is plain data, for every author and every tool (ADR 0001)"},
	{"topology", "", "what a device can do is said without naming a tool"},
	{"topology/memory", "topology internal/unitfiles", "a device in memory, with nothing of a real one but what its service manager has to read"},
	{"topology/conform", "topology", "one suite for every topology, so it knows none of them"},
	{"topology/pi", "topology internal/atomicfile internal/nftables internal/unitfiles github.com/coreos/go-systemd github.com/godbus/dbus " +
		"github.com/fsnotify/fsnotify golang.org/x/sys",
		"the only package that knows systemd, podman and the kernel; it does not know what a score is"},
	{"interpret", "score topology github.com/go-json-experiment/json", "the contract and the engine, for any kind on any device"},
	{"interpret/standard", "interpret interpret/*", "the list of built-in kinds"},
	{"interpret/*", "score topology interpret", "a kind does not know other kinds, nor a real device"},
	{"agent", "score topology interpret agent/authority agent/health agent/store github.com/sirupsen/logrus github.com/aymanbagabas/go-udiff",
		"ports only: no NATS, no systemd, no podman"},
	{"agent/config", "score agent/authority internal/wire", "what a device is told about itself; it knows neither the agent nor how it connects"},
	{"agent/authority", "score interpret", "one pure function decides, in the words of the language and the contract"},
	{"agent/health", "score topology", "it looks and judges, through capabilities; what follows from a verdict is the agent's"},
	{"agent/store", "internal/atomicfile", "the store keeps bytes and facts for the agent, and judges none"},
	{"agent/secrets", "topology internal/atomicfile golang.org/x/sys", "it reads where the owner of a device keeps secrets; whose they are and what for, it does not know"},
	{"agent/boots", "internal/atomicfile", "one file that tells of power cuts"},
	{"agent/blobs", "topology golang.org/x/sys", "contents on the disk; where they come from is a port"},
	{"agent/export", "score topology interpret", "it reads a device and says it in scores; how the reading is asked for and carried is a port"},
	{"agent/natslink", "agent score interpret internal/wire internal/trust github.com/nats-io/nats.go github.com/nats-io/nkeys github.com/go-json-experiment/json",
		"the agent's ports over NATS: the only place that knows the agent and the wire (S03)"},
	{"fleet", "score interpret internal/wire internal/trust github.com/nats-io/nats.go github.com/nats-io/nkeys github.com/go-json-experiment/json",
		"the other end: it speaks the wire and the language, and has nothing of a device"},
	{"fleet/localnats", "fleet internal/access internal/wire github.com/nats-io", "a server for one machine: apart, so that who uses the library links no server"},
	{"schemas", "score schemas/source github.com/santhosh-tekuri/jsonschema",
		"validation for authors and CI, without an agent"},
	{"schemas/source", "score github.com/go-json-experiment/json go.yaml.in/yaml",
		"the reading of documents, with places: the agent has it too, so it knows no schema engine"},
	{"schemas/gen", "score interpret interpret/* topology/memory internal/wire github.com/invopop/jsonschema github.com/go-json-experiment/json", "the generator, run by hand and by CI"},
	{"internal/atomicfile", "golang.org/x/sys", "files and the kernel, nothing of ours"},
	{"internal/nftables", "golang.org/x/sys", "netlink and the kernel, nothing of ours"},
	{"internal/unitfiles", "", "names of files and of units, and nothing else"},
	{"internal/wire", "github.com/vmihailenco/msgpack github.com/nats-io/nkeys",
		"the bytes between the two ends: it knows neither the agent nor the language (S03, S08, S32)"},
	{"internal/release", "", "builds what others get, with the standard library and Go alone"},
	{"internal/trust", "score internal/wire", "whose signatures count is said in the words of the language, for both ends of the wire"},
	{"internal/access", "internal/wire github.com/nats-io",
		"who may connect, in the form of NATS servers: beside the wire, so that no device links it"},
	{"internal/...", "internal/access internal/wire github.com/nats-io", "nobody else's API, and below everything but the language"},
	{"cmd/continuo-agent", "score topology topology/pi interpret interpret/standard agent agent/... internal/atomicfile internal/wire schemas/source cmd/internal/... " +
		"github.com/spf13 github.com/sirupsen/logrus github.com/coreos/go-systemd " +
		"golang.org/x/sys",
		"flags and wiring of the device's binary"},
	{"cmd/continuo", "score topology topology/memory topology/pi interpret interpret/standard agent agent/... fleet fleet/localnats schemas " +
		"cmd/internal/... internal/... github.com/spf13 github.com/sirupsen/logrus github.com/nats-io",
		"flags and wiring of the operator's command"},
	{"cmd/internal/...", "score topology interpret cmd/internal/... github.com/spf13 go.yaml.in/yaml",
		"what both commands share: how they end, and how they show a status"},
	{"examples/...", "score", "examples use what a stranger may use"},
	{"test/...", "... github.com golang.org", "harness, suites and benchmarks; nobody imports them"},
}

// unreachable packages may not be linked even through others.
var unreachable = []struct{ packages, banned, why string }{
	{"cmd/continuo-agent", "fleet schemas internal/access github.com/invopop github.com/santhosh-tekuri github.com/nats-io/nats-server github.com/nats-io/jwt",
		"the device decodes strictly and validates by itself; it carries no server, no schema library, and nothing that issues credentials"},
	{"agent", "github.com/nats-io github.com/coreos github.com/godbus topology/pi internal/wire",
		"the agent is tested whole without any of them"},
	{"agent/natslink", "github.com/nats-io/nats-server topology/pi", "a transport"},
	{"topology/pi", "github.com/containers github.com/moby", "podman is asked over its socket with the standard library (ADR 0011)"},
	{"fleet", "topology/pi github.com/coreos github.com/godbus github.com/nats-io/nats-server", "a library for any machine"},
}

// processes names the files that may start a process, with the reason (H31). Tests and test/ may as well.
var processes = map[string]string{
	"topology/pi/tools_ask.go":      "starts a program with --version, to tell one that is there from one that works (G08, G51)",
	"topology/pi/journal.go":        "runs journalctl about a unit that failed or ran to its end, and not again about the same run: the journal has no other reader without libsystemd",
	"internal/release/source.go":    "asks git for a commit; nothing that is released runs it",
	"internal/release/build.go":     "runs go build on a commit; nothing that is released runs it",
	"topology/pi/quadlet_dryrun.go": "runs podman's Quadlet generator in -dryrun before a unit is trusted",
}

// folders is every folder of the top level that git may hold.
var folders = []string{
	"ADR", "agent", "cmd", "examples", "fleet", "internal", "interpret", "schemas", "score", "test", "topology",
}

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath, Dir, Doc string
	GoFiles              []string
	Imports, Deps        []string
}

func (p goPackage) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// packages asks for everything, with -e: a package that does not compile yet can still break the rules.
func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,Doc,GoFiles,Imports,Deps", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v: %s", err, stderr.String())
	}
	var all []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// standard says whether an import path is of the standard library.
func standard(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return !strings.Contains(first, ".")
}

// matches says whether pattern names the package: see layer.
func matches(pattern, name string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == base || strings.HasPrefix(name, base+"/")
	}
	if base, ok := strings.CutSuffix(pattern, "/*"); ok {
		return path.Dir(name) == base
	}
	return pattern == name || pattern == "..."
}

// covered says whether one of the patterns covers an import path.
func covered(patterns, imp string) bool {
	own, ours := strings.CutPrefix(imp, module+"/")
	for p := range strings.FieldsSeq(patterns) {
		if ours && matches(p, own) || !ours && (imp == p || strings.HasPrefix(imp, p+"/")) {
			return true
		}
	}
	return false
}

// violations checks packages against both tables.
func violations(pkgs []goPackage) []string {
	var bad []string
	var mappers []string
	for _, p := range pkgs {
		name := p.name()
		if name == "" {
			continue // this folder, which holds tests only
		}
		i := slices.IndexFunc(layers, func(l layer) bool { return matches(l.packages, name) })
		if i < 0 {
			bad = append(bad, fmt.Sprintf("%s has no row in the table of layers: say what it may import, and why", name))
			continue
		}
		for _, imp := range p.Imports {
			if !standard(imp) && !covered(layers[i].imports, imp) {
				bad = append(bad, fmt.Sprintf("%s must not import %s: %s", name, strings.TrimPrefix(imp, module+"/"), layers[i].why))
			}
		}
		for _, u := range unreachable {
			for _, dep := range p.Deps {
				if matches(u.packages, name) && !standard(dep) && covered(u.banned, dep) {
					bad = append(bad, fmt.Sprintf("%s must not link %s: %s", name, strings.TrimPrefix(dep, module+"/"), u.why))
				}
			}
		}
		wiring := strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "test/")
		if !wiring && slices.Contains(p.Imports, module+"/agent") && slices.Contains(p.Imports, module+"/internal/wire") {
			mappers = append(mappers, name)
		}
	}
	if len(mappers) > 1 {
		bad = append(bad, fmt.Sprintf("%s all know both the agent and the wire: one may (S03)", strings.Join(mappers, ", ")))
	}
	return bad
}

func TestLayers(t *testing.T) { // S03, S08, S32
	pkgs := packages(t)
	if len(pkgs) < 3 {
		t.Fatalf("go list names %d packages only", len(pkgs))
	}
	for _, v := range violations(pkgs) {
		t.Error(v)
	}
}

// idle lists what rows allow and none of their packages imports.
func idle(pkgs []goPackage) (out []string) {
	used := map[string]bool{}
	row := func(name string) int {
		return slices.IndexFunc(layers, func(l layer) bool { return matches(l.packages, name) })
	}
	for _, p := range pkgs {
		i := row(p.name())
		if i < 0 {
			continue
		}
		for _, imp := range p.Imports {
			for _, allowed := range strings.Fields(layers[i].imports) {
				if covered(allowed, imp) {
					used[layers[i].packages+" "+allowed] = true
				}
			}
		}
	}
	for _, l := range layers {
		for _, allowed := range strings.Fields(l.imports) {
			if !used[l.packages+" "+allowed] && l.packages != "test/..." {
				out = append(out, fmt.Sprintf("%s may import %s, and does not: take it out of the row", l.packages, allowed))
			}
		}
	}
	return out
}

// A row that allows more than what is imported is no rule.
func TestLayersAllowNoMore(t *testing.T) {
	for _, i := range idle(packages(t)) {
		t.Error(i)
	}
	if len(idle(nil)) < 50 {
		t.Error("rows that nobody uses are not seen")
	}
}

func TestLayersSeeViolations(t *testing.T) {
	own := func(name string) string { return module + "/" + name }
	tests := []struct {
		name string
		pkg  goPackage
		want string // "" = allowed
	}{
		{"standard library", goPackage{ImportPath: own("score"), Imports: []string{"encoding/json", "fmt"}}, ""},
		{"upwards", goPackage{ImportPath: own("score"), Imports: []string{own("agent")}}, "score must not import agent: "},
		{"a mirror of the standard library", goPackage{ImportPath: own("score"), Imports: []string{"github.com/go-json-experiment/json/jsontext"}}, ""},
		{"foreign", goPackage{ImportPath: own("topology"), Imports: []string{"golang.org/x/sys/unix"}}, "topology must not import golang.org/x/sys/unix: "},
		{"a version of an allowed module", goPackage{ImportPath: own("topology/pi"), Imports: []string{"github.com/coreos/go-systemd/v22/dbus"}}, ""},
		{"a name that only begins alike", goPackage{ImportPath: own("topology/pi"), Imports: []string{"github.com/fsnotify/fsnotifyx"}}, "must not import github.com/fsnotify/fsnotifyx"},
		{"kind to kind", goPackage{ImportPath: own("interpret/file"), Imports: []string{own("interpret/service")}}, "interpret/file must not import interpret/service"},
		{"list of kinds", goPackage{ImportPath: own("interpret/standard"), Imports: []string{own("interpret/file")}}, ""},
		{"NATS in the agent", goPackage{ImportPath: own("agent"), Imports: []string{"github.com/nats-io/nats.go"}}, "agent must not import github.com/nats-io"},
		{"logger in a library", goPackage{ImportPath: own("agent/store"), Imports: []string{"github.com/sirupsen/logrus"}}, "agent/store must not import github.com/sirupsen/logrus"},
		{"wire knows the agent", goPackage{ImportPath: own("internal/wire"), Imports: []string{own("agent")}}, "internal/wire must not import agent"},
		{"wire knows the language", goPackage{ImportPath: own("internal/wire"), Imports: []string{own("score")}}, "internal/wire must not import score"},
		{"linked through others", goPackage{ImportPath: own("cmd/continuo-agent"), Deps: []string{"github.com/invopop/jsonschema"}}, "cmd/continuo-agent must not link github.com/invopop"},
		{"fleet in the agent", goPackage{ImportPath: own("cmd/continuo-agent"), Deps: []string{own("fleet")}}, "cmd/continuo-agent must not link fleet"},
		{"internals in an example", goPackage{ImportPath: own("examples/kiosk"), Imports: []string{own("internal/wire")}}, "examples/kiosk must not import internal/wire"},
		{"unknown package", goPackage{ImportPath: own("util")}, "util has no row"},
		{"tests are not imported", goPackage{ImportPath: own("cmd/continuo"), Imports: []string{own("test/device/box")}}, "cmd/continuo must not import test/device/box"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(violations([]goPackage{tt.pkg}), "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	both := []string{own("agent"), own("internal/wire")}
	two := []goPackage{{ImportPath: own("agent/natslink"), Imports: both}, {ImportPath: own("internal/second"), Imports: both}}
	if got := strings.Join(violations(two), "\n"); !strings.Contains(got, "agent/natslink, internal/second all know both") {
		t.Errorf("a second mapper gave %q", got)
	}
}

func TestFolders(t *testing.T) {
	ignored := []string{"bin", "dist"} // as in .gitignore
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(folders, e.Name()) && !slices.Contains(ignored, e.Name()) {
			t.Errorf("the top-level folder %s is not in the list: the tree is the architecture, so say in an ADR what it is for", e.Name())
		}
	}
}

// Nothing starts a process but the named files: no shell, no tools, only sockets, D-Bus and files. H31
func TestNoProcessIsStarted(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		if strings.HasPrefix(p.name(), "test/") {
			continue
		}
		for _, name := range p.GoFiles {
			file := path.Join(p.name(), name)
			src, err := os.ReadFile(filepath.FromSlash(file))
			if err != nil {
				t.Fatal(err)
			}
			starts, err := startsProcess(src)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if starts == "" {
				continue
			}
			if seen[file] = true; processes[file] == "" {
				t.Errorf("%s uses %s: no process is started but by %v", file, starts, slices.Collect(maps.Keys(processes)))
			}
		}
	}
	for file := range processes {
		if _, err := os.Stat(filepath.FromSlash(file)); err == nil && !seen[file] {
			t.Errorf("%s is allowed to start a process and does not: take it off the list", file)
		}
	}
}

// startsProcess names the first thing in a file that could start a process.
func startsProcess(src []byte) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("cannot parse it: %w", err)
	}
	for _, imp := range f.Imports {
		if imp.Path.Value == `"os/exec"` {
			return "os/exec", nil
		}
	}
	calls := []string{"os.StartProcess", "syscall.StartProcess", "syscall.ForkExec", "syscall.Exec", "unix.Exec"}
	found := ""
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(calls, x.Name+"."+sel.Sel.Name) {
				found = x.Name + "." + sel.Sel.Name
			}
		}
		return found == ""
	})
	return found, nil
}

func TestStartsProcess(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"nothing", "package p\nimport \"os\"\nvar _ = os.Getpid", ""},
		{"import", "package p\nimport \"os/exec\"\nvar _ = exec.Command", "os/exec"},
		{"import under another name", "package p\nimport run \"os/exec\"\nvar _ = run.Command", "os/exec"},
		{"by hand", "package p\nimport \"os\"\nfunc f() { os.StartProcess(\"/bin/sh\", nil, nil) }", "os.StartProcess"},
		{"system call", "package p\nimport \"syscall\"\nvar run = syscall.ForkExec", "syscall.ForkExec"},
		{"only spoken of", "package p\n// os/exec is not used\nvar s = \"os/exec\"", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := startsProcess([]byte(tt.src)); err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}
