package pi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/topology"
)

// machine reads the tree of a machine from a text: "-- path --" begins a file. A name with a
// colon, as the kernel has some, cannot be a file of a module.
func machine(text string) fstest.MapFS {
	tree := fstest.MapFS{}
	var file *fstest.MapFile
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "-- ")
		if name, ends := strings.CutSuffix(name, " --"); ok && ends {
			file = &fstest.MapFile{Mode: 0o444}
			tree[name] = file
		} else if file != nil {
			file.Data = append(file.Data, strings.ReplaceAll(line, `\0`, "\x00")...)
		}
	}
	return tree
}

func factsOf(tree fs.FS) *facts { return &facts{tree: tree, busy: make(chan struct{}, 1)} }

// TestFactsOfMachines: what is found out about machines of many kinds.
func TestFactsOfMachines(t *testing.T) {
	files, err := filepath.Glob("testdata/facts/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found, err := factsOf(machine(string(text))).Facts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(found, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			golden := strings.TrimSuffix(file, ".txt") + ".json"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("got\n%s want\n%s %v", got, want, err)
			}
		})
	}
}

// TestPowerIsRemembered: what has occurred stays, until the next boot, where the kernel forgets it.
func TestPowerIsRemembered(t *testing.T) {
	const alarm, boot = "sys/class/hwmon/hwmon0/in0_lcrit_alarm", "proc/sys/kernel/random/boot_id"
	tree := machine("-- sys/class/hwmon/hwmon0/name --\nrpi_volt\n-- " + alarm + " --\n1\n-- " + boot + " --\none\n")
	f := factsOf(tree)
	for i, step := range []struct {
		alarm, boot string
		want        topology.Power
	}{
		{"1", "one", topology.Power{UnderVoltage: true, UnderVoltageOccurred: true}},
		{"0", "one", topology.Power{UnderVoltageOccurred: true}},
		{"0", "two", topology.Power{}},
	} {
		tree[alarm].Data, tree[boot].Data = []byte(step.alarm), []byte(step.boot)
		found, err := f.Facts(t.Context())
		if err != nil || found.Power == nil || *found.Power != step.want {
			t.Errorf("%d: got %+v, %v, want %+v", i, found.Power, err, step.want)
		}
	}
}

// TestFactsOfThisMachine: the real tree, as far as every machine has it.
func TestFactsOfThisMachine(t *testing.T) {
	found, err := newFacts("", t.TempDir()).Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found.Kernel == "" || found.Arch == "" || found.BootID == "" || found.CPUs == 0 || found.MemoryMiB == 0 || len(found.Disks) == 0 || found.Disks[0].SizeMiB == 0 {
		t.Errorf("got %+v", found)
	}
}

// TestFactsOfAnImage: of a machine that does not run, nothing of this one is told, and no link leads out of it.
func TestFactsOfAnImage(t *testing.T) {
	root := t.TempDir()
	for dir, link := range map[string]string{"etc": "/etc/os-release", "usr/lib": ""} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if link != "" {
			if err := os.Symlink(link, filepath.Join(root, dir, "os-release")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(root, "usr/lib/os-release"), []byte("ID=image\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	f := newFacts(root, "")
	defer f.close()
	found, err := f.Facts(t.Context())
	if err != nil || found.OS.ID != "image" || found.Kernel != "" || found.Disks != nil || found.Interfaces != nil {
		t.Errorf("got %+v, %v", found, err)
	}
}

// stuck is a tree whose files block.
type stuck struct{ release chan struct{} }

func (s stuck) Open(name string) (fs.File, error) {
	<-s.release
	return nil, fs.ErrNotExist
}

// TestFactsThatBlock: hardware that does not answer keeps nobody waiting.
func TestFactsThatBlock(t *testing.T) {
	s := stuck{make(chan struct{})}
	f := factsOf(s)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if _, err := f.Facts(ctx); topology.FaultOf(err).Code != topology.CodeTimeout {
			t.Errorf("got %v", err)
		}
		cancel()
	}
	close(s.release)
	if _, err := f.Facts(t.Context()); err != nil {
		t.Errorf("after it answered: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Facts(ctx); !errors.Is(err, context.Canceled) && topology.FaultOf(err).Code != topology.CodeCanceled {
		t.Errorf("got %v", err)
	}
}

// FuzzFacts: whatever stands in the files, what is told of it is text, and bounded.
func FuzzFacts(f *testing.F) {
	names := []string{}
	for _, m := range []string{"pi4", "cm4", "x86"} {
		text, err := os.ReadFile("testdata/facts/" + m + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		for name, file := range machine(string(text)) {
			names = append(names, name)
			f.Add(file.Data)
		}
	}
	f.Add(bytes.Repeat([]byte("PRETTY_NAME=\"\xff\n"), 99))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree := fstest.MapFS{}
		for _, name := range names {
			tree[name] = &fstest.MapFile{Data: data, Mode: 0o444}
		}
		tree["sys/class/thermal/thermal_zone0/type"] = &fstest.MapFile{Data: []byte("cpu-thermal"), Mode: 0o444}
		tree["sys/class/hwmon/hwmon1/name"] = &fstest.MapFile{Data: []byte("rpi_volt"), Mode: 0o444}
		found, err := factsOf(tree).Facts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(found)
		if err != nil || len(b) > 32<<10 || !utf8.Valid(b) {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	})
}
