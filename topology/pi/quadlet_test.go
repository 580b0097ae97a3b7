package pi

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/topology"
)

var update = flag.Bool("update", false, "write the golden files")

// nasty is every character that systemd, podman or the generator reads otherwise.
var nasty = []string{
	"plain", "two words", "", `"`, "'", `\`, `\n`, "$HOME", "${HOME}", "$$", "%n", "100%", "%%", "a=b", ";", "#x", "{{.ID}}", "*", "~",
	"tab\tline\nend", "\x01\x7f", "caf\u00e9 \U0001F680", "--flag=x y", " lead", "trail ", `C:\dir\`, "`id`", "$(id)", "&&", "|", ">",
}

func goldenConfigs() map[string]topology.ContainerConfig {
	return map[string]topology.ContainerConfig{
		"plain": {Name: "web", Image: "registry.example.org/web:1.4", Restart: "always", SpecDigest: "sha256:0011", Mark: "kiosk/web"},
		"full": {
			Name: "web", Image: "registry.example.org:5000/a/web@sha256:aabb", Command: []string{"serve", "--motd", "it's 100% $fine", `"q"`},
			Env: []string{"A=1", "B=two words", `C=$x %n "q" \ end`}, Ports: []string{"127.0.0.1:6001:80", "5000-5003:5000-5003/udp", "[::1]:8080:80"},
			Volumes: []string{"/srv/web data:/data:ro", "cache:/var/cache"}, Restart: "on-failure", SpecDigest: "sha256:0022", Mark: "kiosk/broker/web",
		},
		"all":   allOfIt("web", "localhost/web:1"),
		"never": {Name: "job", Image: "localhost/job:1", Command: nasty, Restart: "never", SpecDigest: "sha256:0033", Mark: "kiosk/job"},
	}
}

// allOfIt is a config with every field set.
func allOfIt(name, image string) topology.ContainerConfig {
	db := topology.ContainerSecret{Name: "db-password", Fingerprint: "f1"}
	variable, file := db, topology.ContainerSecret{Name: "tls.key", Fingerprint: "f2", Target: "/run/secrets/tls 100%", Mode: 0o440, UID: 7, GID: 8}
	variable.Env = "DB_PASSWORD"
	return topology.ContainerConfig{
		Name: name, Image: image, Stopped: true, Entrypoint: []string{"/bin/sh", "-c", "a b", `q"$x %n\\ ;` + "\x7f\n", ""}, Command: []string{"x"},
		User: "1000:1000", WorkingDir: "/srv/a b%", Hostname: "web-1", Env: []string{"A=1"}, Secrets: []topology.ContainerSecret{variable, file},
		Volumes: []string{"/srv:/srv"}, Tmpfs: []topology.ContainerTmpfs{{Target: "/cache"}, {Target: "/tmp/x", Size: 1 << 20}},
		Devices: []string{"/dev/null:/dev/xnull:rw", "/dev/zero"}, CapAdd: []string{"NET_ADMIN"}, CapDrop: []string{"ALL"}, ReadOnly: true, Network: "host",
		Memory: 64 << 20, CPU: 150, PIDs: 100, LogDriver: "k8s-file", LogSize: 10 << 20, Labels: []string{"org.example/a=b c", "z="},
		HealthCheck: &topology.ContainerHealthCheck{Command: []string{"/bin/test", "-e", "/tmp/a $b"}, Interval: 10 * time.Second, Timeout: time.Second, StartPeriod: 5 * time.Second, Retries: 2},
		StopSignal:  "INT", StopTimeout: 90 * time.Second, ReloadSignal: "USR1", Restart: "on-failure", SpecDigest: "0044", Mark: "m/s",
		Init: []topology.InitContainer{
			{Name: name + "-init-one", Image: image, Timeout: 5 * time.Minute},
			{
				Name: name + "-init-two", Image: "localhost/tools:1", Entrypoint: []string{"/e", "--x=y z"}, Command: append([]string{"--first"}, nasty...), User: "0",
				Env: []string{"B=$c %d \"e\""}, Secrets: []topology.ContainerSecret{variable}, Volumes: []string{"/srv:/srv"}, Timeout: time.Second,
			},
		},
	}
}

func TestQuadletText(t *testing.T) {
	for name, c := range goldenConfigs() {
		t.Run(name, func(t *testing.T) {
			got, err := quadlet(c)
			if err != nil {
				t.Fatal(err)
			}
			p := "testdata/" + name + ".container"
			if *update {
				if err := os.WriteFile(p, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			d := parseDefinition(got)
			if !d.intact || !reflect.DeepEqual(d.config, c) {
				t.Errorf("read back: %+v", d)
			}
			if d := parseDefinition(append(got, "# by hand\n"...)); d.intact {
				t.Error("an edited definition passes for intact")
			}
		})
	}
	if _, err := quadlet(topology.ContainerConfig{Name: "x", Restart: "sometimes"}); err == nil {
		t.Error("an unknown restart policy was taken")
	}
	if d := parseDefinition([]byte("[Container]\nImage=x\nLabel=a=b\n")); !reflect.DeepEqual(d, definition{}) {
		t.Errorf("somebody else's: %+v", d)
	}
}

// What an older agent has written is read as what it was made from, so that it is left alone (X35).
func TestOlderDefinitions(t *testing.T) {
	for file, config := range map[string]string{"full-before-stop.container": "full", "full-before-limits.container": "full"} {
		text, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if d := parseDefinition(text); !d.intact || !reflect.DeepEqual(d.config, goldenConfigs()[config]) {
			t.Errorf("%s: %+v", file, d)
		}
	}
}

// A value cannot break out of its line, whatever it is.
func FuzzWord(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w := word(s)
		for i := range len(w) {
			if w[i] < ' ' || w[i] == 0x7f {
				t.Fatalf("%q became %q", s, w)
			}
			if w[i] == '"' && i > 0 && i < len(w)-1 {
				n := 0
				for ; w[i-1-n] == '\\'; n++ {
				}
				if n%2 == 0 {
					t.Fatalf("%q became %q, which ends early", s, w)
				}
			}
		}
	})
}

// What was written is read back as it was, whatever it is.
func FuzzQuadletReadBack(f *testing.F) {
	for _, s := range nasty {
		f.Add(s, "localhost/job:1", "cache:/var/cache")
	}
	f.Add("${CONTINUO_EMPTY}", "r.example.org/a@sha256:aabb", "/srv/a \"b\" $c %d:/data:ro")
	f.Add(`\x41 \\x41 "\`, "localhost/job:1", `"/x":/y`)
	f.Fuzz(func(t *testing.T, value, image, volume string) {
		if strings.ContainsAny(value+image+volume, "\x00") || strings.ContainsAny(image+volume, "\n\r") || strings.HasSuffix(image, `\`) || strings.HasSuffix(volume, `\`) || strings.HasPrefix(image, `"`) || strings.HasPrefix(volume, `"`) {
			return // no score can ask for it
		}
		c := topology.ContainerConfig{
			Name: "job", Image: image, Command: []string{value, "", ";", value}, Env: []string{"A=" + value, "B=" + value},
			Volumes: []string{volume, volume}, Restart: "never", Labels: []string{"a=" + strings.ReplaceAll(value, "\n", "")},
			Init: []topology.InitContainer{{Name: "job-init-a", Image: "localhost/a:1", Command: []string{value, "--", value}, Env: []string{"A=" + value}, Timeout: time.Second}}, SpecDigest: "0033", Mark: "m/s",
		}
		if utf8.ValidString(value) {
			c.Entrypoint = []string{value, "x", value}
			c.HealthCheck = &topology.ContainerHealthCheck{Command: []string{"/c", value}}
			c.Init[0].Entrypoint = []string{value}
		}
		text, err := quadlet(c)
		if err != nil {
			t.Fatal(err)
		}
		if d := parseDefinition(text); !d.intact || !reflect.DeepEqual(d.config, c) {
			t.Errorf("%+v was read back as %+v from\n%s", c, d, text)
		}
	})
}

func FuzzParseDefinition(f *testing.F) {
	for _, c := range goldenConfigs() {
		text, err := quadlet(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) { parseDefinition(text) })
}

func TestRepositoryOf(t *testing.T) {
	for in, want := range map[string]string{
		"docker.io/library/nginx:1.27": "docker.io/library/nginx", "localhost:5000/x": "localhost:5000/x", "localhost:5000/x:1": "localhost:5000/x",
		"r.example.org/a/b:1@sha256:00": "r.example.org/a/b", "r.example.org/a/b@sha256:00": "r.example.org/a/b",
	} {
		if got := repositoryOf(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

func TestRegistryDigest(t *testing.T) { // case 77
	known := []string{"r.example.org/a@sha256:01", "r.example.org/b@sha256:01", "r.example.org/b@sha256:02", "localhost/c@sha256:03"}
	for reference, want := range map[string]string{
		"r.example.org/a:1": "sha256:01", "r.example.org/b:1": "sha256:01", "r.example.org/b@sha256:02": "sha256:02",
		"r.example.org/b:1@sha256:02": "sha256:02", "localhost/c:1": "", "r.example.org/d:1": "",
	} {
		if got := registryDigest(known, reference); got != want {
			t.Errorf("%s: %q, want %q", reference, got, want)
		}
	}
}
