package standard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/container"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const image = "registry.example.org/web:1"

func web() score.Container {
	return score.Container{
		Name: "web", Image: image, Command: []string{"serve", "a b"}, Env: map[string]score.Value{"TZ": score.Text("UTC"), "A": score.Text("1")},
		Ports: ports("8080:80", "127.0.0.1:6001:80"), Volumes: volumes("/srv/web:/data:ro", "cache:/var/cache"),
	}
}

func ports(texts ...string) (out []score.Port) {
	for _, s := range texts {
		var p score.Port
		if err := p.UnmarshalText([]byte(s)); err != nil {
			panic(err)
		}
		out = append(out, p)
	}
	return out
}

func volumes(texts ...string) (out []score.Volume) {
	for _, s := range texts {
		var v score.Volume
		if err := v.UnmarshalText([]byte(s)); err != nil {
			panic(err)
		}
		out = append(out, v)
	}
	return out
}

func TestContainerChanges(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(rig)
		edit    func(*score.Container)
		restart bool
		fields  []string
		ops     []memory.Op
	}{
		{"from nothing", func(r rig) {}, nil, false, []string{"present create"}, []memory.Op{memory.OpEnsureImage, memory.OpRun}},
		{"image", func(r rig) { r.play(web()) }, func(c *score.Container) { c.Image = "registry.example.org/web:2" }, false,
			[]string{"image disrupt", "spec disrupt"}, []memory.Op{memory.OpEnsureImage, memory.OpRun}},
		{"environment", func(r rig) { r.play(web()) }, func(c *score.Container) { c.Env["A"] = score.Text("2") }, false, []string{"env.A disrupt", "spec disrupt"}, []memory.Op{memory.OpRun}},
		{"command order", func(r rig) { r.play(web()) }, func(c *score.Container) { slices.Reverse(c.Command) }, false, []string{"command disrupt", "spec disrupt"}, []memory.Op{memory.OpRun}},
		{"restart policy", func(r rig) { r.play(web()) }, func(c *score.Container) { c.Restart = score.RestartNever }, false, []string{"restart disrupt", "spec disrupt"}, []memory.Op{memory.OpRun}},
		{"trigger alone", func(r rig) { r.play(web()) }, nil, true, []string{"restartOn disrupt"}, []memory.Op{memory.OpRestartRun}},
		{"trigger and change start once", func(r rig) { r.play(web()) }, func(c *score.Container) { c.Env["A"] = score.Text("2") }, true,
			[]string{"env.A disrupt", "spec disrupt", "restartOn disrupt"}, []memory.Op{memory.OpRun}},
		{"stopped by hand", func(r rig) { r.play(web()); r.StopUnit("web.service") }, nil, false, []string{"state mutate"}, []memory.Op{memory.OpRun}},
		{"removed by hand", func(r rig) {
			c := web()
			c.Restart = score.RestartNever
			r.play(c)
			r.RemoveByHand("web")
		}, func(c *score.Container) { c.Restart = score.RestartNever }, false, []string{"state mutate"}, []memory.Op{memory.OpRun}},
		{"definition removed by hand", func(r rig) { r.play(web()); r.Delete("/etc/containers/systemd/web.container") }, nil, false,
			[]string{"spec disrupt", "definition disrupt"}, []memory.Op{memory.OpRun}},
		{"definition edited by hand", func(r rig) {
			r.play(web())
			r.Put("/etc/containers/systemd/web.container", "[Container]\nImage=evil\n")
		}, nil, false,
			[]string{"spec disrupt"}, []memory.Op{memory.OpRun}},
		{"image gone as well", func(r rig) { r.play(web()); r.StopUnit("web.service"); r.RemoveImage(image) }, nil, false,
			[]string{"state mutate"}, []memory.Op{memory.OpEnsureImage, memory.OpRun}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			c := web()
			if tt.edit != nil {
				tt.edit(&c)
			}
			rec := r.Record()
			var st interpret.ScoreStatus
			if tt.restart {
				st = r.restart(c)
			} else {
				st = r.play(c)
			}
			r.want(st, interpret.Changed, "")
			if got := fields(st); !slices.Equal(got, tt.fields) {
				t.Errorf("changes are %v, want %v", got, tt.fields)
			}
			if got := ops(rec); !slices.Equal(got, tt.ops) {
				t.Errorf("calls are %v, want %v", got, tt.ops)
			}
			r.settled(c)
		})
	}
}

// TestContainerDifferences: what differs is told field by field, without the value of any variable (H54, 155).
func TestContainerDifferences(t *testing.T) {
	many := map[string]score.Value{}
	for i := range 25 {
		many[fmt.Sprintf("V%02d", i)] = score.Text("secret")
	}
	tests := []struct {
		name string
		edit func(*score.Container)
		want []string // but for the digest
	}{
		{"all of it", func(c *score.Container) {
			*c = score.Container{
				Name: "web", Image: "registry.example.org/web:2", Command: []string{"serve", "--key=secret"},
				Env: map[string]score.Value{"TZ": score.Text("secret"), "NEW": score.Text("secret")}, Ports: ports("8081:80", "127.0.0.1:6001:80"),
				Volumes: volumes("cache:/var/cache"), Restart: score.RestartFailure,
			}
		}, []string{
			"image: registry.example.org/web:1 → registry.example.org/web:2", "command: sha256:9dbcf9cdabfa… → sha256:d9bec27d871a…",
			"env.A: set → not set", "env.NEW: not set → set", "env.TZ: one value → another value",
			"ports: 8080:80 → 8081:80", "volumes: /srv/web:/data:ro → none", "restart: always → on-failure",
		}},
		{"nothing is asked for", func(c *score.Container) { *c = score.Container{Name: "web", Image: image} }, []string{
			"command: sha256:9dbcf9cdabfa… → of the image", "env.A: set → not set", "env.TZ: set → not set",
			"ports: 127.0.0.1:6001:80, 8080:80 → none", "volumes: /srv/web:/data:ro, cache:/var/cache → none",
		}},
		{"an empty value is one", func(c *score.Container) {
			c.Env = map[string]score.Value{"TZ": score.Text("UTC"), "A": score.Text("1"), "B": {}}
		}, []string{"env.B: not set → set"}},
		{"very much", func(c *score.Container) {
			c.Env, c.Ports = many, nil
			for i := range uint16(200) {
				c.Ports = append(c.Ports, score.Port{Host: 8080 + 10*i, Container: 80})
			}
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.play(web())
			c := web()
			tt.edit(&c)
			st := r.table.Observe(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: c}})
			var got []string
			for _, c := range st.Changes {
				got = append(got, c.Field+": "+c.Have+" → "+c.Want)
			}
			if text := strings.Join(got, "\n"); strings.Contains(text, "secret") || len(text) > 2000 {
				t.Errorf("too much is said:\n%s", text)
			}
			last := len(got) - 1
			if was := read[container.Observed](t, st).SpecDigest; !strings.HasPrefix(got[last], "spec: "+was+" → ") || len(was) != 64 {
				t.Errorf("the last change is %s", got[last])
			}
			if tt.want != nil && !slices.Equal(got[:last], tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got[:last], "\n"), strings.Join(tt.want, "\n"))
			}
			if tt.want == nil && !slices.Contains(got, "env: 7 more variables → others") {
				t.Errorf("got\n%s", strings.Join(got, "\n"))
			}
		})
	}
}

// TestContainerSpellings: another spelling of the same wish touches nothing (69, 73, 75, X35).
func TestContainerSpellings(t *testing.T) {
	r := newRig(t)
	r.play(web())
	id := read[container.Observed](t, r.settled(web())).ID
	for _, c := range []score.Container{
		func() score.Container { c := web(); slices.Reverse(c.Ports); slices.Reverse(c.Volumes); return c }(),
		func() score.Container {
			c := web()
			c.Ports = ports("0.0.0.0:8080:80/tcp", "127.0.0.1:6001:80")
			return c
		}(),
		func() score.Container {
			c := web()
			c.Volumes = volumes("/srv/web:/data:ro", "cache:/var/cache:rw")
			return c
		}(),
		func() score.Container { c := web(); c.Restart = score.RestartAlways; return c }(),
		func() score.Container { c := web(); c.RestartOn = []score.ID{"other"}; return c }(),
	} {
		if got := read[container.Observed](t, r.settled(c)).ID; got != id {
			t.Errorf("another container for %+v", c)
		}
	}
	udp := web()
	udp.Ports = ports("8080:80/udp", "127.0.0.1:6001:80")
	r.want(r.play(udp), interpret.Changed, "")
}

func TestContainerState(t *testing.T) { // H58
	r := newRig(t)
	r.Publish(image, memory.Image{Health: "starting", Digest: "sha256:aaaa"})
	st := r.play(web())
	r.want(st, interpret.Changed, "")
	o := read[container.Observed](t, st)
	if o.State != "running" || o.Since.IsZero() || o.Digest != "sha256:aaaa" || o.Image != image || o.Health != "starting" || !o.Defined {
		t.Errorf("got %+v", o)
	}
	if st.Converged() {
		t.Error("a container whose health check has not passed yet is converged (89)")
	}
	r.SetHealth("web", "healthy")
	r.settled(web())
	r.SetHealth("web", "unhealthy")
	st = r.play(web())
	r.want(st, interpret.Unchanged, "")
	if st.Conditions.Healthy == nil || *st.Conditions.Healthy || !*st.Conditions.Effective || st.Converged() {
		t.Errorf("an unhealthy container has %+v", st.Conditions)
	}
	for range 2 {
		r.Kill("web.service", 1)
	}
	o = read[container.Observed](t, r.play(web()))
	if o.State != "running" || o.Restarts != 2 {
		t.Errorf("restarted twice: %+v", o)
	}
}

// TestContainerThatEnds: an exit code is reported, a loop is not running, and is left alone once it was tried.
func TestContainerThatEnds(t *testing.T) { // cases 50, 54, 139
	for _, restart := range []score.Restart{score.RestartNever, score.RestartFailure, score.RestartAlways} {
		t.Run(string(restart), func(t *testing.T) {
			r := newRig(t)
			r.Publish(image, memory.Image{Program: memory.Program{Exits: true, Status: 3}})
			c := web()
			c.Restart = restart
			st := r.play(c)
			r.want(st, interpret.Failed, topology.CodeExited)
			o := read[container.Observed](t, st)
			if o.State == "running" || o.ExitCode != 3 || st.Conditions.Good() {
				t.Errorf("got %+v, %+v", o, st.Conditions)
			}
			if restart != score.RestartNever {
				r.want(r.retry(c), interpret.Failed, topology.CodeStartLimit)
			}
			c.Image = "registry.example.org/web:fixed"
			r.want(r.play(c), interpret.Changed, "")
			r.settled(c)
		})
	}
}

func TestContainerObstacles(t *testing.T) {
	tests := []struct {
		name    string
		prepare func(rig)
		outcome interpret.Outcome
		code    topology.Code
		message string
	}{
		{"made by hand (83)", func(r rig) { r.RunByHand("web", image) }, interpret.Conflict, topology.CodeForeign, "made by somebody else"},
		{"definition written by hand", func(r rig) { r.Put("/etc/containers/systemd/web.container", "[Container]\n") },
			interpret.Conflict, topology.CodeForeign, "there is a definition of it"},
		{"unit of that name", func(r rig) { r.Install("web.service", unitText) }, interpret.Conflict, topology.CodeForeign, "defined by"},
		{"masked (57)", func(r rig) { r.Mask("web.service") }, interpret.Conflict, topology.CodeMasked, "systemctl unmask web.service"},
		{"no image", func(r rig) { r.Unpublish(image) }, interpret.Failed, topology.CodeImage, image},
		{"registry down (80)", func(r rig) { r.Offline(true) }, interpret.Failed, topology.CodeImage, image},
		{"runtime gone", func(r rig) { r.Unavailable(memory.Containers, "podman is too old") }, interpret.Unsupported, topology.CodeUnavailable, "podman is too old"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			tt.prepare(r)
			before := r.List("/etc")
			for range 2 {
				st := r.play(web())
				r.want(st, tt.outcome, tt.code)
				if !strings.Contains(st.Message, tt.message) {
					t.Errorf("message is %q, want …%s…", st.Message, tt.message)
				}
			}
			if now := r.List("/etc"); !slices.Equal(now, before) {
				t.Errorf("left behind: %v", now)
			}
		})
	}
}

// TestContainerKeepsRunning: an update that cannot be fetched stops nothing (79, 80).
func TestContainerKeepsRunning(t *testing.T) {
	r := newRig(t)
	r.play(web())
	before := read[container.Observed](t, r.settled(web()))
	r.Offline(true)
	c := web()
	c.Image = "registry.example.org/web:2"
	for range 2 {
		st := r.play(c)
		r.want(st, interpret.Failed, topology.CodeImage)
		if o := read[container.Observed](t, st); o.ID != before.ID || o.State != "running" || o.Digest != before.Digest {
			t.Errorf("got %+v", o)
		}
	}
	if st := r.table.Prefetch(t.Context(), score.Score{ID: "x", Spec: c}); st.Outcome != interpret.Failed || st.Code != interpret.Code(topology.CodeImage) {
		t.Error("an image was fetched from a registry that is down")
	}
	r.Offline(false)
	rec := r.Record()
	if st := r.table.Prefetch(t.Context(), score.Score{ID: "x", Spec: c}); st.Outcome != "" || !slices.Equal(ops(rec), []memory.Op{memory.OpEnsureImage}) {
		t.Errorf("got %s, %v", st.Message, ops(rec))
	}
	// A tag that moved is not fetched again (77).
	r.Publish(image, memory.Image{Digest: "sha256:moved"})
	if o := read[container.Observed](t, r.settled(web())); o.ID != before.ID || o.Digest != before.Digest {
		t.Errorf("got %+v", o)
	}
}

// TestContainerIsFoundAgain: a device whose books are lost makes no second container (85).
func TestContainerIsFoundAgain(t *testing.T) {
	r := newRig(t)
	r.play(web())
	g := &open{}
	st := r.with(web(), g, nil)
	r.want(st, interpret.Unchanged, "")
	if g.holds != 1 || len(g.actions) != 0 {
		t.Errorf("the gate was asked %d times and told %d times", len(g.actions), g.holds)
	}
	for range 2 {
		st, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: web()}, interpret.CauseAbsent, &open{})
		if err != nil {
			t.Fatal(err)
		}
		r.want(st, interpret.Changed, "")
	}
	if got := r.List("/etc/containers/systemd"); len(got) > 0 {
		t.Errorf("left behind: %v", got)
	}
}
