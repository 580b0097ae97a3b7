package authority

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func TestCeilingRefuses(t *testing.T) { // H67: also if the signer is trusted
	file := func(path string) score.Spec { return score.File{Path: path} }
	link := func(path, target string) score.Spec { return score.Symlink{Path: path, Target: target} }
	unit := func(name string) score.Spec { return score.Service{Unit: name, UnitFile: "[Unit]\n"} }
	image := func(ref string, sources ...string) score.Spec {
		c := score.Container{Name: "web", Image: ref}
		for _, s := range sources {
			c.Volumes = append(c.Volumes, score.Volume{Source: s, Target: "/data"})
		}
		return c
	}
	kinds := Ceiling{Kinds: []score.Kind{score.KindFile}}
	paths := Ceiling{Paths: []string{"/srv/app", "/etc/motd"}}
	images := Ceiling{Images: []string{"registry.example.org/team", "localhost:5000"}}
	units := Ceiling{Units: []string{"app-*.service", "kiosk.service"}}
	secrets := Ceiling{Secrets: []string{"wifi-psk", "kiosk-*"}}
	tests := []struct {
		name    string
		ceiling Ceiling
		spec    score.Spec
		want    interpret.Code
		says    string
	}{
		{"secrets", secrets, user{"kiosk-token", "wifi-psk"}, "", ""},
		{"another secret", secrets, user{"wifi-psk", "root-password"}, CodeSecret, `this device does not let the secret "root-password" be used`},
		{"no secret at all", Ceiling{Secrets: []string{}}, user{"wifi-psk"}, CodeSecret, ""},
		{"every secret", Ceiling{}, user{"wifi-psk"}, "", ""},
		{"without secrets", Ceiling{Secrets: []string{}}, user{}, "", ""},
		{"no ceiling", Ceiling{}, image("docker.io/library/nginx:1", "/etc"), "", ""},
		{"no spec", kinds, nil, "", ""},
		{"kind", kinds, file("/etc/motd"), "", ""},
		{"other kind", kinds, image("docker.io/library/nginx:1"), CodeKind, "this device plays no container: its ceiling does not list the kind"},
		{"no kind at all", Ceiling{Kinds: []score.Kind{}}, file("/etc/motd"), CodeKind, "plays no file"},
		{"kind that is not known", kinds, score.Opaque{Of: "reactor"}, CodeKind, "plays no reactor"},
		{"not known, and not limited", paths, score.Opaque{Of: "reactor"}, "", ""},
		{"path itself", paths, file("/etc/motd"), "", ""},
		{"below", paths, file("/srv/app/a/b"), "", ""},
		{"beside", paths, file("/srv/app2/a"), CodePath, "this device does not let /srv/app2/a be touched"},
		{"above", paths, file("/srv"), CodePath, ""},
		{"below a file", paths, file("/etc/motd.d/x"), CodePath, ""},
		{"around the corner", paths, file("/srv/app/../x"), CodePath, ""},
		{"not clean", paths, file("/srv/app//x"), CodePath, ""},
		{"relative", paths, file("srv/app/x"), CodePath, ""},
		{"everything", Ceiling{Paths: []string{"/"}}, file("/etc/motd"), "", ""},
		{"nothing", Ceiling{Paths: []string{}}, file("/etc/motd"), CodePath, ""},
		{"link", paths, link("/srv/app/l", "/etc/motd"), "", ""},
		{"link, from where it is", paths, link("/srv/app/a/l", "../b/"), "", ""},
		{"link that is to go", paths, score.Symlink{Path: "/srv/app/l", Target: "/etc", State: score.Absent}, "", ""},
		{"link to elsewhere, which a container may be shown", paths, link("/srv/app/l", "/etc"), CodePath, "does not let /etc be touched"},
		{"link to everything", paths, link("/srv/app/l", "/"), CodePath, "does not let / be touched"},
		{"link up", paths, link("/srv/app/a/l", "../.."), CodePath, "does not let /srv be touched"},
		{"link through another one, which may lead up", paths, link("/srv/app/l", "a/../etc"), CodePath, "does not let /srv/app/a/../etc be touched"},
		{"link through another one by its whole path", paths, link("/srv/app/l", "/srv/app/a/../etc"), CodePath, "does not let /srv/app/a/../etc be touched"},
		{"volume", paths, image("docker.io/library/nginx:1", "cache", "/srv/app/data"), "", ""},
		{"volume elsewhere", paths, image("docker.io/library/nginx:1", "/srv/app/data", "/home"), CodePath, "does not let /home be touched"},
		{"a unit file is where it is", paths, unit("kiosk.service"), "", ""},
		{"image", images, image("registry.example.org/team/web:1.4"), "", ""},
		{"image by digest", images, image("registry.example.org/team@sha256:" + strings.Repeat("0", 64)), "", ""},
		{"registry with a port", images, image("localhost:5000/web:1"), "", ""},
		{"registries have no case", images, image("Registry.Example.org/team/web:1"), "", ""},
		{"another team", images, image("registry.example.org/team-x/web:1.4"), CodeImage, "this device takes no image from registry.example.org/team-x/web: "},
		{"above the team", images, image("registry.example.org/web:1.4"), CodeImage, ""},
		{"another registry", images, image("registry.example.org.evil.example/team/web:1"), CodeImage, ""},
		{"another port", images, image("localhost:5001/web:1"), CodeImage, ""},
		{"no image at all", Ceiling{Images: []string{}}, image("localhost:5000/web:1"), CodeImage, ""},
		{"no reference", images, image(""), CodeImage, ""},
		{"images do not limit files", images, file("/srv/x"), "", ""},
		{"a container by the back door", images, file("/etc/containers/systemd/x.container"), CodeImage, "use a score of kind container"},
		{"unit", units, unit("kiosk.service"), "", ""},
		{"unit by pattern", units, unit("app-web.service"), "", ""},
		{"other unit", units, unit("ssh.service"), CodeUnit, "this device does not let the unit ssh.service be touched"},
		{"the unit of a container", units, image("docker.io/library/nginx:1"), CodeUnit, "web.service"},
		{"a unit by the back door", units, file("/etc/systemd/system/ssh.service"), CodeUnit, "is a part of the unit ssh.service"},
		{"a drop-in", units, file("/etc/systemd/system/ssh.service.d/x.conf"), CodeUnit, "ssh.service"},
		{"a drop-in of its own", units, file("/etc/systemd/system/app-web.service.d/x.conf"), "", ""},
		{"a want", units, file("/usr/lib/systemd/system/multi-user.target.wants/x.service"), CodeUnit, "multi-user.target"},
		{"the unit of a container by the back door", units, file("/etc/containers/systemd/ssh.container"), CodeImage, ""},
		{"a bad pattern matches nothing", Ceiling{Units: []string{"["}}, unit("["), CodeUnit, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, message, refused := tt.ceiling.Refuses(score.Score{ID: "x", Spec: tt.spec})
			if code != tt.want || refused != (tt.want != "") || refused != (message != "") || !strings.Contains(message, tt.says) {
				t.Errorf("got %q, %q, %t; want %q, %q", code, message, refused, tt.want, tt.says)
			}
		})
	}
}

// user is a spec that names secrets.
type user []string

func (user) Kind() score.Kind         { return "test-user" }
func (user) Check(*score.Report)      {}
func (user) Claims() []score.Resource { return nil }
func (u user) SecretNames() []string  { return u }

func TestCeilingRefusesOperations(t *testing.T) { // G31
	c := Ceiling{Verbs: []interpret.Verb{interpret.VerbPlan, interpret.VerbAdopt}, Adopt: []string{"/srv"}}
	if _, _, refused := c.RefusesVerb(interpret.VerbAdopt); refused {
		t.Error("adopt is listed")
	}
	code, message, refused := c.RefusesVerb(interpret.VerbInstall)
	if code != CodeVerb || !refused || message != "this device does not accept install: its ceiling does not list the verb" {
		t.Errorf("got %q, %q, %t", code, message, refused)
	}
	if _, _, refused := (Ceiling{}).RefusesVerb("reboot"); refused {
		t.Error("nothing is listed, so nothing is refused")
	}
	if _, _, refused := (Ceiling{Verbs: []interpret.Verb{}}).RefusesVerb(interpret.VerbPlan); !refused {
		t.Error("an empty list allows nothing")
	}
	for path, want := range map[string]interpret.Code{"/srv/a": "", "/etc/ssh/sshd_config": CodePath, "/srv2/a": CodePath} {
		code, message, refused := c.RefusesAdoption(score.Score{Spec: score.File{Path: path}})
		if code != want || refused != (want != "") || refused && message != "this device does not let "+path+" be adopted: its ceiling lists no path for it" {
			t.Errorf("%s: got %q, %q, %t", path, code, message, refused)
		}
	}
	if code, _, _ := c.RefusesAdoption(score.Score{Spec: score.Container{Name: "web"}}); code != CodePath {
		t.Errorf("the file of a container: got %q", code)
	}
	for path, says := range map[string]string{
		"/etc/web/tls.key": "/etc/web/tls.key is where keys or passwords are, and not adopted unless the ceiling of this device lists it under adopt",
		"/etc/hosts.bak":   "a copy that was left behind", "/etc/resolv.conf": "what a program writes", "/etc/passwd": "that of accounts", "/var/cache/x": "a cache",
		"/etc/kiosk.conf": "", "/home/pi/notes": "",
	} { // X52
		s := score.Score{Spec: score.File{Path: path}}
		if code, message, refused := (Ceiling{}).RefusesAdoption(s); refused != (says != "") || !strings.Contains(message, says) || refused && code != CodePath {
			t.Errorf("%s: got %q, %q, %t", path, code, message, refused)
		}
		if _, _, refused := (Ceiling{Adopt: []string{"/"}}).RefusesAdoption(s); refused {
			t.Errorf("%s is refused to an owner who lists it", path)
		}
	}
	for _, s := range []score.Spec{nil, score.Hostname{Name: "x"}} {
		if _, _, refused := c.RefusesAdoption(score.Score{Spec: s}); refused {
			t.Errorf("%v has no path", s)
		}
	}
	if _, _, refused := (Ceiling{}).RefusesAdoption(score.Score{Spec: score.File{Path: "/etc/x"}}); refused {
		t.Error("nothing is listed, so nothing is refused")
	}
}

// A kind that is new has to be looked at: what of it is a path, an image, a unit? Paths
// and units that it claims are judged without it; what it names besides is not.
func TestEveryKindIsKnownToTheCeiling(t *testing.T) {
	for _, k := range score.Kinds() {
		if _, says := k.Sample.(score.Toucher); !says && shows(k.Type) {
			t.Errorf("a %s shows something of the device to a container, or has an image, and does not say so: see score.Toucher", k.Kind)
		}
		all := Ceiling{Kinds: []score.Kind{}, Paths: []string{}, Images: []string{}, Units: []string{}, Adopt: []string{}}
		if _, _, refused := all.Refuses(score.Score{Spec: k.Sample}); !refused {
			t.Errorf("a device that allows nothing plays a %s", k.Kind)
		}
	}
}

// shows reports whether specs of a type hold what a ceiling is asked about.
func shows(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Map:
		return shows(t.Elem())
	case reflect.Struct:
		if t == reflect.TypeFor[score.Volume]() || t == reflect.TypeFor[score.Device]() {
			return true
		}
		for f := range t.Fields() {
			if f.Name == "Image" || shows(f.Type) {
				return true
			}
		}
	}
	return false
}

// What a container sees, and is made from, counts wherever in its spec it is said.
func TestCeilingOfContainers(t *testing.T) {
	whole := score.Container{Name: "c", Image: "docker.io/library/a:1", Volumes: []score.Volume{{Source: "/srv/a", Target: "/a"}, {Source: "named", Target: "/n"}},
		Devices: []score.Device{{Host: "/dev/ttyUSB0", Container: "/dev/ttyUSB0"}},
		Init:    []score.InitContainer{{Name: "i", Image: "quay.io/b:1", Volumes: []score.Volume{{Source: "/srv/b", Target: "/b"}}}}}
	tests := []struct {
		name    string
		ceiling Ceiling
		code    interpret.Code
	}{
		{"all", Ceiling{Paths: []string{"/srv", "/dev/ttyUSB0"}, Images: []string{"docker.io", "quay.io/b"}}, ""},
		{"no device", Ceiling{Paths: []string{"/srv"}}, CodePath},
		{"not the volume of the init container", Ceiling{Paths: []string{"/srv/a", "/dev"}}, CodePath},
		{"not the image of the init container", Ceiling{Images: []string{"docker.io"}}, CodeImage},
	}
	for _, tt := range tests {
		if code, _, _ := tt.ceiling.Refuses(score.Score{Spec: whole}); code != tt.code {
			t.Errorf("%s: got %q, want %q", tt.name, code, tt.code)
		}
	}
}

func TestCeilingCheck(t *testing.T) {
	tests := []struct {
		name    string
		ceiling Ceiling
		want    string // empty: nothing is wrong
	}{
		{"empty", Ceiling{}, ""},
		{"all of it", Ceiling{
			Policy: &score.Policy{Preset: score.Guarded, OnIntent: score.IntentConfirm, OnDrift: score.DriftIgnore, OnAbsent: score.AbsentRelease,
				OnDestroy: score.DestroyNever, OnFailure: score.FailureHold, Brake: &score.Brake{MaxRemovals: new(0), MaxFraction: new(1.0)},
				Window: &score.Window{Cron: "0 2 * * *", Duration: score.Duration(time.Hour)}},
			Kinds: []score.Kind{score.KindFile}, Paths: []string{"/", "/srv/app"}, Images: []string{"docker.io", "localhost/x", "h:5000/a/b"},
			Units: []string{"app-*", "kiosk.service"}, Verbs: []interpret.Verb{interpret.VerbPlan, interpret.VerbRollbackCheck}, Adopt: []string{"/srv"},
		}, ""},
		{"preset", Ceiling{Policy: &score.Policy{Preset: "Guarded"}}, `/policy/preset: unknown preset "Guarded": it is one of converge, guarded, reviewed`},
		{"onIntent", Ceiling{Policy: &score.Policy{OnIntent: "ask"}}, `/policy/onIntent: unknown onIntent "ask": it is one of apply, confirm`},
		{"onDrift", Ceiling{Policy: &score.Policy{OnDrift: "fix"}}, `/policy/onDrift: unknown onDrift "fix": it is one of correct, report, ignore`},
		{"onAbsent", Ceiling{Policy: &score.Policy{OnAbsent: "prune"}}, `/policy/onAbsent: unknown onAbsent "prune": it is one of collect, restore, release, report`},
		{"onDestroy", Ceiling{Policy: &score.Policy{OnDestroy: "yes"}}, `/policy/onDestroy: unknown onDestroy "yes": it is one of signature, never`},
		{"a ceiling only holds", Ceiling{Policy: &score.Policy{OnFailure: score.FailureRollBack}}, `/policy/onFailure: unknown onFailure "rollBack": it is one of hold`},
		{"deadline", Ceiling{Policy: &score.Policy{Deadline: 1}}, "/policy/deadline: a ceiling has no deadline"},
		{"minReady", Ceiling{Policy: &score.Policy{MinReady: 1}}, "/policy/minReady: a ceiling has no minReady"},
		{"removals", Ceiling{Policy: &score.Policy{Brake: &score.Brake{MaxRemovals: new(-1)}}}, "/policy/brake/maxRemovals: maxRemovals -1 must be 0 or more"},
		{"fraction", Ceiling{Policy: &score.Policy{Brake: &score.Brake{MaxFraction: new(1.5)}}}, "/policy/brake/maxFraction: maxFraction 1.5 must be from 0 to 1"},
		{"cron", Ceiling{Policy: &score.Policy{Window: &score.Window{Cron: "@daily", Duration: score.Duration(time.Hour)}}}, `/policy/window/cron: cron "@daily" must be five fields`},
		{"duration", Ceiling{Policy: &score.Policy{Window: &score.Window{Cron: "0 2 * * *"}}}, "/policy/window/duration: duration is 0s, and a window must be open for a minute at least"},
		{"kind", Ceiling{Kinds: []score.Kind{"contaner"}}, `/kinds/0: this version knows no kind "contaner"`},
		{"relative path", Ceiling{Paths: []string{"/srv", "srv"}}, `/paths/1: path "srv" must be absolute and clean`},
		{"slash at the end", Ceiling{Adopt: []string{"/srv/"}}, `/adopt/0: path "/srv/" must be absolute and clean`},
		{"image with a tag", Ceiling{Paths: []string{}, Images: []string{"docker.io/library/nginx:1"}}, `/images/0: image "docker.io/library/nginx:1" has a tag or a digest`},
		{"image with a digest", Ceiling{Paths: []string{}, Images: []string{"docker.io/nginx@sha256:0"}}, "has a tag or a digest"},
		{"image without a registry", Ceiling{Paths: []string{}, Images: []string{"library/nginx"}}, `/images/0: image "library/nginx" does not begin with a registry, such as docker.io`},
		{"pattern of images", Ceiling{Paths: []string{}, Images: []string{"docker.io/*"}}, `/images/0: image "docker.io/*" must be a registry, or a repository below one`},
		{"empty image", Ceiling{Paths: []string{}, Images: []string{""}}, `/images/0: image "" must be a registry`},
		{"pattern", Ceiling{Paths: []string{}, Units: []string{"app-[.service"}}, `/units/0: "app-[.service" is no pattern`},
		{"unit without an ending", Ceiling{Paths: []string{}, Units: []string{"kiosk"}}, `/units/0: unit "kiosk" matches nothing: the name of a unit has an ending, such as kiosk.service`},
		{"verb", Ceiling{Verbs: []interpret.Verb{"reboot"}}, `/verbs/0: unknown verb "reboot": it is one of plan, install, approve, reject, adopt, release, restore, rollback-check`},
		{"secrets", Ceiling{Secrets: []string{"wifi-psk", "kiosk-*"}}, ""},
		{"pattern of secrets", Ceiling{Secrets: []string{"a", "b["}}, `/secrets/1: "b[" is no pattern of secrets`},
		{"units without paths", Ceiling{Units: []string{"kiosk.service"}}, ": files may be written everywhere, also where programs look for what to start: list paths besides units and images"},
		{"units without files", Ceiling{Units: []string{"kiosk.service"}, Kinds: []score.Kind{score.KindService}}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := score.NewReport()
			tt.ceiling.Check(r)
			var all []string
			for _, p := range r.Problems() {
				all = append(all, p.String())
			}
			got := strings.Join(all, "\n")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) || len(all) > 1 {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Whatever a signed document names: what a ceiling lets pass is below what it lists.
func FuzzCeiling(f *testing.F) {
	for _, p := range []string{"/srv/app", "/srv/app/x", "/srv/app/../x", "/srv/apps", "//srv/app", "/srv/app/./x", "", "/srv/app\x00"} {
		f.Add(p, "registry.example.org/team/web:1", "app-web.service")
		f.Add(p, "registry.example.org/team@sha256:00", "ssh.service")
		f.Add(p, "registry.example.org/team:1/x", "app-/../x.service")
	}
	c := Ceiling{Paths: []string{"/srv/app"}, Images: []string{"registry.example.org/team"}, Units: []string{"app-*.service"}}
	f.Fuzz(func(t *testing.T, path, image, unit string) {
		if _, _, refused := c.Refuses(score.Score{Spec: score.File{Path: path}}); !refused && path != "/srv/app" && !strings.HasPrefix(path, "/srv/app/") || !refused && strings.Contains(path, "/../") {
			t.Errorf("path %q passes", path)
		}
		if _, _, refused := c.Refuses(score.Score{Spec: score.Container{Name: "app-x", Image: image}}); !refused {
			rest, ok := strings.CutPrefix(strings.ToLower(image), "registry.example.org/team")
			if !ok || rest != "" && !strings.ContainsAny(rest[:1], "/:@") {
				t.Errorf("image %q passes", image)
			}
		}
		if _, _, refused := c.Refuses(score.Score{Spec: score.Service{Unit: unit}}); !refused &&
			(!strings.HasPrefix(unit, "app-") || !strings.HasSuffix(unit, ".service") || strings.Contains(unit, "/")) {
			t.Errorf("unit %q passes", unit)
		}
	})
}
