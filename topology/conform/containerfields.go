package conform

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// secret is a secret with a value, and a fingerprint that is as good as any.
func secret(name, value string) topology.ContainerSecret {
	return topology.ContainerSecret{Name: name, Fingerprint: "print-of-" + value, Value: topology.SecretValue(value)}
}

// without is c as it can be read back: no value of a secret, and nothing of what Run replaced.
func without(c topology.ContainerConfig) topology.ContainerConfig {
	strip := func(in []topology.ContainerSecret) (out []topology.ContainerSecret) {
		for _, s := range in {
			s.Value = nil
			out = append(out, s)
		}
		return out
	}
	c.Secrets, c.Replaces = strip(c.Secrets), ""
	var steps []topology.InitContainer
	for _, i := range c.Init {
		i.Secrets = strip(i.Secrets)
		steps = append(steps, i)
	}
	c.Init = steps
	return c
}

func (b ContainerBench) step(c topology.ContainerConfig, from topology.InitContainer, name string) topology.InitContainer {
	from.Name = c.Name + "-init-" + name
	return from
}

func (b ContainerBench) sees(t *testing.T, name, place, want string) {
	t.Helper()
	got, err := b.Hands.Secret(name, place)
	hands(t, err)
	equal(t, "the secret at "+place, got, want)
}

// containerFieldTests are about what a container can be asked for beside what runs.
var containerFieldTests = []test[ContainerBench]{
	{"stopped (87)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "stopped")
		c.Stopped = true
		for range 2 {
			ok(t, b.Containers.Run(t.Context(), c))
			st := b.state(t, c.Name)
			equal(t, "definition", st.Definition.Type, topology.Regular)
			equal(t, "unit", st.Unit.Load+" "+st.Unit.Active, "loaded inactive")
			equal(t, "spec digest", st.SpecDigest, c.SpecDigest)
			equal(t, "mark", st.Mark, c.Mark)
			made(t, st, c)
			if st.State == "running" || st.ID != "" {
				t.Errorf("a container that is stopped is %+v", st)
			}
		}
		c.Stopped, c.SpecDigest = false, "runs"
		made(t, b.run(t, c), c)
		c.Stopped, c.SpecDigest = true, "stopped-again"
		ok(t, b.Containers.Run(t.Context(), c))
		st := b.state(t, c.Name)
		equal(t, "unit", st.Unit.Load+" "+st.Unit.Active, "loaded inactive")
		made(t, st, c)
		// Nothing is needed to stop it, neither an image nor a secret.
		c.Image, c.SpecDigest = b.Nowhere, "nowhere"
		c.Secrets = []topology.ContainerSecret{{Name: "lost", Env: "A"}}
		ok(t, b.Containers.Run(t.Context(), c))
		made(t, b.state(t, c.Name), c)
	}},
	{"every field comes back, and nothing departs (69, 72, 75, X35)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Fields, "fields")
		first := b.run(t, c)
		made(t, first, without(c))
		for range 100 {
			st := b.state(t, c.Name)
			if st.ID != first.ID || len(st.Departs) > 0 || st.SpecDigest != c.SpecDigest {
				t.Fatalf("it became %+v", st)
			}
		}
	}},
	{"secrets (90)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "secrets")
		variable, file := secret("password", `one $x %n 'q' \`), secret("tls.key", "two\nlines\n")
		variable.Env = "PASSWORD"
		file.Target, file.Mode = "/run/secrets/key", 0o400
		c.Secrets = []topology.ContainerSecret{variable, file}
		first := b.run(t, c)
		made(t, first, without(c))
		b.sees(t, c.Name, variable.Env, string(variable.Value))
		b.sees(t, c.Name, file.Target, string(file.Value))

		// One that was rotated is another config, and the container is another.
		rotated := secret("password", "rotated")
		rotated.Env = variable.Env
		c.Secrets, c.SpecDigest = []topology.ContainerSecret{rotated, file}, "rotated"
		second := b.run(t, c)
		made(t, second, without(c))
		b.sees(t, c.Name, variable.Env, "rotated")
		if second.ID == first.ID {
			t.Error("a container with a rotated secret has the same id")
		}
		// It has its secrets also after a start that nobody of ours asked for.
		ok(t, b.Containers.Restart(t.Context(), c.Name))
		b.sees(t, c.Name, variable.Env, "rotated")

		c.Secrets = []topology.ContainerSecret{{Name: "empty", Fingerprint: "0", Env: "A"}}
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeSecret)
		equal(t, "state of what runs", b.state(t, c.Name).State, "running")
	}},
	{"init containers (X34)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "init")
		password := secret("password", "for the step")
		password.Env = "PASSWORD"
		first := b.step(c, b.Succeeds, "one")
		first.Env, first.Secrets = []string{"A=b c"}, []topology.ContainerSecret{password}
		c.Init = []topology.InitContainer{first, b.step(c, b.Succeeds, "two")}
		st := b.run(t, c)
		made(t, st, without(c))

		c.Init, c.SpecDigest = []topology.InitContainer{b.step(c, b.Succeeds, "one"), b.step(c, b.Fails, "two")}, "fails"
		err := b.Containers.Run(t.Context(), c)
		fails(t, err, topology.CodeExited)
		for _, word := range []string{c.Name + "-init-two", "exit code 4"} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%v does not speak of %s", err, word)
			}
		}
		if st := b.state(t, c.Name); st.State == "running" {
			t.Errorf("it runs although an init container failed: %+v", st)
		}

		c.Init, c.SpecDigest = []topology.InitContainer{b.step(c, b.Hangs, "one")}, "hangs"
		c.Init[0].Timeout = time.Second
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeTimeout)

		c.Init, c.SpecDigest = []topology.InitContainer{b.step(c, b.Succeeds, "one")}, "mended"
		b.run(t, c)
	}},
	{"reload", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Hears, "reload")
		before := b.run(t, c)
		fails(t, b.Containers.Reload(t.Context(), c.Name), topology.CodeInvalid, topology.CodeJobFailed)
		c.ReloadSignal, c.SpecDigest = "HUP", "reloads"
		before = b.run(t, c)
		for n := range 2 {
			ok(t, b.Containers.Reload(t.Context(), c.Name))
			eventually(t, "the signal", func(context.Context) (int, error) { return b.Hands.Reloads(c.Name) }, func(got int) bool { return got == n+1 })
		}
		st := b.state(t, c.Name)
		equal(t, "id", st.ID, before.ID)
		equal(t, "state", st.State, "running")
	}},
	{"health check of its own, or of the image (89)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "health")
		c.HealthCheck = &topology.ContainerHealthCheck{Command: []string{"/bin/true"}, Interval: time.Second, Timeout: 5 * time.Second, Retries: 2}
		made(t, b.run(t, c), c)
		st := b.until(t, c.Name, "health", func(st topology.ContainerState) bool { return st.Health == "healthy" })

		c.HealthCheck, c.SpecDigest = new(topology.ContainerHealthCheck), "of the image"
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeUnavailable)
		now := b.state(t, c.Name)
		equal(t, "id of what runs", now.ID, st.ID)
		equal(t, "spec digest of what runs", now.SpecDigest, st.SpecDigest)
	}},
	{"replaced only while it is what was seen (G37)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "seen")
		c.Replaces = topology.Sum(topology.Absent)
		st := b.run(t, c)
		c.SpecDigest = "another"
		for _, seen := range []topology.Sum{topology.Sum(topology.Absent), "0000"} {
			c.Replaces = seen
			fails(t, b.Containers.Run(t.Context(), c), topology.CodeChanged)
			now := b.state(t, c.Name)
			equal(t, "id of what runs", now.ID, st.ID)
			equal(t, "definition", now.Definition.SHA256, st.Definition.SHA256)
		}
		c.Replaces = st.Definition.Is()
		hands(t, b.Hands.Edit(c.Name))
		edited := b.state(t, c.Name)
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeChanged)
		equal(t, "definition", b.state(t, c.Name).Definition.SHA256, edited.Definition.SHA256)
		c.Replaces = edited.Definition.Is()
		c.Mark = "m/s"
		b.run(t, c)
	}},
}
