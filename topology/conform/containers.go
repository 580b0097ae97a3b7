package conform

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A ContainerBench is a container runtime to test.
type ContainerBench struct {
	Containers topology.Containers
	// Prefix starts the name of every container that the suite makes.
	Prefix string
	// Runs and Ends are configs with image and command: the one runs on until it is told to
	// end, the other ends at once with status 3. Their images are here.
	Runs, Ends topology.ContainerConfig
	// Hears runs on, too, and notes each reload signal, which is HUP.
	Hears topology.ContainerConfig
	// Fields is Runs with as many fields set as the device can hold.
	Fields topology.ContainerConfig
	// Succeeds, Fails and Hangs are init containers: the second ends with status 4.
	Succeeds, Fails, Hangs topology.InitContainer
	// Elsewhere is an image that is not here and can be fetched.
	Elsewhere string
	// Nowhere is an image that cannot be had.
	Nowhere string
	Hands   ContainerHands
}

// ContainerHands act on the containers of a device as somebody else.
type ContainerHands interface {
	// RunByHand runs a container in the background, without the service manager.
	RunByHand(name, image string, command []string) error
	// RemoveByHand removes a container, whoever made it.
	RemoveByHand(name string) error
	// Kill kills the main process of a container with signal 9.
	Kill(name string) error
	// Install puts a unit on the device, as ServiceHands do.
	Install(unit, text string) error
	Uninstall(unit string) error
	// Environ and Arguments are what the main process of a container was given.
	Environ(name string) ([]string, error)
	Arguments(name string) ([]string, error)
	// Secret is what a container sees of a secret: as a variable, or in a file if the place starts with a slash.
	Secret(name, place string) (string, error)
	// Reloads counts the reload signals that a container noted.
	Reloads(name string) (int, error)
	// Edit writes another definition of a container.
	Edit(name string) error
}

// config returns a config with a name of the suite, which is gone when the test is over.
func (b ContainerBench) config(t *testing.T, from topology.ContainerConfig, name string) topology.ContainerConfig {
	c := from
	c.Name, c.Mark, c.SpecDigest = b.Prefix+name, "m/s", "digest-"+name
	if c.Restart == "" {
		c.Restart = "never"
	}
	after(t, func(ctx context.Context) { _ = b.Containers.RemoveContainer(ctx, c.Name) })
	return c
}

func (b ContainerBench) state(t *testing.T, name string) topology.ContainerState {
	t.Helper()
	st, err := b.Containers.Container(t.Context(), name)
	ok(t, err)
	return st
}

func (b ContainerBench) run(t *testing.T, c topology.ContainerConfig) topology.ContainerState {
	t.Helper()
	ok(t, b.Containers.Run(t.Context(), c))
	st := b.state(t, c.Name)
	equal(t, "state", st.State, "running")
	return st
}

// made compares what the device says that a container was made from (H54).
func made(t *testing.T, st topology.ContainerState, c topology.ContainerConfig) {
	t.Helper()
	if st.Made == nil || !reflect.DeepEqual(*st.Made, c) {
		t.Errorf("made from %+v, want %+v", st.Made, c)
	}
}

func (b ContainerBench) until(t *testing.T, name, what string, good func(topology.ContainerState) bool) topology.ContainerState {
	t.Helper()
	return eventually(t, what, func(ctx context.Context) (topology.ContainerState, error) { return b.Containers.Container(ctx, name) }, good)
}

// Containers is the suite of a container runtime.
func Containers(t *testing.T, bench func(*testing.T) ContainerBench) {
	suite(t, bench, slices.Concat(containerTests, containerFieldTests, containerFaults))
}

var containerTests = []test[ContainerBench]{
	{"absent", func(t *testing.T, b ContainerBench) {
		st := b.state(t, b.Prefix+"no")
		equal(t, "state", st.State, "absent")
		equal(t, "definition", st.Definition.Type, topology.Absent)
		equal(t, "mark", st.Mark, "")
		ok(t, b.Containers.RemoveContainer(t.Context(), b.Prefix+"no"))
	}},
	{"life of a container (H58)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "life")
		first := b.run(t, c)
		equal(t, "image", first.Image, c.Image)
		equal(t, "mark", first.Mark, c.Mark)
		equal(t, "spec digest", first.SpecDigest, c.SpecDigest)
		equal(t, "definition", first.Definition.Type, topology.Regular)
		equal(t, "mark of the definition", first.Definition.Mark, c.Mark)
		equal(t, "unit", first.Unit.Load+" "+first.Unit.Active, "loaded active")
		if !strings.HasPrefix(first.Digest, "sha256:") || first.ID == "" || first.Since.IsZero() {
			t.Errorf("a running container has no digest, id or time: %+v", first)
		}
		equal(t, "state, asked for again", b.state(t, c.Name).ID, first.ID)

		ok(t, b.Containers.Restart(t.Context(), c.Name))
		st := b.state(t, c.Name)
		equal(t, "state", st.State, "running")
		equal(t, "spec digest after a restart (85)", st.SpecDigest, c.SpecDigest)
		equal(t, "mark after a restart (85)", st.Mark, c.Mark)
		if st.Unit.Invocation == first.Unit.Invocation {
			t.Error("a restart has the invocation of the run before")
		}

		c.SpecDigest, c.Env = "another", []string{"A=1"}
		second := b.run(t, c)
		equal(t, "spec digest", second.SpecDigest, "another")
		made(t, second, c)
		if second.ID == first.ID {
			t.Error("a container with another config has the same id")
		}

		for range 2 {
			ok(t, b.Containers.RemoveContainer(t.Context(), c.Name))
			st = b.state(t, c.Name)
			equal(t, "state", st.State, "absent")
			equal(t, "definition", st.Definition.Type, topology.Absent)
			equal(t, "load", st.Unit.Load, topology.NotFound)
		}
	}},
	{"what is given arrives (69, 72)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "given")
		values := map[string]string{
			"PLAIN": "x", "SPACE": "a b  c", "QUOTES": `"double" 'single'`, "DOLLAR": "$HOME ${HOME} $$", "PERCENT": "%h %% %n",
			"BACKSLASH": `\n \x20 \`, "HASH": "# ; not a comment", "EMOJI": "🚀", "EMPTY": "", "EQUALS": "a=b",
		}
		for k, v := range values {
			c.Env = append(c.Env, k+"="+v)
		}
		slices.Sort(c.Env)
		c.Command = append(slices.Clone(c.Command), "with space", `quo"te`, "$HOME", "%n", `back\slash`, "")
		b.run(t, c)
		env, err := b.Hands.Environ(c.Name)
		hands(t, err)
		for _, e := range c.Env {
			if !slices.Contains(env, e) {
				t.Errorf("%q is not in the environment %q", e, env)
			}
		}
		args, err := b.Hands.Arguments(c.Name)
		hands(t, err)
		equal(t, "arguments", fmt.Sprintf("%q", args), fmt.Sprintf("%q", c.Command))
		made(t, b.state(t, c.Name), c)
	}},
	{"images (77)", func(t *testing.T, b ContainerBench) {
		digest, err := b.Containers.EnsureImage(t.Context(), topology.ImageRequest{Image: b.Runs.Image})
		ok(t, err)
		c := b.config(t, b.Runs, "image")
		st := b.run(t, c)
		equal(t, "digest", st.Digest, digest)
		again, err := b.Containers.EnsureImage(t.Context(), topology.ImageRequest{Image: b.Runs.Image})
		ok(t, err)
		equal(t, "digest of an image that is here", again, digest)
		equal(t, "id, which nobody asked to change", b.state(t, c.Name).ID, st.ID)
	}},
	{"image that is elsewhere", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "elsewhere")
		c.Image = b.Elsewhere
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeImage)
		digest, err := b.Containers.EnsureImage(t.Context(), topology.ImageRequest{Image: b.Elsewhere})
		ok(t, err)
		if !strings.HasPrefix(digest, "sha256:") {
			t.Errorf("digest is %q", digest)
		}
	}},
	{"ended from outside (H25)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "revived")
		c.Restart = "always"
		before := b.run(t, c)
		hands(t, b.Hands.Kill(c.Name))
		st := b.until(t, c.Name, "the restart", func(st topology.ContainerState) bool {
			return st.State == "running" && st.Restarts > 0 && st.Unit.Invocation != before.Unit.Invocation
		})
		equal(t, "spec digest", st.SpecDigest, c.SpecDigest)

		c = b.config(t, b.Runs, "gone")
		b.run(t, c)
		hands(t, b.Hands.Kill(c.Name))
		b.until(t, c.Name, "the end", func(st topology.ContainerState) bool { return st.State != "running" && st.Unit.Active == "failed" })
		b.run(t, c)
	}},
	{"what is there (X92)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "listed")
		ended, runs := b.Prefix+"hand-ended", b.Prefix+"hand-runs"
		b.run(t, c)
		for name, by := range map[string]topology.ContainerConfig{ended: b.Ends, runs: b.Runs} {
			after(t, func(context.Context) { _ = b.Hands.RemoveByHand(name) })
			hands(t, b.Hands.RunByHand(name, by.Image, by.Command))
		}
		all, err := b.Containers.AllContainers(t.Context())
		ok(t, err)
		all = slices.DeleteFunc(all, func(n topology.NamedContainer) bool { return !strings.HasPrefix(n.Name, b.Prefix) })
		want := []topology.NamedContainer{{Name: ended}, {Name: runs}, {Name: c.Name, Mark: c.Mark}}
		if !slices.Equal(all, want) {
			t.Errorf("got %+v, want %+v", all, want)
		}
		_, err = b.Containers.AllContainers(canceled(t))
		fails(t, err, topology.CodeCanceled)
	}},
	{"canceled", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "canceled")
		_, err := b.Containers.Container(canceled(t), c.Name)
		fails(t, err, topology.CodeCanceled)
		fails(t, b.Containers.Run(canceled(t), c), topology.CodeCanceled)
		equal(t, "state", b.state(t, c.Name).State, "absent")
	}},
}

var containerFaults = []test[ContainerBench]{
	{"program that ends", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Ends, "ends")
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeExited, topology.CodeJobFailed)
		st := b.state(t, c.Name)
		if st.State == "running" {
			t.Errorf("got %+v", st)
		}
		equal(t, "exit code", st.ExitCode, 3)
		equal(t, "mark, of what is left", max(st.Mark, st.Definition.Mark), c.Mark)
	}},
	{"image that cannot be had (79, 80)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "keeps")
		before := b.run(t, c)
		_, err := b.Containers.EnsureImage(t.Context(), topology.ImageRequest{Image: b.Nowhere})
		fails(t, err, topology.CodeImage)
		c.Image = b.Nowhere
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeImage)
		st := b.state(t, c.Name)
		equal(t, "id of what runs", st.ID, before.ID)
		equal(t, "state of what runs", st.State, "running")
		equal(t, "spec digest of what runs", st.SpecDigest, before.SpecDigest)
	}},
	{"container of somebody else (83)", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "byhand")
		after(t, func(context.Context) { _ = b.Hands.RemoveByHand(c.Name) })
		hands(t, b.Hands.RunByHand(c.Name, c.Image, c.Command))
		before := b.state(t, c.Name)
		equal(t, "state", before.State, "running")
		equal(t, "mark", before.Mark, "")
		if before.Made != nil {
			t.Errorf("we know what somebody else made it from: %+v", before.Made)
		}
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeForeign)
		fails(t, b.Containers.RemoveContainer(t.Context(), c.Name), topology.CodeForeign)
		st := b.state(t, c.Name)
		equal(t, "id", st.ID, before.ID)
		equal(t, "definition", st.Definition.Type, topology.Absent)
	}},
	{"container of somebody else with the name of an init container", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "taken")
		c.Init = []topology.InitContainer{b.step(c, b.Succeeds, "one")}
		name := c.Init[0].Name
		after(t, func(context.Context) { _ = b.Hands.RemoveByHand(name) })
		hands(t, b.Hands.RunByHand(name, b.Runs.Image, b.Runs.Command))
		before := b.state(t, name)
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeForeign)
		equal(t, "id of what was there", b.state(t, name).ID, before.ID)
		equal(t, "definition", b.state(t, c.Name).Definition.Type, topology.Absent)
		hands(t, b.Hands.RemoveByHand(name))
		b.run(t, c)
	}},
	{"unit of somebody else", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "unit")
		after(t, func(context.Context) { _ = b.Hands.Uninstall(c.Name + ".service") })
		hands(t, b.Hands.Install(c.Name+".service", runs))
		fails(t, b.Containers.Run(t.Context(), c), topology.CodeForeign)
		equal(t, "definition", b.state(t, c.Name).Definition.Type, topology.Absent)
	}},
	{"removed from outside", func(t *testing.T, b ContainerBench) {
		c := b.config(t, b.Runs, "removed")
		b.run(t, c)
		hands(t, b.Hands.RemoveByHand(c.Name))
		b.until(t, c.Name, "the end", func(st topology.ContainerState) bool { return st.State != "running" && st.Unit.Active != "active" })
		equal(t, "mark of the definition", b.state(t, c.Name).Definition.Mark, c.Mark)
		b.run(t, c)
	}},
}
