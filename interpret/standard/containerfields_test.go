package standard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/container"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// everything is a container with every field.
func everything() score.Container {
	c := web()
	c.Entrypoint, c.User, c.WorkingDir, c.Hostname = []string{"/bin/web", "a b"}, "1000", "/srv", "web"
	c.Env["PASSWORD"] = score.FromSecret("password")
	c.Secrets = []score.SecretFile{{Secret: "tls", Target: "/run/secrets/tls", UID: 7}}
	c.Tmpfs = []score.Tmpfs{{Target: "/cache", Size: 1 << 20}}
	c.Devices = []score.Device{{Host: "/dev/gpiochip0", Container: "/dev/gpiochip0"}}
	c.Capabilities = &score.KernelCapabilities{Add: []string{"NET_ADMIN", "KILL"}, Drop: []string{"ALL"}}
	c.ReadOnly, c.Limits = true, &score.ContainerLimits{Memory: 64 << 20, CPU: 50, PIDs: 100}
	c.HealthCheck = &score.HealthCheck{Command: []string{"/check", "--key=hidden-word"}}
	c.Log, c.Labels = &score.ContainerLog{Driver: score.LogFile}, map[string]string{"a": "b"}
	c.StopSignal, c.StopTimeout, c.ReloadSignal = "INT", score.Duration(30e9), "HUP"
	c.Init = []score.InitContainer{{Name: "one", Command: []string{"--key=hidden-word"}, Env: map[string]score.Value{"PASSWORD": score.FromSecret("password")}}}
	return c
}

func withSecrets(r rig) {
	r.SetSecret("password", "first-value")
	r.SetSecret("tls", "second-value")
}

// TestContainerWithEverything: a container with every field is made once, and is what a device was told (X35).
func TestContainerWithEverything(t *testing.T) {
	r := newRig(t)
	withSecrets(r)
	r.want(r.play(everything()), interpret.Changed, "")
	id := read[container.Observed](t, r.settled(everything())).ID
	for range 100 {
		if got := read[container.Observed](t, r.settled(everything())).ID; got != id {
			t.Fatalf("container %s became %s", id, got)
		}
	}
	other := everything() // another spelling
	slices.Reverse(other.Capabilities.Add)
	other.Network, other.Log.MaxSize, other.Secrets[0].Mode, other.Init[0].Image = "bridge", score.DefaultLogSize, score.DefaultSecretMode, image
	other.Init[0].Timeout, other.State = score.DefaultInitTimeout, score.Running
	if got := read[container.Observed](t, r.settled(other)).ID; got != id {
		t.Error("another container for another spelling")
	}
	for place, want := range map[string]string{"PASSWORD": "first-value", "/run/secrets/tls": "second-value"} {
		if got, _ := r.SecretIn("web", place); got != want {
			t.Errorf("at %s is %q", place, got)
		}
	}
}

// TestContainerTells: of what differs every field is named, and nothing that may be secret is shown (H54, G58).
func TestContainerTells(t *testing.T) {
	r := newRig(t)
	withSecrets(r)
	r.play(everything())
	st := r.table.Observe(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: web()}})
	var fields []string
	for _, c := range st.Changes {
		fields = append(fields, c.Field)
		for _, word := range []string{"first-value", "second-value", "hidden-word"} {
			if strings.Contains(c.Have+c.Want, word) {
				t.Errorf("%s shows %s: %s → %s", c.Field, word, c.Have, c.Want)
			}
		}
	}
	want := strings.Fields("entrypoint user workingDir hostname stopSignal reloadSignal stopTimeout limits.memory limits.cpu limits.pids log.driver log.maxSize " +
		"readOnly devices capabilities.add capabilities.drop labels tmpfs secrets healthCheck init spec")
	if !slices.Equal(fields, want) {
		t.Errorf("got  %q\nwant %q", fields, want)
	}
}

// TestRotatedSecret: one container anew for a rotated secret, and then none (90, G59).
func TestRotatedSecret(t *testing.T) {
	r := newRig(t)
	withSecrets(r)
	r.play(everything())
	first := read[container.Observed](t, r.settled(everything()))
	r.SetSecret("password", "rotated-value")
	rec := r.Record()
	st := r.play(everything())
	r.want(st, interpret.Changed, "")
	if got := fields(st); !slices.Equal(got, []string{"secrets disrupt", "init disrupt", "spec disrupt"}) || len(ops(rec)) != 1 {
		t.Errorf("changes are %v, calls %v", got, ops(rec))
	}
	for range 10 {
		if o := read[container.Observed](t, r.settled(everything())); o.ID == first.ID {
			t.Fatal("the container has the secret of before")
		}
	}
	if got, _ := r.SecretIn("web", "PASSWORD"); got != "rotated-value" {
		t.Errorf("it was given %q", got)
	}
	r.SetSecret("password", "rotated-value") // the same again
	r.settled(everything())
}

// TestMissingSecret: without a secret nothing is touched, and what is to go can go.
func TestMissingSecret(t *testing.T) {
	for name, lose := range map[string]func(rig){
		"gone": func(r rig) { r.DropSecret("tls") }, "exposed": func(r rig) { r.ExposeSecret("tls") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			withSecrets(r)
			r.play(everything())
			before := read[container.Observed](t, r.settled(everything()))
			lose(r)
			rec := r.Record()
			st := r.play(everything())
			r.want(st, interpret.Failed, topology.CodeSecret)
			if o := read[container.Observed](t, st); o.ID != before.ID || o.State != "running" || !strings.Contains(st.Message, `"tls"`) || st.Path != "/secrets" && st.Path != "secrets" {
				t.Errorf("got %+v, %q at %q", o, st.Message, st.Path)
			}
			if m := rec.Mutations(); len(m) > 0 {
				t.Errorf("without its secret: %v", m)
			}
			stopped := everything() // nor does it need one to be stopped
			stopped.State = score.Stopped
			r.want(r.play(stopped), interpret.Changed, "")
			r.settled(stopped)
			st, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: everything()}, interpret.CauseAbsent, &open{})
			if err != nil {
				t.Fatal(err)
			}
			r.want(st, interpret.Changed, "")
			if left := r.List("/etc/containers/systemd"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestStoppedContainer: one that is to be stopped is defined, does not run, and does not come back by itself (87).
func TestStoppedContainer(t *testing.T) {
	r := newRig(t)
	stopped := web()
	stopped.State = score.Stopped
	r.Offline(true) // to be stopped it needs no image
	r.want(r.play(stopped), interpret.Changed, "")
	if o := read[container.Observed](t, r.settled(stopped)); o.State == "running" || !o.Defined {
		t.Errorf("got %+v", o)
	}
	r.Offline(false)
	st := r.play(web())
	r.want(st, interpret.Changed, "")
	if got := fields(st); !slices.Equal(got, []string{"state mutate", "spec disrupt"}) {
		t.Errorf("changes are %v", got)
	}
	r.settled(web())
	st = r.play(stopped)
	r.want(st, interpret.Changed, "")
	if got := fields(st); !slices.Equal(got, []string{"state disrupt", "spec disrupt"}) {
		t.Errorf("changes are %v", got)
	}
	r.Reboot()
	r.settled(stopped)
	r.StartUnit("web.service") // by hand
	st = r.play(stopped)
	r.want(st, interpret.Changed, "")
	if got := fields(st); !slices.Equal(got, []string{"state disrupt"}) {
		t.Errorf("changes are %v", got)
	}
	rec := r.Record()
	r.want(r.restart(stopped), interpret.Changed, "") // what is interrupted is restarted, if it is to run
	if got := ops(rec); len(got) > 0 {
		t.Errorf("a container that is stopped was %v", got)
	}
	r.settled(stopped)
}

func TestReloadedContainer(t *testing.T) {
	r := newRig(t)
	c := web()
	c.ReloadOn = []score.ID{"conf"}
	r.play(c)
	rec := r.Record()
	reload := &interpret.Change{Field: interpret.FieldReload, Have: "a", Want: "b", Effect: interpret.Mutate}
	st := r.with(c, &open{}, reload)
	r.want(st, interpret.Changed, "")
	if got := ops(rec); !slices.Equal(got, []memory.Op{memory.OpReloadRun}) || r.Reloads("web") != 1 {
		t.Errorf("calls are %v, signals %d", got, r.Reloads("web"))
	}
	c.Image = "registry.example.org/web:2" // made anew, it reads everything
	r.want(r.with(c, &open{}, reload), interpret.Changed, "")
	if r.Reloads("web") != 0 {
		t.Error("a container that was made anew was reloaded, too")
	}
	r.settled(c)
}

// TestContainerNeeds: what the device cannot do is found out before anything is touched, every time.
func TestContainerNeeds(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(rig)
		edit    func(*score.Container)
		outcome interpret.Outcome
		code    topology.Code
		message string
	}{
		{"memory controller off (92)", func(r rig) { r.SetController("memory", false) }, func(c *score.Container) { c.Limits = &score.ContainerLimits{Memory: 256 << 20} },
			interpret.Unsupported, topology.CodeNotSupported, "memory controller disabled (cmdline.txt)"},
		{"pids controller off (92)", func(r rig) { r.SetController("pids", false) }, func(c *score.Container) { c.Limits = &score.ContainerLimits{PIDs: 100} },
			interpret.Unsupported, topology.CodeNotSupported, "does not bound tasks here"},
		{"image without a health check (89)", func(r rig) {}, func(c *score.Container) { c.HealthCheck = &score.HealthCheck{} },
			interpret.Unsupported, topology.CodeUnavailable, "no health check"},
		{"init container fails (X34)", func(r rig) { r.Publish("a.b/init:1", memory.Image{Init: memory.Step{Status: 3}}) },
			func(c *score.Container) { c.Init = []score.InitContainer{{Name: "one", Image: "a.b/init:1"}} },
			interpret.Failed, topology.CodeExited, "web-init-one ended with exit code 3"},
		{"init container hangs (X34)", func(r rig) { r.Publish("a.b/init:1", memory.Image{Init: memory.Step{Hangs: true}}) },
			func(c *score.Container) { c.Init = []score.InitContainer{{Name: "one", Image: "a.b/init:1"}} },
			interpret.Failed, topology.CodeTimeout, "web-init-one did not end within 5m"},
		{"image of an init container", func(r rig) { r.Unpublish("a.b/init:1") }, func(c *score.Container) { c.Init = []score.InitContainer{{Name: "one", Image: "a.b/init:1"}} },
			interpret.Failed, topology.CodeImage, "a.b/init:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.play(web())
			before := read[container.Observed](t, r.settled(web()))
			tt.prepare(r)
			c := web()
			tt.edit(&c)
			for range 3 {
				st := r.play(c)
				r.want(st, tt.outcome, tt.code)
				if !strings.Contains(st.Message, tt.message) {
					t.Errorf("message is %q, want …%s…", st.Message, tt.message)
				}
				if o := read[container.Observed](t, st); tt.code != topology.CodeExited && tt.code != topology.CodeTimeout && (o.ID != before.ID || o.State != "running") {
					t.Errorf("it became %+v", o)
				}
			}
			r.want(r.play(web()), map[bool]interpret.Outcome{true: interpret.Changed, false: interpret.Unchanged}[tt.code == topology.CodeExited || tt.code == topology.CodeTimeout], "")
			r.settled(web())
		})
	}
}

// TestHealthOfAnImageThatHasNone: what must have a health check and says nothing is not well (89).
func TestHealthOfAnImageThatHasNone(t *testing.T) {
	r := newRig(t)
	r.Publish(image, memory.Image{Health: "healthy"})
	c := web()
	c.HealthCheck = &score.HealthCheck{}
	r.want(r.play(c), interpret.Changed, "")
	r.settled(c)
	r.SetHealth("web", "")
	if st := r.play(c); st.Conditions.Healthy == nil || *st.Conditions.Healthy {
		t.Errorf("conditions are %+v", st.Conditions)
	}
}

// TestInstalledContainer: a container that was created with other parts than its definition has differs, is told so, and
// made anew (G49).
func TestInstalledContainer(t *testing.T) {
	r := newRig(t)
	r.play(web())
	r.MakeAnew("web", "env", "command")
	st := r.table.Observe(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: web()}})
	if got := fields(st); !slices.Equal(got, []string{"installed disrupt"}) || st.Changes[0].Have != "other env, command" {
		t.Errorf("changes are %+v", st.Changes)
	}
	if o := read[container.Observed](t, st); !slices.Equal(o.Departs, []string{"env", "command"}) {
		t.Errorf("got %+v", o)
	}
	r.want(r.play(web()), interpret.Changed, "")
	r.settled(web())
}

// TestContainerChangedMeanwhile: a definition that somebody edits after it was looked at is left alone (G37).
func TestContainerChangedMeanwhile(t *testing.T) {
	r := newRig(t)
	r.play(web())
	const file = "/etc/containers/systemd/web.container"
	edited := false
	r.Before(func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpRun && !edited {
			edited = true
			r.Put(file, "[Container]\nImage=theirs\n")
		}
		return nil
	})
	c := web()
	c.Image = "registry.example.org/web:2"
	st := r.play(c)
	r.want(st, interpret.Failed, topology.CodeChanged)
	if text, _ := r.Read(file); text != "[Container]\nImage=theirs\n" {
		t.Errorf("the definition became %q", text)
	}
	r.want(r.play(c), interpret.Changed, "") // it was seen now
	r.settled(c)
}

// TestSecretsOfNobody: on a device that keeps no secrets, a container that needs some says so, and others run.
func TestSecretsOfNobody(t *testing.T) {
	d := memory.New()
	table := interpret.Bind(containersOnly{d}, container.Kind)
	play := func(s score.Spec) interpret.ScoreStatus {
		st, err := table.Play(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: s}}, &open{})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := play(web()); st.Outcome != interpret.Changed {
		t.Errorf("got %s %s", st.Outcome, st.Message)
	}
	c := web()
	c.Env["A"] = score.FromSecret("password")
	if st := play(c); st.Outcome != interpret.Failed || st.Code != interpret.Code(topology.CodeSecret) {
		t.Errorf("got %s %s", st.Outcome, st.Message)
	}
	if _, err := (topology.NoSecrets{}).Secret(t.Context(), "a"); !errors.As(err, new(*topology.Fault)) {
		t.Errorf("got %v", err)
	}
}

type containersOnly struct{ d *memory.Device }

func (c containersOnly) Containers() topology.Containers { return c.d.Containers() }
