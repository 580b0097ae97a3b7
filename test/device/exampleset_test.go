//go:build device && linux

package device

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// examples are all of them. What a program writes is what it prints here; the rest is read.
func examples(t *testing.T) (out []score.Manifest) {
	t.Helper()
	for _, glob := range []string{"../../examples/*.yaml", "../../examples/repository/*.yaml"} {
		paths, err := filepath.Glob(glob)
		if err != nil || len(paths) == 0 {
			t.Fatalf("there are no examples: %v", err)
		}
		for _, path := range paths {
			out = append(out, readExample(t, path))
		}
	}
	for _, args := range [][]string{{"composites", "mosquitto"}, {"composites", "nodered"}, {"composites", "signage"}, {"kiosk"}} {
		printed, err := exec.CommandContext(t.Context(), box.Build(t, "./examples/go/"+args[0]), args[1:]...).Output()
		if err != nil {
			t.Fatal(err)
		}
		var m score.Manifest
		if err := score.Decode(printed, &m); err != nil {
			t.Fatal(err)
		}
		out[slices.IndexFunc(out, func(o score.Manifest) bool { return o.Metadata.Name == m.Metadata.Name })] = m
	}
	for i := range out {
		adapt(&out[i])
	}
	return out
}

func readExample(t *testing.T, path string) score.Manifest {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, problems := source.Manifest(path, data)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", path, problems)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m, contents, wrong := fleet.ResolveContent(m, root)
	if len(wrong) > 0 || len(contents) > 0 {
		t.Fatalf("%s: %v, %v", path, wrong, contents)
	}
	return m
}

// adapt puts in the place of what belongs to the site of an example what a box has.
func adapt(m *score.Manifest) {
	m.Spec.Target = score.Target{Device: "pi-7"}
	if m.Spec.Policy.Window != nil { // one that is open now, whatever the time zone of the device becomes
		m.Spec.Policy.Window = &score.Window{Cron: fmt.Sprintf("0 %d * * *", (time.Now().UTC().Hour()+12)%24), Duration: score.Duration(23 * time.Hour)}
	}
	for i, s := range m.Spec.Scores {
		m.Spec.Scores[i].Decommission = false // it must be there before it can go
		if e, ok := s.Spec.(score.Ethernet); ok {
			e.Interface = strings.Replace(e.Interface, "eth0", "eth1", 1) // the other one leads to the fleet
			if e.VLAN != nil {
				e.VLAN = &score.VLAN{ID: e.VLAN.ID, Parent: "eth1"}
			}
			m.Spec.Scores[i].Spec = e
		}
	}
}

// apart deals manifests out to devices that play side by side. Two that want the same thing cannot be on one.
func apart(manifests []score.Manifest) (devices [][]score.Manifest) {
	const atLeast = 3
	for _, m := range manifests {
		best := -1
		for i, d := range devices {
			if !slices.ContainsFunc(d, func(o score.Manifest) bool { return collide(m, o) }) && (best < 0 || len(d) < len(devices[best])) {
				best = i
			}
		}
		if best < 0 || len(devices) < atLeast {
			best = len(devices)
			devices = append(devices, nil)
		}
		devices[best] = append(devices[best], m)
	}
	return devices
}

func collide(a, b score.Manifest) bool {
	theirs := needs(b)
	return a.Metadata.Name == b.Metadata.Name || slices.ContainsFunc(needs(a), func(n string) bool { return slices.Contains(theirs, n) })
}

// needs is what only one manifest of a device can have.
func needs(m score.Manifest) (out []string) {
	for _, s := range m.Spec.Scores {
		for _, r := range s.Spec.Claims() {
			out = append(out, string(r))
		}
		switch spec := s.Spec.(type) {
		case score.Container:
			for _, p := range spec.Ports {
				out = append(out, fmt.Sprintf("port %d", p.Host))
			}
		case score.Ethernet, score.ContainerNetwork:
			out = append(out, "the addresses of documents")
		case score.Symlink, score.TimeSync:
			out = append(out, "the time zone")
		}
	}
	return out
}

// lacks finds out what the box does not have. What an owner is then told is expected; bounds that its kernel does not
// know are left out of the examples.
func (e *exampleDevice) lacks() {
	e.t.Helper()
	e.told = map[string]told{
		"wireless/workshop": {outcome: interpret.Unchanged}, // it is there, and no radio to join with: it is not in effect
		"wireless/hall":     {interpret.Waiting, interpret.CodeDependency, "workshop"},
	}
	if _, err := e.Exec(e.t.Context(), "sh", "-ec", "ip link add link eth1 name try.7 type vlan id 7; ip link delete try.7"); err != nil {
		e.told["wired/cameras"] = told{interpret.Failed, "job_failed", "VLAN"}
	}
	controllers := strings.Fields(e.sh("cat /sys/fs/cgroup/cgroup.controllers"))
	has := func(controller string) bool { return slices.Contains(controllers, controller) }
	for _, m := range e.manifests {
		for i, s := range m.Spec.Scores {
			switch spec := s.Spec.(type) {
			case score.Container:
				if spec.Limits != nil {
					l := *spec.Limits
					l.Memory, l.CPU, l.PIDs = with(has("memory"), l.Memory), with(has("cpu"), l.CPU), with(has("pids"), l.PIDs)
					spec.Limits = with(l != score.ContainerLimits{}, &l)
				}
				m.Spec.Scores[i].Spec = spec
			case score.Service:
				if spec.Limits != nil {
					l := *spec.Limits
					l.Memory, l.CPU, l.Tasks, l.IOWeight = with(has("memory"), l.Memory), with(has("cpu"), l.CPU), with(has("pids"), l.Tasks), with(has("io"), l.IOWeight)
					spec.Limits = with(l != score.Limits{}, &l)
				}
				m.Spec.Scores[i].Spec = spec
			}
		}
	}
}

// with is a value that there is, or none.
func with[T any](there bool, value T) T {
	if !there {
		var none T
		return none
	}
	return value
}

var execLine = regexp.MustCompile(`(?m)^Exec\w*=[-@:+!]*(/\S+)`)

// prepare brings what the examples expect to be there: programs, images, secrets, parts of a Pi.
func (e *exampleDevice) prepare(standin []byte) {
	e.t.Helper()
	e.PutFile("/usr/local/bin/standin", standin, 0o755)
	secrets, images, programs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range e.manifests {
		for _, s := range m.Spec.Scores {
			if u, ok := s.Spec.(score.SecretUser); ok {
				for _, name := range u.SecretNames() {
					secrets[name] = true
				}
			}
			for _, image := range score.TouchedBy(s.Spec).Images {
				images[image] = true
			}
			switch spec := s.Spec.(type) {
			case score.Container:
				if spec.Registry != nil {
					secrets[spec.Registry.Password.Secret] = true
				}
			case score.Service:
				for _, x := range execLine.FindAllStringSubmatch(spec.UnitFile, -1) {
					programs[x[1]] = true
				}
			}
		}
	}
	script := []string{
		`d=$(mktemp -d); mkdir -p $d/bin $d/etc $d/tmp $d/data; cp /bin/busybox /usr/local/bin/standin $d/bin/`,
		`for a in sh chown sleep; do ln -s busybox $d/bin/$a; done; for a in curl notes migrate; do ln -s standin $d/bin/$a; done`,
		`echo 'root:x:0:0:root:/:/bin/sh' >$d/etc/passwd`,
		`tar -C $d -cf $d.tar .; rm -r $d`,
		`import() { podman import -q --change 'CMD ["/bin/standin"]' $2 $3 $d.tar $1; }`,
		`import localhost/standin:1`,
		`sed -i 's/"plaintext":\[/&"registry.example.org",/' /etc/continuo/agent.yaml`,
		`echo ` + box.HubIP + ` registry.example.org >>/etc/hosts`,
		`rm /etc/systemd/system/apt-daily.timer`, // by which a box masks it
		`mkdir -p /srv/web /etc/systemd/system/systemd-timesyncd.service.d`,
		// It does not run in containers, and shall not set the clock of the machine around the box.
		`printf '[Unit]\nConditionVirtualization=\nConditionCapability=\n[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\n' >/etc/systemd/system/systemd-timesyncd.service.d/box.conf`,
		`for part in gpiochip0 i2c-1 video0; do mknod /dev/$part c 1 3; done`,
		`systemctl daemon-reload`,
		`systemd-run -q --unit standin-proxy /usr/local/bin/standin 8443 /run/proxy/alive`,
	}
	for _, path := range slices.Sorted(maps.Keys(programs)) {
		script = append(script, fmt.Sprintf("[ -e %[1]s ] || ln -s /usr/local/bin/standin %[1]s", path))
	}
	for _, image := range slices.Sorted(maps.Keys(images)) {
		if path, ok := strings.CutPrefix(image, "registry.example.org/"); ok { // it is fetched from there
			script = append(script, "import localhost/of:1 --change ENV=OF="+path+"; podman push -q localhost/of:1 "+box.HubName+":5000/"+path+"; podman rmi localhost/of:1")
		} else {
			script = append(script, "podman tag localhost/standin:1 "+image)
		}
	}
	env := ""
	for name := range secrets {
		env += name + "=canary-" + name + "\n"
	}
	e.PutFile("/etc/continuo/secrets.env", []byte(env), 0o600)
	e.sh(strings.Join(script, "\n"))
}

// serveRegistry has a registry answer for registry.example.org.
func serveRegistry(t *testing.T, registry string) {
	t.Helper()
	address := strings.Replace(registry, box.HubName, box.HubIP, 1)
	srv := &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", address },
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return box.HubDial(ctx, addr)
		}},
	}}
	l := box.HubListen(t, 80)
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
}
