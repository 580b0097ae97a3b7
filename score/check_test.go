package score_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// problems renders problems as "path: text", and marks warnings.
func problems(ps []score.Problem) (out []string) {
	for _, p := range ps {
		s := p.String()
		if p.Severity == score.Warning {
			s = "warning " + s
		}
		out = append(out, s)
	}
	return out
}

func checked(s score.Spec) []string {
	r := score.NewReport()
	s.Check(r)
	return problems(r.Problems())
}

// TestSpecProblems is the table of what kinds say about specs: every sentence is here once.
func TestSpecProblems(t *testing.T) { // H50, H68, cases 1, 53, 61, 66, 67, 73, 83, 103, 107, 147
	file := func(edit func(*score.File)) score.Spec {
		f := score.File{Path: "/etc/f", Mode: 0o644}
		edit(&f)
		return f
	}
	path := func(p string) score.Spec { return file(func(f *score.File) { f.Path = p }) }
	unit := func(name string) score.Spec { return score.Service{Unit: name, State: score.Running} }
	unitFile := func(text string) score.Spec { return score.Service{Unit: "a.service", UnitFile: text} }
	container := func(edit func(*score.Container)) score.Spec {
		c := score.Container{Name: "web", Image: "docker.io/library/nginx:1.27"}
		edit(&c)
		return c
	}
	image := func(ref string) score.Spec { return container(func(c *score.Container) { c.Image = ref }) }
	port := func(texts ...string) score.Spec {
		return container(func(c *score.Container) { c.Ports = parse[score.Port](t, texts...) })
	}
	volume := func(texts ...string) score.Spec {
		return container(func(c *score.Container) { c.Volumes = parse[score.Volume](t, texts...) })
	}
	const clean = `must be absolute and clean: no '..', no '//' and no '/' at the end`
	const unitName = `must be a full unit name such as kiosk.service`
	const fullRef = `must be a full reference with its registry, such as docker.io/library/nginx:1.27`
	const name63 = `must be lower-case letters, digits, '_', '.' and '-', at most 63`
	const label = `must be one DNS label: lower-case letters, digits and '-', at most 63`
	tests := []struct {
		spec score.Spec
		want []string // nil: none
	}{
		{path("/etc/f"), nil},
		{path("/srv/caf\u00e9 \U0001F680.txt"), nil},
		{path("/srv/cafe\u0301.txt"), []string{`warning /path: path "/srv/cafe\u0301.txt" has a combining character: the same name written as one character is another file`}}, // case 45
		{path(""), []string{`/path: path "" ` + clean}},
		{path("etc/f"), []string{`/path: path "etc/f" ` + clean}},
		{path("/"), []string{`/path: path "/" ` + clean}},
		{path("/etc/../root/f"), []string{`/path: path "/etc/../root/f" ` + clean}},
		{path("/etc/f/"), []string{`/path: path "/etc/f/" ` + clean}},
		{path("//etc/f"), []string{`/path: path "//etc/f" ` + clean}},
		{path("/etc/\x00f"), []string{`/path: path has a NUL byte`}},
		{path("/" + strings.Repeat("d/", 2100) + "f"), []string{`/path: path is 4202 bytes long, a device takes 4095`}},
		{path("/etc/" + strings.Repeat("n", 256)), []string{`/path: path has a name of 256 bytes, a device takes 255`}},
		{path("/proc/self/mem"), []string{`/path: /proc is no place for files: it is the kernel's`}},
		{path("/sys"), []string{`/path: /sys is no place for files: it is the kernel's`}},
		{path("/dev/sda"), []string{`/path: /dev is no place for files: it is the kernel's`}},
		{path("/development/f"), nil},
		{path("/etc/resolv.conf"), []string{`warning /path: /etc/resolv.conf belongs to NetworkManager or systemd-resolved, which will write it again`}},
		{path("/etc/continuo/agent.yaml"), []string{`/path: /etc/continuo/agent.yaml belongs to the agent itself`}},
		{path("/etc/continuous"), nil},
		{path("/var/lib/continuo"), []string{`/path: /var/lib/continuo belongs to the agent itself`}},
		{path("/usr/local/bin/continuo-agent"), []string{`/path: /usr/local/bin/continuo-agent belongs to the agent itself`}},
		{path("/etc/systemd/system.control/continuo-agent.service.d/10.conf"), []string{`/path: /etc/systemd/system.control/continuo-agent.service.d/10.conf belongs to the agent itself`}},
		{path("/run/systemd/transient/service.d/10.conf"), []string{`/path: /run/systemd/transient/service.d/10.conf belongs to the agent itself`}},
		{path("/etc/systemd/system/multi-user.target.wants/continuo-agent.service"), []string{`/path: /etc/systemd/system/multi-user.target.wants/continuo-agent.service belongs to the agent itself`}},
		{path("/etc/systemd/system/service.d.conf"), nil},
		{path("/etc/systemd/system/continuo-agent.service.d/10.conf"), []string{`/path: /etc/systemd/system/continuo-agent.service.d/10.conf belongs to the agent itself`}},
		{path("/etc/systemd/system/service.d/10.conf"), []string{`/path: /etc/systemd/system/service.d/10.conf belongs to the agent itself`}},
		{path("/run/systemd/system/continuo-.service.d/10.conf"), []string{`/path: /run/systemd/system/continuo-.service.d/10.conf belongs to the agent itself`}},
		{file(func(f *score.File) { f.Content = "url={{ .vars.url }}\n" }), []string{`warning /content: content has {{ … }} of a template and is written as it is: to fill it in, give it as template: {text: …}`}},
		{file(func(f *score.File) { f.Content = "{{ .Title }}\n" }), nil},
		{file(func(f *score.File) { f.Mode = 644 }), []string{`warning /mode: mode 1204 has the sticky bit, which means nothing for a file; in Go, write 0o644 and not 644`}},
		{file(func(f *score.File) { f.Mode = 0o077 }), []string{`warning /mode: mode 0077 gives the owner no right at all`}},
		{file(func(f *score.File) { f.Mode = 0o10644 }), []string{`/mode: mode has more than permission, setuid, setgid and sticky bits`}},
		{file(func(f *score.File) { f.Owner, f.Group = "www-data", "33" }), nil},
		{file(func(f *score.File) { f.Owner = "Root User" }), []string{`/owner: owner "Root User" is no account name and no number`}},
		{file(func(f *score.File) { f.Group = "-1" }), []string{`/group: group "-1" is no account name and no number`}},
		{file(func(f *score.File) { f.Path = "/etc/NetworkManager/system-connections/x.nmconnection" }),
			[]string{`/mode: NetworkManager ignores a connection that others may read: mode must be "0600"`}},

		{unit("kiosk.service"), nil}, {unit("account_db.service"), nil}, {unit("a.b-c@x:1.service"), nil},
		{unit("srv-data.mount"), nil}, {unit("foo@eth0.service"), nil}, {unit(`foo@a\x2db.service`), nil},
		{unit("kiosk"), []string{`/unit: unit "kiosk" ` + unitName}},
		{unit("with space.service"), []string{`/unit: unit "with space.service" ` + unitName}},
		{unit("../x.service"), []string{`/unit: unit "../x.service" ` + unitName}},
		{unit(".service"), []string{`/unit: unit ".service" ` + unitName}},
		{unit(strings.Repeat("n", 250) + ".service"), []string{`/unit: unit "` + strings.Repeat("n", 250) + `.service" ` + unitName}},
		{unit("foo@.service"), []string{`/unit: unit "foo@.service" is a template; name an instance, such as foo@1.service`}},
		{unit("continuo-agent.service"), []string{`/unit: continuo-agent.service is the agent itself`}},
		{score.Service{Unit: "a.service"}, []string{`: the score asks for nothing: give unitFile, dropIns, limits, enabled, masked, state or run`}},
		{score.Service{Unit: "a.service", State: "runing"}, []string{`/state: unknown state "runing", did you mean "running"?`}},
		{score.Container{Name: "db", Image: "example.org/db:1"}, []string{`/name: name "db" has hexadecimal digits only: podman would take it for the beginning of the id of another container, and replace that; add another character, such as "db-1"`}},
		{score.Container{Name: "x", Image: "example.org/a:1", Restart: "allways"}, []string{`/restart: unknown restart "allways", did you mean "always"?`}},
		{score.Service{Unit: "a.service", Enabled: new(false), RestartOn: []score.ID{"x"}}, []string{`/restartOn: restartOn goes with state running, or with run`}},
		{unitFile("ExecStart=/bin/true\n"), []string{`/unitFile: unitFile has no section such as [Service]`}},
		{unitFile("[Service]\r\nExecStart=/bin/true\r\n"), nil},
		{unitFile("[Service]\nExecStart=/bin/\x00\n"), []string{`/unitFile: unitFile has a NUL byte`}},
		{score.Service{Unit: "a.service", UnitFile: "[Service]\nType = oneshot\nExecStart=/bin/true\n", State: score.Running},
			[]string{`/state: a oneshot without RemainAfterExit=yes does not stay running: add it, or leave state out and say run: once, or enable the unit or the timer that starts it`}},
		{score.Service{Unit: "a.service", UnitFile: "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n", State: score.Running}, nil},
		{score.Service{Unit: "a.service", UnitFile: "[Service]\nExecStart=/bin/true\n# no [Install]\n", Enabled: new(true)},
			[]string{`/enabled: a unit without an [Install] section cannot be enabled`}},
		{score.Service{Unit: "a.service", UnitFile: "[Service]\nExecStart=/bin/true\n", Enabled: new(false)}, nil},

		{container(func(*score.Container) {}), nil},
		{container(func(c *score.Container) { c.Name = "Web" }), []string{`/name: name "Web" ` + name63}},
		{container(func(c *score.Container) { c.Name = "-web" }), []string{`/name: name "-web" ` + name63}},
		{container(func(c *score.Container) { c.Name = strings.Repeat("n", 64) }), []string{`/name: name "` + strings.Repeat("n", 64) + `" ` + name63}},
		{container(func(c *score.Container) { c.Name = "continuo-agent" }), []string{`/name: continuo-agent is the agent itself`}},
		{image("localhost/web:1"), nil}, {image("localhost:5000/web:1"), nil}, {image("registry:5000/a/b__c-d.e:1"), nil},
		{image("ghcr.io/o/web@sha256:" + strings.Repeat("a", 64)), nil}, {image("ghcr.io/o/web:1@sha256:" + strings.Repeat("a", 64)), nil},
		{image(""), []string{`/image: image "" ` + fullRef}},
		{image("nginx:1.27"), []string{`/image: image "nginx:1.27" ` + fullRef}},
		{image("library/nginx:1.27"), []string{`/image: image "library/nginx:1.27" ` + fullRef}},
		{image("a.b:1:2/web:1"), []string{`/image: image "a.b:1:2/web:1" ` + fullRef}},
		{image("a.b/web..x:1"), []string{`/image: image "a.b/web..x:1" ` + fullRef}},
		{image("a.b/Web:1"), []string{`/image: image "a.b/Web:1" ` + fullRef}},
		{image("a.b/web:1\n"), []string{`/image: image "a.b/web:1\n" ` + fullRef}},
		{image("a.b/web@sha256:abc"), []string{`/image: image "a.b/web@sha256:abc" has a digest that is none: want sha256: and its 64 hexadecimal digits, in lower case`}},
		{image("a.b:5000/web"), []string{`/image: image "a.b:5000/web" has no tag and no digest: which one runs would be a guess`}},
		{container(func(c *score.Container) {
			c.Env = map[string]score.Value{"Z-1": score.Text("x"), "A B": score.Text("y"), "OK": score.Text("$HOME")}
		}),
			[]string{`/env/A B: "A B" is no name of an environment variable`, `/env/Z-1: "Z-1" is no name of an environment variable`}},
		{container(func(c *score.Container) { c.Env = map[string]score.Value{"A": score.Text("x\ny")} }), []string{`/env/A: the value of A has a line break or a NUL byte`}},
		{container(func(c *score.Container) { c.Command = []string{"ok", "a\x00b"} }), []string{`/command/1: argument has a NUL byte`}},
		{port("8080:80", "8080:80/udp", "127.0.0.1:6001:80", "127.0.0.2:6001:80"), nil},
		{port("0:80"), []string{`/ports/0: port 0:80 is out of range: 1 to 65535`}},
		{port("8080:0"), []string{`/ports/0: port 8080:0 is out of range: 1 to 65535`}},
		{port("1000-1001:65534-65535", "1-2:3-4"), nil},
		{container(func(c *score.Container) { c.Ports = []score.Port{{Host: 65535, Container: 1, More: 1}} }),
			[]string{`/ports/0: port 65535-65536:1-2 is out of range: 1 to 65535`}},
		{port("1000-3000:1000-3000"), []string{`/ports/0: port 1000-3000:1000-3000 publishes more than 1024 ports`}},
		{port("5000-5003:5000-5003", "127.0.0.1:5003:80"), []string{`/ports/1: port 127.0.0.1:5003:80 overlaps port 1, 5000-5003:5000-5003`}},
		{volume("/srv/web:/data:ro", "cache:/var/cache"), nil},
		{volume("/srv/../etc:/data"), []string{`/volumes/0: source "/srv/../etc" must be a clean path`}},
		{volume("/run/credentials:/c:ro"), []string{`/volumes/0: source /run/credentials would show the agent's own files to the container`}},
		{volume("/run/credentials/continuo-agent.service:/c:ro"), []string{`/volumes/0: source /run/credentials/continuo-agent.service would show the agent's own files to the container`}},
		{volume("/run:/r"), []string{`/volumes/0: source /run would show the agent's own files to the container`}},
		{volume("/var/lib/continuo/keys:/k"), []string{`/volumes/0: source /var/lib/continuo/keys would show the agent's own files to the container`}},
		{volume("./web:/data"), []string{`/volumes/0: source "./web" is no absolute path and no volume name`}},
		{volume("web:/"), []string{`/volumes/0: target "/" must be an absolute, clean path in the container`}},
		{volume("web:/a/"), []string{`/volumes/0: target "/a/" must be an absolute, clean path in the container`}},
		{volume("/a\nb:/c"), []string{`/volumes/0: volume "/a\nb:/c" has a line break or another control character`}},
		{volume("a:/data", "b:/data"), []string{`/volumes/1: volume 1 has the target /data too`}},

		{score.Hostname{Name: "kiosk-7"}, nil}, {score.Hostname{Name: strings.Repeat("n", 63)}, nil},
		{score.Hostname{Name: ""}, []string{`/name: name "" ` + label}},
		{score.Hostname{Name: "kiosk.local"}, []string{`/name: name "kiosk.local" ` + label}},
		{score.Hostname{Name: "Kiosk"}, []string{`/name: name "Kiosk" ` + label}},
		{score.Hostname{Name: "kiosk-"}, []string{`/name: name "kiosk-" ` + label}},
		{score.Hostname{Name: strings.Repeat("n", 64)}, []string{`/name: name "` + strings.Repeat("n", 64) + `" ` + label}},

		{score.Opaque{Of: "fil"}, []string{`/kind: unknown kind "fil", did you mean "file"?`}},
		{score.Opaque{Of: "hologram"}, []string{`/kind: unknown kind "hologram"`}},
		{score.Opaque{Of: "file", Why: `unknown field "x"`, Path: "/x"}, []string{`/x: unknown field "x"`}},
	}
	for _, tt := range tests {
		if got := checked(tt.spec); !slices.Equal(got, tt.want) {
			t.Errorf("%+.200v\ngot  %q\nwant %q", tt.spec, got, tt.want)
		}
	}
}

// manifest returns a manifest that is right.
func manifest(scores ...score.Score) score.Manifest {
	return score.Manifest{
		APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: "m"},
		Spec: score.ManifestSpec{Target: score.Target{Device: "pi-7"}, Policy: score.Policy{Preset: score.Converge}, Scores: scores},
	}
}

func name(id score.ID, path string, after ...score.ID) score.Score {
	return score.Score{ID: id, After: after, Spec: score.File{Path: path, Mode: 0o644}}
}

// TestManifestProblems is the table of what is said about manifests as a whole.
func TestManifestProblems(t *testing.T) { // X62, X96, cases 16, 124, 128
	web := func(name, port string) score.Container {
		return score.Container{Name: name, Image: "a.b/c:1", Ports: parse[score.Port](t, port)}
	}
	long := score.ID(strings.Repeat("n", 129))
	const idRule = `must be lower-case letters, digits, '.', '_' and '-', parts divided by '/', at most 128 long`
	tests := []struct {
		name string
		edit func(*score.Manifest)
		want []string
	}{
		{"right", func(m *score.Manifest) {}, nil},
		{"version", func(m *score.Manifest) { m.APIVersion = "continuo/v2" }, []string{`/apiVersion: apiVersion is "continuo/v2", this version reads "continuo/v1"`}},
		{"kind", func(m *score.Manifest) { m.Kind = "Fleet" }, []string{`/kind: kind is "Fleet", want "Manifest"`}},
		{"name", func(m *score.Manifest) { m.Metadata.Name = "My Kiosk" }, []string{`/metadata/name: name "My Kiosk" must be lower-case letters, digits and '-', at most 63`}},
		{"no target", func(m *score.Manifest) { m.Spec.Target = score.Target{} }, []string{`/spec/target: target names no device and no selector`}},
		{"two targets", func(m *score.Manifest) { m.Spec.Target.Selector = &score.Selector{} }, []string{`/spec/target: target has a device and a selector; give one`}},
		{"device", func(m *score.Manifest) { m.Spec.Target.Device = "pi@home" }, []string{`/spec/target/device: device id "pi@home" must be lower-case letters, digits and '-', at most 63`}},
		{"operator without values", func(m *score.Manifest) {
			m.Spec.Target = score.Target{Selector: &score.Selector{MatchExpressions: []score.Requirement{{Key: "a", Operator: score.In}}}}
		}, []string{`/spec/target/selector/matchExpressions/0/values: operator In goes with values: In and NotIn need some, Exists and DoesNotExist take none`}},
		{"operator with values", func(m *score.Manifest) {
			m.Spec.Target = score.Target{Selector: &score.Selector{MatchExpressions: []score.Requirement{{Key: "a", Operator: score.Exists, Values: []string{"x"}}}}}
		}, []string{`/spec/target/selector/matchExpressions/0/values: operator Exists goes with values: In and NotIn need some, Exists and DoesNotExist take none`}},
		{"unknown operator", func(m *score.Manifest) {
			m.Spec.Target = score.Target{Selector: &score.Selector{MatchExpressions: []score.Requirement{{Key: "a", Operator: "Notin", Values: []string{"x"}}}}}
		}, []string{`/spec/target/selector/matchExpressions/0/operator: unknown operator "Notin", did you mean "NotIn"?`}},
		{"no policy", func(m *score.Manifest) { m.Spec.Policy = score.Policy{} }, nil},
		{"no score", func(m *score.Manifest) { m.Spec.Scores = nil }, []string{`/spec/scores: no score in the manifest: an empty list means nothing; leave out what the device shall no longer have, and keep at least one`}},
		{"profile", func(m *score.Manifest) { m.Spec.Profile = "rasberry-pi" }, []string{`/spec/profile: unknown profile "rasberry-pi", did you mean "raspberry-pi"?`}},
		{"capability", func(m *score.Manifest) { m.Spec.Profile = "pi-zero"; m.Spec.Scores[0].Spec = web("web", "80:80") },
			[]string{`/spec/scores/0/kind: kind "container" needs the capability "containers", which the profile "pi-zero" lacks`}},
		{"no spec", func(m *score.Manifest) { m.Spec.Scores[0].Spec = nil }, []string{`/spec/scores/0/spec: no spec`}},
		{"id", func(m *score.Manifest) { m.Spec.Scores[0].ID = "A/" }, []string{`/spec/scores/0/id: id "A/" ` + idRule}},
		{"long id", func(m *score.Manifest) { m.Spec.Scores[0].ID = long }, []string{fmt.Sprintf(`/spec/scores/0/id: id %q `, long) + idRule}},
		{"in a spec", func(m *score.Manifest) { m.Spec.Scores[0].Spec = score.Hostname{} }, []string{`/spec/scores/0/spec/name: name "" must be one DNS label: lower-case letters, digits and '-', at most 63`}},
		{"unknown kind", func(m *score.Manifest) { m.Spec.Scores[0].Spec = score.Opaque{Of: "fiel"} }, []string{`/spec/scores/0/kind: unknown kind "fiel", did you mean "file"?`}},
		{"same id", func(m *score.Manifest) { m.Spec.Scores = append(m.Spec.Scores, name("a", "/etc/b")) }, []string{`/spec/scores/1/id: id "a" is used twice, first by score 1`}},
		{"after nothing", func(m *score.Manifest) {
			m.Spec.Scores = append(m.Spec.Scores, name("conf", "/etc/c"), name("c", "/etc/d", "cnof"))
		},
			[]string{`/spec/scores/2/after/0: there is no score "cnof", did you mean "conf"?`}},
		{"restartOn nothing", func(m *score.Manifest) {
			m.Spec.Scores = append(m.Spec.Scores, score.Score{ID: "s", Spec: score.Service{Unit: "s.service", State: score.Running, RestartOn: []score.ID{"a", "zzz"}}})
		}, []string{`/spec/scores/1/spec/restartOn/1: there is no score "zzz"`}},
		{"itself", func(m *score.Manifest) { m.Spec.Scores[0].After = []score.ID{"a"} }, []string{`/spec/scores/0: scores wait for each other: a → a`}},
		{"cycle", func(m *score.Manifest) {
			m.Spec.Scores = []score.Score{name("z", "/z", "y"), name("x", "/x", "z"), name("y", "/y", "x"), name("free", "/f")}
		}, []string{`/spec/scores/1: scores wait for each other: x → z → y → x`}},
		{"same path", func(m *score.Manifest) { m.Spec.Scores = append(m.Spec.Scores, name("b", "/etc/a")) },
			[]string{`/spec/scores/1: score "b" claims file:/etc/a, which score "a" claims too`}},
		{"unit file as a file", func(m *score.Manifest) {
			m.Spec.Scores = []score.Score{name("f", score.UnitDir+"a.service"), {ID: "u", Spec: score.Service{Unit: "a.service", UnitFile: "[Service]\nExecStart=/x\n"}}}
		}, []string{`/spec/scores/1: score "u" claims file:/etc/systemd/system/a.service, which score "f" claims too`}},
		{"unit of a container", func(m *score.Manifest) {
			m.Spec.Scores = []score.Score{{ID: "c", Spec: web("web", "80:80")}, {ID: "u", Spec: score.Service{Unit: "web.service", State: score.Stopped}}}
		}, []string{`/spec/scores/1: score "u" claims unit:web.service, which score "c" claims too`}},
		{"same port", func(m *score.Manifest) {
			m.Spec.Scores = []score.Score{{ID: "c", Spec: web("x", "8080:80")}, {ID: "d", Spec: web("y", "127.0.0.1:8080:81")}, {ID: "e", Spec: web("z", "8080:80/udp")}}
		}, []string{`/spec/scores/1: score "d" claims port:tcp/8080@127.0.0.1, which score "c" claims too`}},
		{"host name twice", func(m *score.Manifest) {
			m.Spec.Scores = []score.Score{{ID: "g", Spec: score.Hostname{Name: "g"}}, {ID: "h", Spec: score.Hostname{Name: "h"}}}
		}, []string{`/spec/scores/1: score "h" claims hostname, which score "g" claims too`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := manifest(name("a", "/etc/a"))
			tt.edit(&m)
			if got := problems(m.Validate()); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestAssignmentProblems(t *testing.T) { // S14, cases 128
	other := manifest(name("b", "/etc/a"), name("c", "/etc/c"))
	other.Metadata.Name = "other"
	broken := manifest(name("A", "/etc/b"))
	broken.Metadata.Name = "broken"
	assignment := func(scores int, ms ...score.Manifest) score.Assignment {
		return score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Spec: score.AssignmentSpec{Scores: scores, Manifests: ms}}
	}
	tests := []struct {
		name string
		in   score.Assignment
		want []string
	}{
		{"right", assignment(1, manifest(name("a", "/etc/a"))), nil},
		{"kind", score.Assignment{Kind: "Manifest"}, []string{`: document is "" "Manifest", want "continuo/v1" "Assignment"`}},
		{"not whole", assignment(2, manifest(name("a", "/etc/a"))), []string{`/spec/scores: assignment says it holds 2 scores and holds 1: it is not whole`}},
		{"twice", assignment(2, manifest(name("a", "/etc/a")), manifest(name("b", "/etc/b"))),
			[]string{`/spec/manifests/1/metadata/name: manifest "m" is listed twice, first as number 1`}},
		{"in a manifest", assignment(1, broken),
			[]string{`/spec/manifests/0/spec/scores/0/id: id "A" must be lower-case letters, digits, '.', '_' and '-', parts divided by '/', at most 128 long`}},
		{"claimed by two", assignment(3, manifest(name("a", "/etc/a")), other),
			[]string{`/spec/manifests/1/spec/scores/0: score "b" of manifest "other" claims file:/etc/a, which score "a" of manifest "m" claims too`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := problems(tt.in.Validate()); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestReportPaths(t *testing.T) {
	r := score.NewReport()
	r.At("a/b", 3, "c~d").Errorf("x")
	r.At("a", "b", "..", "c").Warnf("%d", 1)
	r.At("..").Errorf("root")
	want := []string{"/a~1b/3/c~0d: x", "warning /a/c: 1", ": root"}
	if got := problems(r.Problems()); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := score.Errors(r.Problems()); n != 2 {
		t.Errorf("counted %d errors", n)
	}
}

func TestNearest(t *testing.T) { // cases 22
	names := []string{"path", "content", "mode", "owner", "group"}
	for in, want := range map[string]string{
		"pth": "path", "contnet": "content", "Mode": "mode", "restartPolcy": "", "": "", "ownr": "owner", "x": "",
	} {
		if got, ok := score.Nearest(in, names); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, want %q", in, got, want)
		}
	}
}
