//go:build device

package pi

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// admin is somebody with a terminal.
type admin struct{}

func do(program string, args ...string) (string, error) {
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %q: %w: %s", program, args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func systemctl(args ...string) error {
	_, err := do("systemctl", args...)
	return err
}

const packaged = "/usr/local/lib/systemd/system/"

func (admin) Install(unit, text string) error {
	if err := os.MkdirAll(packaged, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(packaged+unit, []byte(text), 0o644); err != nil {
		return err
	}
	return systemctl("daemon-reload")
}

func (admin) Uninstall(unit string) error {
	for _, p := range []string{packaged + unit, "/etc/systemd/system/" + unit + ".d"} {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	return systemctl("daemon-reload")
}

func (admin) Override(unit, text string) error {
	dir := "/etc/systemd/system/" + unit + ".d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(dir+"/10-admin.conf", []byte(text), 0o644); err != nil {
		return err
	}
	return systemctl("daemon-reload")
}

func (admin) Mask(unit string) error          { return systemctl("mask", unit) }
func (admin) Unmask(unit string) error        { return systemctl("unmask", unit) }
func (admin) EnableRuntime(unit string) error { return systemctl("enable", "--runtime", unit) }
func (admin) Kill(unit string) error {
	return systemctl("kill", "--kill-whom=main", "--signal=KILL", unit)
}

func serviceBench(d *Device) conform.ServiceBench {
	return conform.ServiceBench{
		Services: d.Services(), Prefix: "ct-conform-", Hands: admin{}, User: "pi",
		Writes: `/bin/sh -c "echo the words of the unit; exit 3"`,
	}
}

func TestConformServices(t *testing.T) {
	conform.Services(t, func(t *testing.T) conform.ServiceBench { return serviceBench(device(t)) })
}

func TestConformHost(t *testing.T) {
	conform.Host(t, func(t *testing.T) conform.HostBench {
		return conform.HostBench{Host: device(t).Host(), Unused: "ct-conform"}
	})
}

// podmanAdmin is an admin who knows podman.
type podmanAdmin struct{ admin }

func (podmanAdmin) RunByHand(name, image string, command []string) error {
	_, err := do("podman", append([]string{"run", "-d", "--name", name, image}, command...)...)
	return err
}

func (podmanAdmin) RemoveByHand(name string) error {
	_, err := do("podman", "rm", "-f", "-t", "0", name)
	return err
}

func (podmanAdmin) Kill(name string) error {
	_, err := do("podman", "kill", "--signal", "KILL", name)
	return err
}

func (podmanAdmin) process(name, file string) ([]string, error) {
	pid, err := do("podman", "inspect", "-f", "{{.State.Pid}}", name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile("/proc/" + pid + "/" + file)
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00"), err
}

func (a podmanAdmin) Secret(name, place string) (string, error) {
	if !strings.HasPrefix(place, "/") {
		env, err := a.process(name, "environ")
		for _, e := range env {
			if v, is := strings.CutPrefix(e, place+"="); is {
				return v, nil
			}
		}
		return "", fmt.Errorf("container %s has no variable %s: %w", name, place, err)
	}
	pid, err := do("podman", "inspect", "-f", "{{.State.Pid}}", name)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile("/proc/" + pid + "/root" + place)
	return string(data), err
}

func (podmanAdmin) Reloads(name string) (int, error) {
	out, err := do("podman", "exec", name, "sh", "-c", "cat /tmp/reloads 2>/dev/null || true")
	return strings.Count(out, "hup"), err
}

func (podmanAdmin) Edit(name string) error {
	return os.WriteFile(definitionFile(name), []byte("[Container]\nImage="+busybox+"\nExec=sleep 1d\n"), 0o644)
}

func (a podmanAdmin) Environ(name string) ([]string, error)   { return a.process(name, "environ") }
func (a podmanAdmin) Arguments(name string) ([]string, error) { return a.process(name, "cmdline") }

// everyField is a config with every field that a box can hold: it has no controllers, and no limits.
func everyField() topology.ContainerConfig {
	c := allOfIt("ct-conform-fields", busybox)
	c.Stopped, c.Memory, c.CPU, c.PIDs, c.Network = false, 0, 0, 0, "none"
	c.Command, c.Entrypoint = []string{"runs", "", "a b", "$HOME %n"}, []string{"/bin/sh", "-c", sleepCommand[2], "it's \"so\" $HOME %n", ""}
	c.User, c.WorkingDir, c.Volumes, c.Restart = "1000:1000", "/tmp", []string{"ct-conform-volume:/srv"}, "always"
	for i := range c.Secrets {
		c.Secrets[i].Value = topology.SecretValue("value")
	}
	c.Init = c.Init[:1]
	c.Init[0].Entrypoint, c.Init[0].Volumes = []string{"/bin/sh", "-c", `test "$#" = 3 && echo "$@" >/srv/done`}, c.Volumes
	c.Init[0].Command, c.Init[0].Secrets = []string{"", ";", "$x %n 'q'", `\`}, c.Secrets[:1]
	return c
}

func containerBench(d *Device, elsewhere string) conform.ContainerBench {
	return conform.ContainerBench{
		Containers: d.Containers(), Prefix: "ct-conform-",
		Runs: topology.ContainerConfig{Image: busybox, Command: []string{"sh", "-c", sleepCommand[2], "runs"}},
		Hears: topology.ContainerConfig{Image: busybox, Command: []string{"sh", "-c",
			"trap 'exit 0' TERM; trap 'echo hup >>/tmp/reloads' HUP; while :; do sleep 0.1; done"}},
		Fields:    everyField(),
		Succeeds:  topology.InitContainer{Image: busybox, Command: []string{"true"}, Timeout: time.Minute},
		Fails:     topology.InitContainer{Image: busybox, Entrypoint: []string{"sh", "-c"}, Command: []string{"exit 4"}, Timeout: time.Minute},
		Hangs:     topology.InitContainer{Image: busybox, Command: []string{"sleep", "1d"}, Timeout: time.Minute},
		Ends:      topology.ContainerConfig{Image: busybox, Command: []string{"sh", "-c", "exit 3"}},
		Elsewhere: elsewhere, Nowhere: "127.0.0.1:1/nowhere:1",
		Hands: podmanAdmin{},
	}
}

func TestConformContainers(t *testing.T) {
	box(t)
	r, addr := serveRegistry(t)
	r.put(t, "conform:1", layerOfBusybox(t))
	elsewhere := addr + "/conform:1"
	t.Cleanup(func() { _, _ = do("podman", "rmi", "-f", elsewhere) })
	conform.Containers(t, func(t *testing.T) conform.ContainerBench { return containerBench(device(t), elsewhere) })
}

func TestConformAllEvents(t *testing.T) {
	box(t)
	conform.Events(t, func(t *testing.T) conform.EventBench {
		_, files := fileBench(t)
		d := device(t)
		s, c := serviceBench(d), containerBench(d, "")
		return conform.EventBench{FileBench: files, Events: d.Events(), Services: &s, Containers: &c}
	})
}

func TestConformToolsOfTheDevice(t *testing.T) {
	conform.Tools(t, func(t *testing.T) conform.ToolBench {
		dev, err := Open(t.Context(), Options{Version: "1.2.3"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dev.Close() })
		return conform.ToolBench{Tools: dev.Tools(), Present: "podman", Missing: "no-such-program", Shadow: func() (string, error) {
			const path = "/usr/local/bin/podman"
			t.Cleanup(func() { _ = os.Remove(path) })
			return path, os.WriteFile(path, []byte("#!/no/such/interpreter\n"), 0o755)
		}}
	})
}
