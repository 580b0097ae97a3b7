package continuo_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// H72: the words of a status are those of the glossary, all of them and no others.
func TestWordsOfAStatus(t *testing.T) {
	_, section, ok := strings.Cut(readText(t, "ADR/README.md"), "\n## Words\n")
	if !ok {
		t.Fatal("ADR/README.md has no section Words")
	}
	told := map[string]bool{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				told[m[1]] = true
			}
		}
	}
	used := map[string]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice, reflect.Pointer, reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			if typ.PkgPath() != module+"/interpret" {
				return
			}
			for f := range typ.Fields() {
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				used[name] = true
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[interpret.DeviceStatus]())
	for _, word := range []string{"generation", "observedGeneration", "conditions", "phase"} {
		if !used[word] {
			t.Errorf("no field of a status is called %s", word)
		}
	}
	for word := range used {
		if !told[word] {
			t.Errorf("the glossary does not tell what %s is", word)
		}
	}
	for word := range told {
		if !used[word] {
			t.Errorf("the glossary tells of %s, which is no field of a status", word)
		}
	}
}

// modules is every module that the agent links, with whom its code talks to. The fleet is reached through NATS, and
// everything else is on the device (H47).
var modules = map[string]string{
	"github.com/nats-io/nats.go": "the NATS server: the only thing that the agent talks to over a network",
	"github.com/nats-io/nkeys":   "nobody", "github.com/nats-io/nuid": "nobody", "github.com/klauspost/compress": "nobody", "golang.org/x/crypto": "nobody",

	"github.com/godbus/dbus/v5": "the system bus, a local socket", "github.com/coreos/go-systemd/v22": "systemd, over the bus and its notify socket",

	"github.com/fsnotify/fsnotify": "the kernel", "golang.org/x/sys": "the kernel",
	"github.com/go-json-experiment/json": "nobody", "go.yaml.in/yaml/v4": "nobody", "github.com/vmihailenco/msgpack/v5": "nobody", "github.com/vmihailenco/tagparser/v2": "nobody",
	"github.com/aymanbagabas/go-udiff": "nobody", "github.com/robfig/cron/v3": "nobody", "github.com/sirupsen/logrus": "nobody", "github.com/spf13/cobra": "nobody", "github.com/spf13/pflag": "nobody",
}

// speaksHTTP is every file of the agent that does, with whom.
var speaksHTTP = map[string]string{
	"topology/pi/podman.go": "podman, over its local socket",
	"topology/pi/probes.go": "whatever a health check names",
}

func TestTheAgentTalksToNATSOnly(t *testing.T) { // H47
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{.Module.Path}}{{end}}", "./cmd/continuo-agent")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(modules)
	for m := range strings.FieldsSeq(string(out)) {
		if m != module && modules[m] == "" {
			t.Errorf("the agent links %s: say in the table whom it talks to", m)
			modules[m] = "told"
		}
		delete(left, m)
	}
	for m := range left {
		t.Errorf("the table has %s, which the agent does not link", m)
	}
	// Our own code opens no connection by itself, but for podman's socket.
	for _, p := range packages(t) {
		linked := slices.ContainsFunc([]string{"agent", "score", "topology", "interpret", "internal/wire", "cmd/continuo-agent", "schemas/source"}, func(base string) bool {
			return p.name() == base || strings.HasPrefix(p.name(), base+"/")
		})
		for _, imp := range p.Imports {
			if linked && slices.Contains([]string{"net/smtp", "net/rpc"}, imp) {
				t.Errorf("%s imports %s", p.name(), imp)
			}
		}
		for _, name := range p.GoFiles {
			src := readText(t, filepath.Join(p.name(), name))
			if file := p.name() + "/" + name; linked && strings.Contains(src, `"net/http"`) && speaksHTTP[file] == "" {
				t.Errorf("%s speaks HTTP: say in the table to whom", file)
			}
			if m := regexp.MustCompile(`\b(net|tls)\.(Dial\w*|Listen\w*)\(`).FindString(src); linked && m != "" {
				t.Errorf("%s/%s calls %s", p.name(), name, strings.TrimSuffix(m, "("))
			}
		}
	}
}

// X33: what a person is shown of any kind is made from its schema and its typed state: what shows it knows no kind.
func TestWhatShowsKnowsNoKind(t *testing.T) {
	var kinds []string
	for _, k := range score.Kinds() {
		kinds = append(kinds, k.Type.Name(), "Kind"+k.Type.Name())
	}
	if len(kinds) < 20 {
		t.Fatalf("there are only %v", kinds)
	}
	named := regexp.MustCompile(`\bscore\.(Add)?(` + strings.Join(kinds, "|") + `)\b`)
	read := 0
	for _, p := range packages(t) {
		if p.name() != "cmd/internal/show" && p.name() != "schemas" {
			continue
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, module+"/interpret/") {
				t.Errorf("%s imports %s", p.name(), imp)
			}
		}
		for _, name := range p.GoFiles {
			read++
			if m := named.FindString(readText(t, filepath.Join(p.name(), name))); m != "" {
				t.Errorf("%s/%s names %s", p.name(), name, m)
			}
		}
	}
	if read < 8 {
		t.Errorf("only %d files were read", read)
	}
}

// The README has every kind once, with its example.
func TestReadmeHasEveryKind(t *testing.T) {
	readme := readText(t, "README.md")
	for _, k := range score.Kinds() {
		if n := strings.Count(readme, "\n| [`"+string(k.Kind)+"`](examples/"+string(k.Kind)+".yaml) | "); n != 1 {
			t.Errorf("%s is there %d times", k.Kind, n)
		}
	}
	if rows := strings.Count(readme, "\n| [`"); rows != len(score.Kinds()) {
		t.Errorf("there are %d rows for %d kinds", rows, len(score.Kinds()))
	}
}
