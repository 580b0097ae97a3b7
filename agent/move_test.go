package agent_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Renaming a manifest or a score, and moving scores between manifests, changes nothing on the device, so that it needs
// nobody's consent, under any policy: it is there all the time, restarts nothing and is owned under its new name. Content
// that changes with it is what the policy says of a change (cases 126, X97, H55).
func TestMovesNeedNoConsent(t *testing.T) {
	all := func(p score.Preset, conf string) (scores []score.Score) {
		return []score.Score{file("conf", "/etc/conf", conf), service("app", "app.service", "conf"), container("web", "web")}
	}
	for _, p := range []score.Preset{score.Converge, score.Guarded, score.Reviewed} {
		for name, second := range map[string]func(conf string) []score.Manifest{
			"manifest renamed": func(conf string) []score.Manifest { return []score.Manifest{manifest("new", all(p, conf)...)} },
			"scores renamed": func(conf string) []score.Manifest {
				s := all(p, conf)
				s[0].ID, s[1] = "configuration", service("application", "app.service", "configuration")
				s[2].ID = "site"
				return []score.Manifest{manifest("old", s...)}
			},
			"moved to another": func(conf string) []score.Manifest {
				s := all(p, conf)
				return []score.Manifest{manifest("old", s[2]), manifest("other", s[:2]...)}
			},
		} {
			for _, conf := range []string{"1", "2"} {
				r := newRig(t)
				first := preset(p, manifest("old", all(p, "1")...))
				if st := r.confirm(intent(1, first)); !st.ConvergedAt(1) {
					t.Fatalf("%s", outcomes(st))
				}
				id := r.dev.Identity("/etc/conf")
				rec := r.dev.Record()
				ms := second(conf)
				for i := range ms {
					ms[i] = preset(p, ms[i])
					ms[i].Metadata.Generation = 2
				}
				st := r.apply(intent(2, ms...))
				what := name + " under " + string(p)
				waits := conf == "2" && p == score.Reviewed
				if len(st.Orphans) > 0 || (st.State == interpret.StateConverged) == waits {
					t.Errorf("%s: %s %+v", what, outcomes(st), st.Orphans)
				}
				for _, c := range rec.Mutations() {
					if conf == "1" || waits || c.Op == memory.OpRemoveFile || c.Op == memory.OpStop || c.Op == memory.OpRemoveContainer {
						t.Errorf("%s: called %v", what, c)
					}
				}
				if conf == "1" && r.dev.Identity("/etc/conf") != id {
					t.Errorf("%s: the file is another", what)
				}
				if n := count(rec, memory.OpRestart, "unit:app.service"); n > 1 || conf == "2" && !waits && n != 1 {
					t.Errorf("%s: restarted %d times", what, n)
				}
				if waits {
					continue
				}
				for _, e := range r.store.Entries() {
					if e.Generation != 2 && (e.Score == "conf" || e.Score == "app") || e.Manifest == "old" && name == "manifest renamed" {
						t.Errorf("%s: in the books: %s of %s/%s, generation %d", what, e.Resource, e.Manifest, e.Score, e.Generation)
					}
				}
				r.restart()
				rec.Reset()
				if st := r.apply(intent(2, ms...)); st.State != interpret.StateConverged || len(rec.Mutations()) > 0 {
					t.Errorf("%s: once more: %s %v", what, outcomes(st), rec.Mutations())
				}
			}
		}
	}
}

// Two manifests swap what they own in one generation.
func TestSwap(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("l", file("a", "/etc/a", "1")), manifest("m", file("b", "/etc/b", "1"))))
		later(time.Second)
		rec := r.dev.Record()
		offer(t, h, intent(2, manifest("l", file("b", "/etc/b", "1")), manifest("m", file("a", "/etc/a", "2"))))
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(2) || len(st.Orphans) > 0 || len(rec.Mutations()) != 1 {
			t.Errorf("%s %v", outcomes(st), rec.Mutations())
		}
		if e, _ := r.store.Owner("file:/etc/b"); e.Manifest != "l" {
			t.Errorf("b is owned by %s", e.Manifest)
		}
	})
}

// One thing that two manifests spell differently is one thing: the one that owns it keeps it, and the other is told whose it
// is, under every policy and with a plan or without (cases 128, H53).
func TestOneThingSpelledTwice(t *testing.T) {
	port := func(id score.ID, name string, p score.Port) score.Score {
		s := container(id, name)
		spec := s.Spec.(score.Container)
		spec.Ports = []score.Port{p}
		s.Spec = spec
		return s
	}
	for name, two := range map[string][2]score.Score{
		"port":      {port("a", "web", score.Port{Host: 80, Container: 80}), port("a", "other", score.Port{IP: "127.0.0.1", Host: 79, Container: 1, More: 3})},
		"container": {container("a", "web"), service("a", "web.service")},
	} {
		r := newRig(t)
		r.dev.LoadImage("localhost/app:1", memory.Image{})
		r.apply(intent(1, manifest("z", two[0])))
		rec := r.dev.Record()
		in := intent(2, manifest("a", two[1]), manifest("z", two[0]))
		for _, st := range []interpret.DeviceStatus{r.apply(in), r.confirm(in)} {
			s := st.Manifests[0].Scores[0]
			if s.Outcome != interpret.Conflict || s.Code != interpret.CodeOwnedBy {
				t.Errorf("%s: %s %s", name, outcomes(st), s.Message)
			}
		}
		if m := rec.Mutations(); len(m) > 0 {
			t.Errorf("%s: called %v", name, m)
		}
	}
}

// One thing has one owner, however two manifests spell it: as a file or as the unit that the file is of, as a container or as
// the unit that runs it, as a port of one address or of all. The one who comes later changes nothing, is told who has it, and
// nothing flaps (H53, cases 128).
func TestOneThingSpelledDifferently(t *testing.T) {
	web := func(name string, ports ...score.Port) score.Score {
		return score.Score{ID: "web", Spec: score.Container{Name: name, Image: "localhost/app:1", Ports: ports}}
	}
	bare := func(unit string) score.Score {
		return score.Score{ID: "bare", Spec: score.Service{Unit: unit, State: score.Stopped}}
	}
	host := func(name string) score.Score { return score.Score{ID: "host", Spec: score.Hostname{Name: name}} }
	for what, pair := range map[string][2]score.Score{
		"a file":                        {file("x", "/etc/x", "1"), file("y", "/etc/x", "2")},
		"a unit file":                   {service("s", "s.service"), file("f", "/etc/systemd/system/s.service", "[Service]\nExecStart=/bin/false\n")},
		"a unit":                        {service("s", "s.service"), bare("s.service")},
		"the unit of a container":       {web("web"), bare("web.service")},
		"the definition of a container": {web("web"), file("f", "/etc/containers/systemd/web.container", "x")},
		"a container":                   {web("web"), web("web", score.Port{Host: 81, Container: 80})},
		"a port":                        {web("one", score.Port{Host: 80, Container: 80}), web("two", score.Port{IP: "127.0.0.1", Host: 80, Container: 8080})},
		"the host name":                 {host("a"), host("b")},
	} {
		for _, swapped := range []bool{false, true} {
			first, second := pair[0], pair[1]
			if swapped {
				first, second = second, first
			}
			if first.ID == "bare" {
				continue // it is as it should be, and nobody's
			}
			r := newRig(t)
			r.apply(intent(1, manifest("b", first)))
			before := r.snapshot()
			rec := r.dev.Record()
			for range 3 {
				st := r.apply(intent(2, manifest("b", first), manifest("a", second)))
				s, _ := scoreOf(st, "a", second.ID)
				f, _ := scoreOf(st, "b", first.ID)
				if s.Outcome != interpret.Conflict || s.Code != interpret.CodeOwnedBy || s.Message == "" || f.Outcome == interpret.Conflict {
					t.Errorf("%s, swapped %v: %s: %s", what, swapped, outcomes(st), s.Message)
				}
			}
			if m := rec.Mutations(); len(m) > 0 || r.snapshot() != before {
				t.Errorf("%s, swapped %v: called %v", what, swapped, fmt.Sprint(m))
			}
		}
	}
}
