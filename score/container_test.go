package score_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// TestContainerProblems is the table of what is said about containers beyond their names, images, ports and volumes.
func TestContainerProblems(t *testing.T) { // cases 72, 74, 87, 89, 92
	seconds := func(n int) score.Duration { return score.Duration(n) * score.Duration(time.Second) }
	const target = `must be an absolute, clean path in the container, without ':', ',', '"' and '\'`
	init := func(in ...score.InitContainer) func(*score.Container) {
		return func(c *score.Container) { c.Init = in }
	}
	step := score.InitContainer{Name: "migrate", Command: []string{"up"}, Timeout: seconds(60)}
	tests := []struct {
		name string
		edit func(*score.Container)
		want []string
	}{
		{"all of it", func(c *score.Container) {
			c.Entrypoint, c.Command, c.User, c.WorkingDir, c.Hostname = []string{"/e", ""}, []string{"x\ny"}, "app:1000", "/srv", "web-1"
			c.Env = map[string]score.Value{"A": score.Text("x"), "B": score.FromSecret("db-password")}
			c.Secrets = []score.SecretFile{{Secret: "tls", Target: "/run/secrets/tls", Mode: 0o440, UID: 1, GID: 2}}
			c.Tmpfs = []score.Tmpfs{{Target: "/tmp/x", Size: 1 << 20}, {Target: "/cache"}}
			c.Devices = []score.Device{{Host: "/dev/gpiochip0", Container: "/dev/gpiochip0", Rights: "rw"}}
			c.Capabilities = &score.KernelCapabilities{Add: []string{"NET_ADMIN"}, Drop: []string{"ALL"}}
			c.Network, c.ReadOnly = "backend", true
			c.Limits = &score.ContainerLimits{Memory: 6 << 20, CPU: 50, PIDs: 8}
			c.HealthCheck = &score.HealthCheck{Command: []string{"/check", "a b"}, Interval: seconds(10), Timeout: seconds(1), Retries: 2, StartPeriod: seconds(5)}
			c.Log = &score.ContainerLog{Driver: score.LogFile, MaxSize: 64 << 10}
			c.Labels = map[string]string{"org.example/role": "web front"}
			c.StopSignal, c.StopTimeout, c.ReloadOn, c.ReloadSignal = "INT", seconds(30), []score.ID{"conf"}, "USR1"
			c.Init = []score.InitContainer{step}
		}, nil},
		{"stopped", func(c *score.Container) { c.State = score.Stopped }, nil},
		{"state", func(c *score.Container) { c.State = "runing" }, []string{`/state: unknown state "runing", did you mean "running"?`}},
		{"restarts while stopped", func(c *score.Container) { c.State, c.RestartOn = score.Stopped, []score.ID{"a"} }, []string{`/restartOn: restartOn goes with state running`}},
		{"reloads while stopped", func(c *score.Container) { c.State, c.ReloadOn = score.Stopped, []score.ID{"a"} }, []string{`/reloadOn: reloadOn goes with state running`}},
		{"NUL in the entrypoint", func(c *score.Container) { c.Entrypoint = []string{"a\x00"} }, []string{`/entrypoint/0: argument has a NUL byte`}},
		{"very many arguments", func(c *score.Container) { c.Command = make([]string, 1001) }, []string{`/command: 1001 arguments are more than 1000`}},
		{"user", func(c *score.Container) { c.User = "a b\n" }, []string{`/user: user "a b\n" must be a name or a number, with a group behind ':' if there is one, such as 1000:1000`}},
		{"working directory", func(c *score.Container) { c.WorkingDir = "srv/" }, []string{`/workingDir: workingDir "srv/" must be an absolute, clean path in the container, without '"' and '\\'`}},
		{"hostname", func(c *score.Container) { c.Hostname = "a_b" }, []string{`/hostname: hostname "a_b" must be lower-case letters, digits and '-', at most 63`}},
		{"port on the network of the device (74)", func(c *score.Container) {
			c.Network, c.Ports = "host", []score.Port{{Host: 9000, Container: 9000}}
		},
			[]string{`/ports: no port can be published on network host: with host, the ports of the program are those of the device already; with none, it has none`}},
		{"port without a network", func(c *score.Container) { c.Network, c.Ports = "none", []score.Port{{Host: 1, Container: 1}} },
			[]string{`/ports: no port can be published on network none: with host, the ports of the program are those of the device already; with none, it has none`}},
		{"network", func(c *score.Container) { c.Network = "container:db" }, []string{`/network: network "container:db" must be bridge, host, none, or the name of a network of containers`}},
		{"network that the runtime takes for another", func(c *score.Container) { c.Network = "pasta" }, []string{`/network: network "pasta" must be bridge, host, none, or the name of a network of containers`}},
		{"word of the runtime", func(c *score.Container) { c.HealthCheck = &score.HealthCheck{Command: []string{"none", "x"}} },
			[]string{`/healthCheck/command: the runtime takes "none" for a word of its own: give the path of the program`}},
		{"secret in a variable", func(c *score.Container) { c.Env = map[string]score.Value{"A": score.FromSecret("a/b")} },
			[]string{`/env/A/secret: it is not the name of a secret of the device: letters, digits, '_', '.' and '-', at most 128; its value has no place here`}},
		{"text and secret", func(c *score.Container) { c.Env = map[string]score.Value{"A": {Text: "x", Secret: "y"}} },
			[]string{`/env/A: the value of A is either text or a secret`}},
		{"secret at a place of the agent", func(c *score.Container) {
			c.Secrets = []score.SecretFile{{Secret: "a", Target: "/etc/continuo/a", Mode: 0o4600}}
		},
			[]string{`/secrets/0/target: /etc/continuo/a belongs to the agent itself`, `/secrets/0/mode: mode 4600 has more than permission bits`}},
		{"secret that the program cannot read", func(c *score.Container) {
			c.User = "1000:1000"
			c.Secrets = []score.SecretFile{{Secret: "a", Target: "/a"}, {Secret: "a", Target: "/b", UID: 1000}, {Secret: "a", Target: "/c", GID: 1000, Mode: 0o440}, {Secret: "a", Target: "/d", Mode: 0o444}}
		}, []string{`warning /secrets/0: the program runs as 1000:1000, and the file is for 0:0 with mode 0400: it cannot read it`}},
		{"target of a secret", func(c *score.Container) { c.Secrets = []score.SecretFile{{Secret: "a", Target: "/a,b"}} }, []string{`/secrets/0/target: target "/a,b" ` + target}},
		{"one target twice", func(c *score.Container) {
			c.Volumes = []score.Volume{{Source: "/srv", Target: "/data"}}
			c.Secrets = []score.SecretFile{{Secret: "a", Target: "/data"}, {Secret: "a", Target: "/x"}}
			c.Tmpfs = []score.Tmpfs{{Target: "/x"}}
		}, []string{`/secrets/0/target: volume 1 has the target /data too`, `/tmpfs/0/target: secret 2 has the target /x too`}},
		{"tiny tmpfs", func(c *score.Container) { c.Tmpfs = []score.Tmpfs{{Target: "/x:y", Size: 1024}} },
			[]string{`/tmpfs/0/target: target "/x:y" ` + target, `/tmpfs/0/size: size 1Ki must be 4Ki at least`}},
		{"absent", func(c *score.Container) { c.State = "absent" }, []string{"/state: a container is not made absent by its state: write decommission: true beside its spec"}},
		{"volume that ends with a backslash", func(c *score.Container) { c.Volumes = []score.Volume{{Source: `/srv\`, Target: "/d"}} },
			[]string{`/volumes/0: volume "/srv\\:/d" has a path that ends with a backslash, which the definition of a container cannot hold`}},
		{"device elsewhere", func(c *score.Container) { c.Devices = []score.Device{{Host: "/etc/shadow", Container: "/dev/../etc"}} },
			[]string{`/devices/0: device "/etc/shadow" must be a clean path below /dev, such as /dev/gpiochip0`, `/devices/0: device "/dev/../etc" must be a clean path below /dev, such as /dev/gpiochip0`}},
		{"device twice", func(c *score.Container) {
			c.Devices = []score.Device{{Host: "/dev/video0", Container: "/dev/video0"}, {Host: "/dev/video1", Container: "/dev/video0", Rights: "x"}}
		},
			[]string{`/devices/1: rights "x" of a device are some of r, w and m`, `/devices/1: device 1 has the target /dev/video0 too`}},
		{"capabilities", func(c *score.Container) {
			c.Capabilities = &score.KernelCapabilities{Add: []string{"CAP_NET_ADMIN", "ALL", "KILL"}, Drop: []string{"KILL", "KILL"}}
		}, []string{
			`/capabilities/add/0: unknown capability "CAP_NET_ADMIN", did you mean "NET_ADMIN"?`,
			`/capabilities/drop/1: KILL is given twice`,
			`/capabilities/add: a container with all capabilities is root on the device: name those that it needs`, `/capabilities/add/2: KILL is in drop, too`,
		}},
		{"empty parts", func(c *score.Container) {
			c.Capabilities, c.Limits = &score.KernelCapabilities{}, &score.ContainerLimits{}
		}, []string{
			`/capabilities: capabilities says nothing: give add or drop, or leave it out`, `/limits: limits says nothing: give memory, cpu or pids, or leave it out`,
		}},
		{"limits that nothing fits in", func(c *score.Container) { c.Limits = &score.ContainerLimits{Memory: 1 << 20, PIDs: 1} },
			[]string{`/limits/memory: memory 1Mi must be 6Mi at least`, `/limits/pids: pids 1 must be from 8 to 4194304`}},
		{"log driver", func(c *score.Container) { c.Log = &score.ContainerLog{Driver: "journal"} }, []string{`/log/driver: unknown driver "journal", did you mean "journald"?`}},
		{"size of the journal", func(c *score.Container) { c.Log = &score.ContainerLog{Driver: score.LogJournal, MaxSize: 1 << 20} },
			[]string{`/log/maxSize: maxSize goes with driver k8s-file: the journal has limits of its own, for the whole device (SystemMaxUse in journald.conf)`}},
		{"size of the file", func(c *score.Container) { c.Log = &score.ContainerLog{Driver: score.LogFile, MaxSize: 1 << 10} }, []string{`/log/maxSize: maxSize 1Ki must be 64Ki at least`}},
		{"check of the image", func(c *score.Container) { c.HealthCheck = &score.HealthCheck{} }, nil},
		{"pace of the check of the image", func(c *score.Container) { c.HealthCheck = &score.HealthCheck{Retries: 2} },
			[]string{`/healthCheck: interval, timeout, retries and startPeriod go with a command: the check of the image has its own`}},
		{"health check", func(c *score.Container) {
			c.HealthCheck = &score.HealthCheck{Command: []string{"curl -f x"}, Interval: 1, Timeout: seconds(4000), Retries: 101}
		}, []string{
			`/healthCheck/command: a command of one word cannot have a space, a quote, a backslash or a control character in it: the runtime would take it apart`,
			`/healthCheck/interval: interval 1ns must be from 1s to 24h, in whole seconds`, `/healthCheck/timeout: timeout 1h6m40s must be from 1s to 1h, in whole seconds`, `/healthCheck/interval: interval 1ns is too short: the service manager, which starts each run, takes more than five in ten seconds for a loop and stops them; 3s is the least`,
			`/healthCheck/retries: retries 101 must be from 1 to 100`,
		}},
		{"labels", func(c *score.Container) {
			c.Labels = map[string]string{"a b": "", "continuo.owner": "me", "ok": "x\ny"}
		}, []string{
			`/labels/a b: label "a b" must be letters, digits, '.', '_', '-' and '/'`, `/labels/continuo.owner: label continuo.owner is not yours: the agent and podman keep their books in it`,
			`/labels/ok: the value of label ok has a line break or a NUL byte`,
		}},
		{"signals", func(c *score.Container) { c.StopSignal, c.ReloadSignal = "SIGTERM", "KILL" },
			[]string{`/stopSignal: unknown signal "SIGTERM", did you mean "TERM"?`, `/reloadSignal: unknown signal "KILL"`}},
		{"time to stop", func(c *score.Container) { c.StopTimeout = seconds(601) }, []string{`/stopTimeout: stopTimeout 10m1s must be from 1s to 10m, in whole seconds`}},
		{"init container", init(step, score.InitContainer{Name: "migrate", Image: "nginx", User: "-", Volumes: []score.Volume{{Source: "x", Target: "y"}}, Timeout: 1}), []string{
			`/init/1/image: image "nginx" must be a full reference with its registry, such as docker.io/library/nginx:1.27`,
			`/init/1/user: user "-" must be a name or a number, with a group behind ':' if there is one, such as 1000:1000`,
			`/init/1/volumes/0: target "y" must be an absolute, clean path in the container`,
			`/init/1/timeout: timeout 1ns must be from 1s to 1h, in whole seconds`, `/init/1/name: init container 1 has the name migrate too`,
		}},
		{"name of an init container", init(score.InitContainer{Name: "A"}), []string{`/init/0/name: name "A" must be lower-case letters, digits and '-', at most 40`}},
		{"very many init containers", func(c *score.Container) {
			for i := range 21 {
				c.Init = append(c.Init, score.InitContainer{Name: string(rune('a' + i))})
			}
		}, []string{`/init: 21 init containers are more than 20`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := score.Container{Name: "web", Image: "a.b/c:1"}
			tt.edit(&c)
			if got := checked(c); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

func TestDeviceText(t *testing.T) {
	for in, want := range map[string]string{
		"/dev/gpiochip0": "/dev/gpiochip0", "/dev/gpiochip0:/dev/gpiochip0:rwm": "/dev/gpiochip0", "/dev/video2:/dev/video0": "/dev/video2:/dev/video0",
		"/dev/a:rw": "/dev/a:rw", "/dev/a:/dev/b:r": "/dev/a:/dev/b:r", "/dev/a:": "", "/dev/a:wr": "", "/etc/x": "", "/dev/a b": "", "/dev/a:/etc/b": "", "": "",
	} {
		var d score.Device
		err := d.UnmarshalText([]byte(in))
		if (err == nil) != (want != "") || err == nil && d.String() != want {
			t.Errorf("%q became %q, %v; want %q", in, d, err, want)
		}
	}
}

func TestValueText(t *testing.T) {
	for in, want := range map[string]string{
		`"UTC"`: `"UTC"`, `""`: `""`, `{"secret":"a"}`: `{"secret":"a"}`,
		`1`: "", `true`: "", `null`: "", `[]`: "", `{}`: "", `{"secret":""}`: "", `{"secret":1}`: "", `{"text":"a"}`: "", `{"secret":"a","x":1}`: "",
	} {
		var v score.Value
		err := score.Decode([]byte(in), &v)
		if (err == nil) != (want != "") {
			t.Errorf("%s is read as %+v, %v", in, v, err)
		}
		if err != nil {
			continue
		}
		if b, err := score.Encode(v); err != nil || string(b) != want {
			t.Errorf("%s is written as %s, %v", in, b, err)
		}
	}
}

// Secrets are listed each once, wherever they are named; claims have the containers of all steps.
func TestContainerNames(t *testing.T) {
	c := score.Container{
		Name: "web", Env: map[string]score.Value{"A": score.FromSecret("b"), "B": score.Text("x")}, Secrets: []score.SecretFile{{Secret: "a"}, {Secret: "b"}},
		Init:     []score.InitContainer{{Name: "one", Env: map[string]score.Value{"A": score.FromSecret("c")}}},
		Registry: &score.Registry{Username: "me", Password: score.SecretRef{Secret: "d"}},
	}
	if got := c.SecretNames(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("secrets are %q", got)
	}
	if got := c.Claims(); !slices.Contains(got, "container:web-init-one") {
		t.Errorf("claims are %q", got)
	}
}
