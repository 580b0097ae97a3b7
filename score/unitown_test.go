package score_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// TestUnitsReachForTheAgent: a unit of a manifest neither takes the place of the agent's, nor stops it, whatever the way.
func TestUnitsReachForTheAgent(t *testing.T) {
	const run = "[Service]\nExecStart=/bin/x\n"
	own := []string{
		"[Install]\nAlias=continuo-agent.service\n",
		"[Install]\nAlias=a.service \"continuo-agent.service\"\n",
		"[Install]\nAlias=a.service \\\n# not a word\n  continuo-agent.service\n",
		"[Install]\n Alias = %p-agent.service\n",
		"[Install]\nAlias=%N-agent.service\n",
		"  [Install]  \r\nAlias=continuo-agent.service\r\n",
		"[Install]\nAlso=x.socket continuo-agent.service\n",
		"[Install]\nRequiredBy=continuo-agent.service\n",
		"[Unit]\nConflicts=continuo-agent.service\n",
		"[Unit]\nPropagatesStopTo='continuo-agent.service'\n",
	}
	for _, text := range own {
		s := score.Service{Unit: "continuo.service", UnitFile: run + text}
		if got := checked(s); len(got) != 1 || !strings.HasSuffix(got[0], "reaches for the agent itself") {
			t.Errorf("%q: %v", text, got)
		}
	}
	for _, unit := range []string{"continuo-agent.service", "continuo-agent.timer", "continuo-agent.socket", "continuo-agent.path", "continuo-.service"} {
		if got := checked(score.Service{Unit: unit, State: score.Stopped}); len(got) == 0 {
			t.Errorf("%s is accepted", unit)
		}
	}
	if got := checked(score.Service{Unit: "a.service", UnitFile: run + "[Unit]\n", DropIns: map[string]string{"x": "[Unit]\nConflicts=continuo-agent.service\n", "y": "[Service]\r[Install]\rAlias=continuo-agent.service\n"}}); len(got) < 2 {
		t.Errorf("drop-ins: %v", got)
	}
	for _, text := range []string{ // it may wait for the agent, and be started with it
		"[Unit]\nAfter=continuo-agent.service\n[Install]\nWantedBy=continuo-agent.service\n",
		"[Unit]\n#Conflicts=continuo-agent.service\nDescription=Conflicts=continuo-agent.service\n", "[Install]\nAlias=continuo-agent.service.service\n",
		"[Unit]\r\nDescription=x\r\n",
	} {
		if got := checked(score.Service{Unit: "a.service", UnitFile: run + text}); len(got) != 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestContainerTextStaysInItsLine: nothing that a container says becomes another line of its definition, where a line
// is a command of root.
func TestContainerTextStaysInItsLine(t *testing.T) {
	const line = "\n[Service]\nExecStartPre=/bin/x"
	for name, edit := range map[string]func(*score.Container){
		"health check":                  func(c *score.Container) { c.HealthCheck = &score.HealthCheck{Command: []string{"/c" + line}} },
		"health check with a backslash": func(c *score.Container) { c.HealthCheck = &score.HealthCheck{Command: []string{`/c\`}} },
		"volume":                        func(c *score.Container) { c.Volumes = []score.Volume{{Source: "/a" + line, Target: "/b"}} },
		"volume with a carriage return": func(c *score.Container) { c.Volumes = []score.Volume{{Source: "/a\r[Service]", Target: "/b"}} },
		"volume of an init container": func(c *score.Container) {
			c.Init = []score.InitContainer{{Name: "a", Volumes: []score.Volume{{Source: "/a\r", Target: "/b"}}}}
		},
		"volume that ends with a space":   func(c *score.Container) { c.Volumes = []score.Volume{{Source: "/a", Target: "/b "}} },
		"working directory":               func(c *score.Container) { c.WorkingDir = "/a" + line },
		"working directory and a space":   func(c *score.Container) { c.WorkingDir = "/a " },
		"directory in memory":             func(c *score.Container) { c.Tmpfs = []score.Tmpfs{{Target: "/a\r[Service]"}} },
		"secret":                          func(c *score.Container) { c.Secrets = []score.SecretFile{{Secret: "s", Target: "/a" + line}} },
		"user":                            func(c *score.Container) { c.User = "a" + line },
		"host name":                       func(c *score.Container) { c.Hostname = "a" + line },
		"network":                         func(c *score.Container) { c.Network = "a" + line },
		"image":                           func(c *score.Container) { c.Image += line },
		"label":                           func(c *score.Container) { c.Labels = map[string]string{"a": "b" + line} },
		"variable":                        func(c *score.Container) { c.Env = map[string]score.Value{"a": score.Text("b" + line)} },
		"stop signal":                     func(c *score.Container) { c.StopSignal = "INT" + line },
		"reload signal":                   func(c *score.Container) { c.ReloadSignal = "HUP" + line },
		"capability":                      func(c *score.Container) { c.Capabilities = &score.KernelCapabilities{Add: []string{"CHOWN" + line}} },
		"log":                             func(c *score.Container) { c.Log = &score.ContainerLog{Driver: score.LogNone + line} },
		"device":                          func(c *score.Container) { c.Devices = []score.Device{{Host: "/dev/a" + line, Container: "/dev/a"}} },
		"file of the generator as image":  func(c *score.Container) { c.Image = "localhost/web:1.image" },
		"file of the generator as volume": func(c *score.Container) { c.Volumes = []score.Volume{{Source: "data.volume", Target: "/data"}} },
		"network of another container":    func(c *score.Container) { c.Network = "web.container" },
	} {
		c := score.Container{Name: "web", Image: "localhost/web:1"}
		edit(&c)
		if len(checked(c)) == 0 {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestVolumesOfTheAgent: a container neither sees the agent's files, nor can it put others in their place.
func TestVolumesOfTheAgent(t *testing.T) {
	for text, ok := range map[string]bool{
		"/etc/continuo:/x:ro": false, "/proc/1/root:/x:ro": false, "/proc/self/root/etc:/x": false, "/:/x:ro": false, "/etc:/x:ro": false,
		"/usr/local/bin:/x": false, "/usr:/x": false, "/etc/systemd/system:/x": false, "/usr/lib/systemd:/x": false, "/bin:/x": false,
		"/usr/local/bin:/x:ro": true, "/proc:/x:ro": true, "/usr/share/zoneinfo:/x:ro": true, "/lib/modules:/x": true, "/srv:/x": true, "/run/dbus:/x": true,
	} {
		c := score.Container{Name: "web", Image: "localhost/web:1", Volumes: parse[score.Volume](t, text)}
		if got := checked(c); (len(got) == 0) != ok {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestPlacesOfTheAgentsUnit: nothing is put where the service manager would take it for the unit of the agent, or for a
// part of that.
func TestPlacesOfTheAgentsUnit(t *testing.T) {
	for _, p := range []string{
		"/etc/systemd/system/continuo-agent.service", "/etc/systemd/system.control/continuo-agent.service.d/50-MemoryMax.conf", "/run/systemd/transient/continuo-agent.service",
		"/run/systemd/generator.early/continuo-agent.service", "/etc/containers/systemd/continuo-agent.container", "/etc/containers/systemd/a/continuo-agent.kube",
		"/usr/share/containers/systemd/continuo-agent.container.d/x.conf", "/usr/lib/systemd/system/service.d/x.conf", "/etc/systemd/system/continuo-agent.socket",
		"/etc/systemd/system/continuo-agent.service.wants/x.service", "/etc/init.d/continuo-agent", "/etc/systemd/system/continuo-.service.d/x.conf",
	} {
		if got := checked(score.File{Path: p, Mode: 0o644}); len(got) == 0 {
			t.Errorf("%s is accepted", p)
		}
	}
	for _, p := range []string{"/etc/systemd/system/continuo-agents.service", "/etc/containers/systemd/web.container", "/srv/continuo-agent.service"} {
		if got := checked(score.File{Path: p, Mode: 0o644}); len(got) != 0 {
			t.Errorf("%s: %v", p, got)
		}
	}
	if got := checked(score.Container{Name: "web", Image: "localhost/web:1", Env: map[string]score.Value{"A": score.Text(strings.Repeat("x", 128<<10))}, Command: []string{strings.Repeat("x", 128<<10)}}); len(got) != 2 {
		t.Errorf("too long for a kernel: %d problems", len(got))
	}
}
