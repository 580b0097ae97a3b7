package memory_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func TestConforms(t *testing.T) { // H74
	t.Run("Files", func(t *testing.T) {
		conform.Files(t, func(*testing.T) conform.FileBench { return fileBench(memory.New()) })
	})
	t.Run("Snapshots", func(t *testing.T) {
		conform.Snapshots(t, func(*testing.T) conform.SnapshotBench {
			d := memory.New()
			return conform.SnapshotBench{FileBench: fileBench(d), Snapshots: d.Snapshots()}
		})
	})
	t.Run("Services", func(t *testing.T) {
		conform.Services(t, func(*testing.T) conform.ServiceBench { return serviceBench(memory.New()) })
	})
	t.Run("Containers", func(t *testing.T) {
		conform.Containers(t, func(*testing.T) conform.ContainerBench { return containerBench(memory.New()) })
	})
	t.Run("Time", func(t *testing.T) {
		conform.Time(t, func(*testing.T) conform.TimeBench {
			d := memory.New()
			return conform.TimeBench{Time: d.Time(), Events: d.Events(), Hands: timeHands{d}}
		})
	})
	t.Run("Firewall", func(t *testing.T) {
		conform.Firewall(t, func(*testing.T) conform.FirewallBench {
			d := memory.New()
			return conform.FirewallBench{Firewall: d.Firewall(), Recoverer: d, Events: d.Events(), Hands: firewallHands{d}}
		})
	})
	t.Run("Host", func(t *testing.T) {
		conform.Host(t, func(*testing.T) conform.HostBench {
			return conform.HostBench{Host: memory.New().Host(), Unused: "unused"}
		})
	})
	t.Run("Jobs", func(t *testing.T) {
		conform.Jobs(t, func(*testing.T) conform.JobBench {
			d := memory.New()
			d.Program("/bin/three", memory.Program{Exits: true, Status: 3})
			d.Program("/bin/long", memory.Program{})
			return conform.JobBench{
				Jobs: d.Jobs(), Name: "job", Well: []string{"/bin/true"}, Fails: []string{"/bin/three"}, Long: []string{"/bin/long"},
				Foreign: func(name string) (func() error, error) {
					d.Install(name+".service", "[Service]\nExecStart=/bin/true\n")
					return func() error { return nil }, nil
				},
				Stop: func(name string) error { d.InterruptJob(name); return nil },
			}
		})
	})
	t.Run("Tools", func(t *testing.T) {
		conform.Tools(t, func(*testing.T) conform.ToolBench {
			d := memory.New()
			const mine = "/usr/local/bin/podman"
			return conform.ToolBench{Tools: d.Tools(), Present: "podman", Missing: "nothing", Shadow: func() (string, error) {
				d.SetTool("podman", topology.ToolCopy{Path: mine, Why: "exit status 1"}, topology.ToolCopy{Path: "/usr/bin/podman", Version: "5.4.2", Works: true})
				return mine, nil
			}}
		})
	})
	t.Run("Secrets", func(t *testing.T) {
		conform.Secrets(t, func(*testing.T) conform.SecretBench {
			d := memory.New()
			return conform.SecretBench{Secrets: d.Secrets(), Hands: hands{d}}
		})
	})
	t.Run("Blobs", func(t *testing.T) {
		conform.Blobs(t, func(*testing.T) conform.BlobBench {
			d := memory.New()
			return conform.BlobBench{Blobs: d.Blobs(), Hands: hands{d}}
		})
	})
	t.Run("Events", func(t *testing.T) {
		conform.Events(t, func(t *testing.T) conform.EventBench {
			d := memory.New()
			s, c := serviceBench(d), containerBench(d)
			return conform.EventBench{FileBench: fileBench(d), Events: d.Events(), Services: &s, Containers: &c}
		})
	})
}

func fileBench(d *memory.Device) conform.FileBench {
	d.Mkdir("/srv/conform")
	return conform.FileBench{
		Files: d.Files(), Dir: "/srv/conform", Hands: hands{d},
		Owner: "nobody", Group: "nogroup", UID: 65534, GID: 65534,
	}
}

func serviceBench(d *memory.Device) conform.ServiceBench {
	d.SetLingering("pi", true)
	d.Program("/usr/bin/writes", memory.Program{Exits: true, Status: 3, Output: "the words of the unit\n"})
	return conform.ServiceBench{Services: d.Services(), Prefix: "conform-", Writes: "/usr/bin/writes", User: "pi", Hands: hands{d}}
}

func containerBench(d *memory.Device) conform.ContainerBench {
	d.LoadImage("example.org/runs:1", memory.Image{})
	d.LoadImage("example.org/ends:1", memory.Image{Program: memory.Program{Exits: true, Status: 3}})
	d.LoadImage("example.org/fails:1", memory.Image{Init: memory.Step{Status: 4}})
	d.LoadImage("example.org/hangs:1", memory.Image{Init: memory.Step{Hangs: true}})
	d.Unpublish("example.org/nowhere:1")
	return conform.ContainerBench{
		Containers: d.Containers(), Prefix: "conform-", Hands: hands{d},
		Runs:      topology.ContainerConfig{Image: "example.org/runs:1", Command: []string{"sleep", "86400"}},
		Ends:      topology.ContainerConfig{Image: "example.org/ends:1"},
		Hears:     topology.ContainerConfig{Image: "example.org/runs:1"},
		Fields:    everyField(),
		Succeeds:  topology.InitContainer{Image: "example.org/runs:1", Timeout: time.Minute},
		Fails:     topology.InitContainer{Image: "example.org/fails:1", Timeout: time.Minute},
		Hangs:     topology.InitContainer{Image: "example.org/hangs:1", Timeout: time.Minute},
		Elsewhere: "example.org/elsewhere:1", Nowhere: "example.org/nowhere:1",
	}
}

// everyField has a value in every field, whatever it is: the device in memory takes all.
func everyField() (c topology.ContainerConfig) {
	c = topology.ContainerConfig{
		Entrypoint: []string{"/e"}, Command: []string{"x"}, User: "1:1", WorkingDir: "/srv", Hostname: "web", Env: []string{"A=1"},
		Secrets: []topology.ContainerSecret{{Name: "s", Fingerprint: "f", Env: "S", Value: topology.SecretValue("v")}},
		Volumes: []string{"/srv:/srv"}, Tmpfs: []topology.ContainerTmpfs{{Target: "/t", Size: 1}}, Devices: []string{"/dev/null"},
		CapAdd: []string{"KILL"}, CapDrop: []string{"ALL"}, ReadOnly: true, Network: "none", Ports: []string{"1:1"},
		Memory: 1 << 20, CPU: 50, PIDs: 9, HealthCheck: &topology.ContainerHealthCheck{Command: []string{"x"}, Interval: 1, Timeout: 1, StartPeriod: 1, Retries: 1},
		LogDriver: "k8s-file", LogSize: 1, Labels: []string{"a=b"}, StopSignal: "INT", StopTimeout: 1,
		Init: []topology.InitContainer{{Name: "i", Image: "example.org/runs:1", Timeout: 1}}, Restart: "always", ReloadSignal: "HUP",
	}
	c.Image = "example.org/runs:1"
	return c
}

// hands are all hands on a device in memory.
type hands struct{ d *memory.Device }

func (h hands) Put(p, content string, mode uint32) error {
	h.d.Put(p, content)
	h.d.Chmod(p, mode)
	return nil
}

func (h hands) Read(p string) (string, error) {
	s, ok := h.d.Read(p)
	if !ok {
		return "", fmt.Errorf("no file %s", p)
	}
	return s, nil
}

func (h hands) List(dir string) (names []string, err error) {
	for _, p := range h.d.List(dir) {
		if path.Dir(p) == dir {
			names = append(names, path.Base(p))
		}
	}
	return names, nil
}

func (h hands) Identity(p string) (string, error)  { return h.d.Identity(p), nil }
func (h hands) Symlink(target, p string) error     { h.d.Symlink(target, p); return nil }
func (h hands) Directory(p string) error           { h.d.Mkdir(p); return nil }
func (h hands) Pipe(p string) error                { h.d.Special(p); return nil }
func (h hands) Link(p, another string) error       { h.d.Link(p, another); return nil }
func (h hands) Immutable(p string, on bool) error  { h.d.SetImmutable(p, on); return nil }
func (h hands) MountPoint(p string, on bool) error { h.d.SetMountPoint(p, on); return nil }
func (h hands) SetACL(p string) error              { h.d.SetAttr(p, "acl", "u:pi:r"); return nil }
func (h hands) ACL(p string) (string, error)       { return h.d.Attr(p, "acl"), nil }
func (h hands) Run(p string) (func(), error)       { h.d.Put(p, "old"); return func() {}, nil }
func (h hands) Install(unit, text string) error    { h.d.Install(unit, text); return nil }
func (h hands) Mask(unit string) error             { h.d.Mask(unit); return nil }
func (h hands) Unmask(unit string) error           { h.d.Unmask(unit); return nil }
func (h hands) EnableRuntime(unit string) error    { h.d.Enable(unit, true); return nil }
func (h hands) RemoveByHand(name string) error     { h.d.RemoveByHand(name); return nil }
func (h hands) Edit(name string) error {
	h.d.Put("/etc/containers/systemd/"+name+".container", "[Container]\nImage=other\n")
	return nil
}

func (h hands) Secret(name, place string) (string, error) {
	if v, ok := h.d.SecretIn(name, place); ok {
		return v, nil
	}
	return "", fmt.Errorf("container %s has no secret at %s", name, place)
}

func (h hands) Reloads(name string) (int, error)        { return h.d.Reloads(name), nil }
func (h hands) Environ(name string) ([]string, error)   { return h.d.Config(name).Env, nil }
func (h hands) Arguments(name string) ([]string, error) { return h.d.Config(name).Command, nil }
func (h hands) SetSecret(name, value string) error      { h.d.SetSecret(name, value); return nil }
func (h hands) DropSecret(name string) error            { h.d.DropSecret(name); return nil }
func (h hands) ExposeSecret(name string) error          { h.d.ExposeSecret(name); return nil }
func (h hands) Offer(content []byte) error              { h.d.OfferBlob(string(content)); return nil }
func (h hands) Withdraw(sha256 string) error            { h.d.WithdrawBlob(sha256); return nil }
func (h hands) Damage(sha256 string) error              { h.d.DamageBlob(sha256); return nil }

func (h hands) Limited(limit string) (string, func(), error) {
	h.d.Put("/mnt/there", "old")
	h.d.SetFS("/mnt", memory.FS{Full: limit == "full", ReadOnly: limit == "read-only", NoOwners: limit == "no-owners"})
	return "/mnt", func() { h.d.SetFS("/mnt", memory.FS{}) }, nil
}

func (h hands) Uninstall(unit string) error {
	for _, p := range h.d.List("/usr/lib/systemd/system") {
		if strings.Contains(p, "/"+unit) {
			h.d.Delete(p)
		}
	}
	return nil
}

func (h hands) Override(unit, text string) error {
	h.d.Put("/usr/lib/systemd/system/"+unit+".d/10-conform.conf", text)
	return nil
}

// Kill kills the process of a unit, or of a container.
func (h hands) Kill(name string) error {
	if !strings.Contains(name, ".") {
		name += ".service"
	}
	h.d.Kill(name, 137)
	return nil
}

func (h hands) RunByHand(name, image string, _ []string) error {
	h.d.RunByHand(name, image)
	return nil
}

func TestFaultsAndRecorder(t *testing.T) {
	d := memory.New()
	r := d.Record()
	w := topology.FileWrite{Path: "/etc/f", Mode: 0o644}
	d.FailOnce(memory.OpWriteFile, "file:/etc/f", topology.Faultf(topology.CodeIO, "the card is gone"))
	for i, want := range []topology.Code{topology.CodeIO, ""} {
		err := d.Files().WriteFile(t.Context(), w)
		if got := code(err); got != want {
			t.Errorf("write %d: got %q, want %q", i, got, want)
		}
	}
	d.Unavailable(memory.Containers, "no socket")
	if _, err := d.Containers().Container(t.Context(), "web"); code(err) != topology.CodeUnavailable {
		t.Errorf("got %v from a dead capability", err)
	}
	d.Heal()
	if _, err := d.Containers().Container(t.Context(), "web"); err != nil {
		t.Error(err)
	}
	write := memory.Call{Op: memory.OpWriteFile, Resource: "file:/etc/f", Mutates: true}
	if got := r.Mutations(); !slices.Equal(got, []memory.Call{write, write}) {
		t.Errorf("got %v", got)
	}
	if got := len(r.Calls()); got != 4 {
		t.Errorf("got %d calls, want 4", got)
	}
}

func code(err error) topology.Code {
	if err == nil {
		return ""
	}
	return topology.FaultOf(err).Code
}

// TestReboot shows what a boot keeps: what is enabled runs, what was enabled until now does not.
func TestReboot(t *testing.T) { // cases 59, 87
	d := memory.New()
	const text = "[Service]\nExecStart=/bin/sleep 9\n[Install]\nWantedBy=multi-user.target\n"
	for _, u := range []string{"on.service", "until.service", "off.service"} {
		d.Install(u, text)
		d.StartUnit(u)
	}
	d.Enable("on.service", false)
	d.Enable("until.service", true)
	d.LoadImage("example.org/web:1", memory.Image{})
	if err := d.Containers().Run(t.Context(), topology.ContainerConfig{Name: "web", Image: "example.org/web:1", Mark: "m/web"}); err != nil {
		t.Fatal(err)
	}
	d.Reboot()
	for unit, want := range map[string]string{"on.service": "active", "until.service": "inactive", "off.service": "inactive", "web.service": "active"} {
		st, err := d.Services().Service(t.Context(), unit)
		if err != nil || st.Active != want {
			t.Errorf("%s is %s, %v; want %s", unit, st.Active, err, want)
		}
	}
}
