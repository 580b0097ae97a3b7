package export_test

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/health"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// runner plays manifests on a device.
func runner(t *testing.T, d *memory.Device) (*agent.Runner, *store.Store) {
	t.Helper()
	s, _, err := store.Open(store.NewMem(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &agent.Runner{Table: standard.Bind(d), Store: s, Files: d.Files(), Eyes: &health.Eyes{Probes: d.Probes(), Services: d.Services(), Containers: d.Containers()}}, s
}

func intent(m score.Manifest) agent.Intent {
	m.Metadata.Generation = 1
	return agent.Intent{Generation: 1, Assignment: score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: "pi-7", Generation: 1},
		Spec: score.AssignmentSpec{Scores: len(m.Spec.Scores), Manifests: []score.Manifest{m}}}}
}

// changesNothing validates a manifest as its document, and plays it on the device that it was read from.
func changesNothing(t *testing.T, d *memory.Device, m score.Manifest) {
	t.Helper()
	doc, err := score.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	read, found := schemas.Validate("export.json", doc)
	for _, f := range found {
		if f.Severity == score.Error {
			t.Errorf("it does not validate: %v", f)
		}
	}
	r, _ := runner(t, d)
	calls := d.Record()
	st, err := r.Apply(t.Context(), intent(read))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls.Mutations() {
		t.Errorf("playing it does %s %s", c.Op, c.Resource)
	}
	for _, s := range st.Manifests[0].Scores {
		if s.Outcome != interpret.Unchanged {
			t.Errorf("%s is %s (%s): %s %v", s.ID, s.Outcome, s.Code, s.Message, s.Changes)
		}
	}
}

// texts are contents that a person writes, and some that he does not.
var texts = []string{"", "a = 1\n", "no end", "\n\n", "tab\there\r\nand a line of another system\r\n", "grün ✓ 日本\n", "  - yaml: [1, 2]\n---\n...\n", "true", "null", "0644", "'\"\\ # {}: &a *a !t | >", " leading and trailing  ", "key: value\n"}

// A world is a device with something random on it, and what of it is to be exported.
func world(rng *rand.Rand) (*memory.Device, []string) {
	d := system()
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	wanted := map[string]bool{}
	var made []string
	for _, root := range []string{"/srv/app", "/etc/app", "/opt/x y"}[:1+rng.IntN(3)] {
		d.Mkdir(root)
		wanted[root] = true
		dirs := []string{root}
		for range rng.IntN(12) {
			dir := dirs[rng.IntN(len(dirs))]
			p := path.Join(dir, pick("a", "b", "B", "c.conf", "d-e", "d_e", "ü", "..data", "-x", "x.json")+fmt.Sprint(rng.IntN(3)))
			switch _, there := d.Read(p); {
			case there || strings.HasSuffix(p, "-") || len(d.List(p)) > 0 || d.Identity(p) != "":
				continue
			}
			switch rng.IntN(5) {
			case 0:
				d.Mkdir(p)
				dirs = append(dirs, p)
				d.Chmod(p, []uint32{0o755, 0o2755, 0o1777, 0o711}[rng.IntN(4)])
			case 1:
				if len(made) > 0 {
					d.Symlink(pick(made...), p)
				} else {
					d.Symlink(pick("/dev/null", "/usr/bin/env", "../"+path.Base(root)), p)
				}
			default:
				d.Put(p, pick(texts...))
				d.Chmod(p, []uint32{0o644, 0o755, 0o444, 0o600, 0o640}[rng.IntN(5)])
				wanted[p] = true // also those that not everybody may read
			}
			if rng.IntN(3) == 0 {
				d.Chown(p, []uint32{0, 1000, 4711}[rng.IntN(3)], []uint32{0, 1000, 4711}[rng.IntN(3)])
			}
			made = append(made, p)
		}
	}
	for _, name := range []string{"kiosk", "back", "tick"}[:rng.IntN(4)] {
		unit := name + ".service"
		text := "[Unit]\nDescription=" + name + "\n\n" + plain
		if rng.IntN(2) == 0 {
			d.Put("/etc/default/"+name, pick(texts...))
			text += "EnvironmentFile=" + pick("", "-") + "/etc/default/" + name + "\n"
		}
		if rng.IntN(2) == 0 {
			text += "\n[Install]\nWantedBy=multi-user.target\n"
		}
		if rng.IntN(4) == 0 {
			d.Install(unit, text)
		} else {
			d.Put(unitDir+unit, text)
		}
		if _, here := d.Read(unitDir + unit); here && rng.IntN(4) == 0 {
			d.Chmod(unitDir+unit, 0o755) // which a service would correct
		}
		if rng.IntN(2) == 0 {
			d.Put(unitDir+unit+".d/10-x.conf", pick("", score.DropInHeader)+"[Service]\nEnvironment=A=1\n")
		}
		if rng.IntN(2) == 0 && strings.Contains(text, "[Install]") {
			d.Enable(unit, false)
		}
		if rng.IntN(2) == 0 {
			d.StartUnit(unit)
		}
		if rng.IntN(3) == 0 && d.Identity(unitDir+unit) != "" {
			wanted[unitDir+unit] = true
		} else {
			wanted[unit] = true
		}
	}
	if rng.IntN(2) == 0 {
		d.LoadImage("example.org/web:1", memory.Image{})
		d.Put(quadlets+"web.container", "[Container]\nImage=example.org/web:1\nContainerName=web\nVolume=/srv/app:/data\n")
		wanted[pick("container:web", "web.service", quadlets+"web.container")] = true
	}
	var all []string
	for w := range wanted {
		all = append(all, w)
	}
	slices.Sort(all)
	return d, all
}

// What is exported says exactly what is there: its document is valid, and playing it on the same device changes nothing,
// whoever made what is there (G93, X54).
func TestExportChangesNothing(t *testing.T) {
	kinds := map[score.Kind]int{}
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			d, wanted := world(rand.New(rand.NewPCG(seed, 1)))
			out, err := reader(d).Export(t.Context(), "live", "pi-7", wanted)
			if err != nil {
				t.Fatalf("%q: %v", wanted, err)
			}
			for _, s := range out.Manifest.Spec.Scores {
				kinds[s.Spec.Kind()]++
			}
			changesNothing(t, d, out.Manifest)
		})
	}
	t.Log(kinds)
	for _, k := range []score.Kind{score.KindFile, score.KindDirectory, score.KindSymlink, score.KindService} {
		if kinds[k] < 100 {
			t.Errorf("only %d of %s", kinds[k], k)
		}
	}
}
