package export_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/export"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A unit that is named is said with how it is, as far as that can be kept so.
func TestExportUnits(t *testing.T) {
	const install = "\n[Install]\nWantedBy=multi-user.target\n"
	for name, tt := range map[string]struct {
		put  func(*memory.Device)
		unit string
		want string // the spec of the service, without the text of its unit file
	}{
		"runs and is enabled": {func(d *memory.Device) {
			d.Put(unitDir+"x.service", plain+install)
			d.Enable("x.service", false)
			d.StartUnit("x.service")
		}, "x.service", `{"unit":"x.service","unitFile":"…","enabled":true,"state":"running"}`},
		"neither":       {func(d *memory.Device) { d.Put(unitDir+"x.service", plain+install) }, "unit:x.service", `{"unit":"x.service","unitFile":"…","enabled":false,"state":"stopped"}`},
		"of the system": {func(d *memory.Device) { d.Install("x.service", plain+install) }, "x.service", `{"unit":"x.service","enabled":false,"state":"stopped"}`},
		"a oneshot":     {func(d *memory.Device) { d.Install("x.service", plain+"Type=oneshot\n"+install) }, "x.service", `{"unit":"x.service","enabled":false}`},
		"what a timer starts": {func(d *memory.Device) {
			d.Install("x.service", plain)
			d.Put(unitDir+"x.timer", "[Timer]\nOnCalendar=daily\n")
			d.StartUnit("x.timer")
		}, "x.timer", `{"unit":"x.timer","unitFile":"…","state":"running"}`},
		"masked": {func(d *memory.Device) { d.Install("x.service", plain); d.Mask("x.service") }, "x.service", `{"unit":"x.service","masked":true}`},
		"a drop-in of a manifest": {func(d *memory.Device) {
			d.Install("x.service", plain+install)
			d.Put(unitDir+"x.service.d/10-a.conf", score.DropInHeader+"[Service]\nNice=5\n")
		}, "x.service", `{"unit":"x.service","dropIns":{"10-a":"[Service]\nNice=5\n"},"enabled":false,"state":"stopped"}`},
	} {
		t.Run(name, func(t *testing.T) {
			d := system()
			tt.put(d)
			out := exported(t, reader(d), tt.unit)
			for _, s := range out.Manifest.Spec.Scores {
				spec, is := s.Spec.(score.Service)
				if !is || spec.Unit != strings.TrimPrefix(tt.unit, "unit:") {
					continue
				}
				if spec.UnitFile != "" {
					spec.UnitFile = "…"
				}
				got, err := score.Encode(spec)
				if err != nil {
					t.Fatal(err)
				}
				want(t, "the service", string(got), tt.want)
				changesNothing(t, d, out.Manifest)
				return
			}
			t.Errorf("no service in %s", about(out.Manifest))
		})
	}
	d := system(unitDir+"x@.service", plain)
	out := exported(t, reader(d), "x@1.service")
	want(t, "an instance", about(out.Manifest), "file:"+unitDir+"x@.service unit:x@1.service")
	changesNothing(t, d, out.Manifest)
	refused(t, reader(d), export.CodeMissing, "no.service", "", "no.service")
	refused(t, reader(d), export.CodeUnsaid, "x@.service", "", "x@.service")
	refused(t, reader(d), export.CodeUnsaid, "kiosk", "", "kiosk")
	refused(t, reader(d), export.CodeUnsaid, "continuo-agent.service", "", "continuo-agent.service")
	d.Put("/run/systemd/system/tmp.service", plain)
	refused(t, reader(d), export.CodeOutside, "tmp.service", "", "tmp.service")
}

// A container is what its Quadlet file says, with its unit. One that nothing defines cannot be made again.
func TestExportContainers(t *testing.T) {
	d := system(quadlets+"web.container", "[Container]\nImage=example.org/web:1\n")
	d.LoadImage("example.org/web:1", memory.Image{})
	d.StartUnit("web.service")
	for _, name := range []string{"container:web", "container:systemd-web", "web.service"} {
		out := exported(t, reader(d), name)
		want(t, "the container", about(out.Manifest), "file:"+quadlets+"web.container unit:web.service")
		if s := out.Manifest.Spec.Scores[1].Spec.(score.Service); s.State == "" || s.Enabled != nil || s.UnitFile != "" {
			t.Errorf("got %+v", s)
		}
		changesNothing(t, d, out.Manifest)
	}
	refused(t, reader(d), export.CodeMissing, "container:no", "", "container:no")
}

// owned is a reader that has books, in which all that a manifest applied is.
func owned(t *testing.T, d *memory.Device, scores ...score.Score) *export.Reader {
	t.Helper()
	m := score.Manifest{APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: "main"},
		Spec: score.ManifestSpec{Target: score.Target{Device: "pi-7"}, Scores: scores}}
	run, books := runner(t, d)
	if _, err := run.Apply(t.Context(), intent(m)); err != nil {
		t.Fatal(err)
	}
	r := reader(d)
	r.Owner = func(res score.Resource) (export.Owner, bool) {
		e, is := books.Owner(string(res))
		o := export.Owner{Manifest: e.Manifest, Score: e.Score, Provenance: string(e.Provenance)}
		for _, s := range scores {
			if string(s.ID) == e.Score {
				o.Applied = s
			}
		}
		return o, is
	}
	r.AsApplied = func(context.Context, export.Owner) (string, bool) { return "", true }
	return r
}

// What a manifest made is said as its score says it: a container, with secrets by their names; and what was put into a
// file for a secret is never read (G61).
func TestExportWhatManifestsMade(t *testing.T) {
	d := system("/srv/web/index.html", "x")
	d.LoadImage("example.org/web:1", memory.Image{})
	d.SetSecret("pin", "tell-nobody")
	limits := score.Limits{Memory: 64 << 20}
	r := owned(t, d,
		score.Score{ID: "web", NoSecrets: true, Spec: score.Container{Name: "web", Image: "example.org/web:1", Env: map[string]score.Value{"PIN": {Secret: "pin"}}, RestartOn: []score.ID{"conf"},
			Volumes: []score.Volume{{Source: "/srv/web", Target: "/data"}}}},
		score.Score{ID: "conf", Spec: score.File{Path: "/etc/web.conf", Content: "a\n", Mode: 0o644}},
		score.Score{ID: "pin", Spec: score.File{Path: "/etc/pin.conf", Mode: 0o600, Template: &score.Template{Text: "x = {{ secret \"pin\" }}\n"}}},
		score.Score{ID: "kiosk", Spec: score.Service{Unit: "kiosk.service", UnitFile: plain, Limits: &limits, DropIns: map[string]string{"10-a": "[Service]\nNice=5\n"}, State: score.Running}},
	)
	for _, name := range []string{"container:web", quadlets + "web.container", "/etc/containers/systemd"} {
		out := exported(t, r, name)
		for _, s := range out.Manifest.Spec.Scores {
			if c, is := s.Spec.(score.Container); is {
				if s.ID != "web" && !strings.HasSuffix(string(s.ID), "web.container") || c.Env["PIN"].Secret != "pin" || c.RestartOn != nil || len(s.After) > 0 {
					t.Errorf("%s: got %+v", name, s)
				}
			}
		}
		if !strings.Contains(about(out.Manifest), "container:web") || !strings.Contains(about(out.Manifest), "file:/srv/web/index.html") || strings.Contains(about(out.Manifest), "web.container") {
			t.Errorf("%s: got %s", name, about(out.Manifest))
		}
	}
	f := refused(t, r, export.CodeSecret, "/etc/pin.conf", "", "/etc/pin.conf")
	if !strings.Contains(f.Why, "score pin of manifest main puts the secret pin in it") {
		t.Errorf("told as %v", f)
	}
	out := exported(t, r, "kiosk.service")
	want(t, "the service", about(out.Manifest), "unit:kiosk.service")
	if s := out.Manifest.Spec.Scores[0].Spec.(score.Service); s.Limits == nil || *s.Limits != limits || s.DropIns["10-a"] == "" || s.State != score.Running {
		t.Errorf("got %+v", s)
	}
	d.Put(unitDir+"kiosk.service.d/50-continuo-limits.conf", score.DropInHeader+"[Service]\nMemoryMax=1\n")
	refused(t, r, export.CodeUnsaid, unitDir+"kiosk.service.d/50-continuo-limits.conf", "", "kiosk.service")
	r.AsApplied = func(context.Context, export.Owner) (string, bool) { return "it is changed", false }
	refused(t, r, export.CodeUnsaid, "container:web", "", "container:web")
	refused(t, r, export.CodeUnsaid, quadlets+"web.container", "", "/etc/containers/systemd")
	r.Refuses = func(s score.Score) (string, bool) { return "the ceiling", s.Spec.Kind() == score.KindFile }
	refused(t, r, export.CodeNotAllowed, "/etc/web.conf", "", "/etc/web.conf")
}

func TestInventory(t *testing.T) { // G34, X52
	d := memory.New()
	d.SetSecret("pin", "1234")
	r := owned(t, d,
		score.Score{ID: "conf", Spec: score.File{Path: "/srv/app/a.conf", Content: "a\n", Mode: 0o644}},
		score.Score{ID: "pin", Spec: score.File{Path: "/srv/app/pin.conf", Mode: 0o600, Template: &score.Template{Text: "{{ secret \"pin\" }}"}}},
	)
	d.Chmod("/srv/app/pin.conf", 0o644)
	d.Put("/srv/app/tls.key", "a\n")
	d.Put("/srv/app/closed.conf", "a\n")
	d.Chmod("/srv/app/closed.conf", 0o640)
	d.Put("/srv/app/app.log", "a\n")
	d.Put("/srv/app/large.txt", strings.Repeat("a", 1<<20+1))
	d.Put("/srv/app/node_modules/x/y.js", "a\n")
	d.Symlink("a.conf", "/srv/app/link")
	d.Special("/srv/app/pipe")
	got, err := r.Inventory(t.Context(), []string{"/srv/app", "/srv/app/a.conf"})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range got {
		digest := ""
		switch {
		case e.SHA256 != "":
			digest = " sha256"
		case e.Fingerprint != "":
			digest = " keyed"
		}
		lines = append(lines, strings.TrimSpace(strings.Join([]string{strings.TrimPrefix(e.Path, "/srv/app"), string(e.Type), string(e.Class), e.Mode, e.Provenance, e.Score}, " ")+digest+" "+e.Target))
	}
	want(t, "the inventory", strings.Join(lines, "\n"), strings.Join([]string{
		"directory versionable 0755 foreign",
		"/a.conf regular versionable 0644 created conf sha256",
		"/app.log regular runtime 0644 foreign",
		"/closed.conf regular versionable 0640 foreign  keyed",
		"/large.txt regular versionable 0644 foreign",
		"/link symlink versionable 0777 foreign  a.conf",
		"/node_modules directory cache 0755 foreign",
		"/pin.conf regular versionable 0644 created pin keyed",
		"/pipe special versionable 0644 foreign",
		"/tls.key regular secret 0644 foreign  keyed",
	}, "\n"))
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), "1234\"") {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := r.Inventory(t.Context(), []string{"/srv/no"}); err == nil {
		t.Error("what is not there was listed")
	}
}
