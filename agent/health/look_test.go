package health

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func eyes(d *memory.Device) Eyes {
	return Eyes{Probes: d.Probes(), Services: d.Services(), Containers: d.Containers()}
}

const unitText = "[Service]\nExecStart=/bin/sleep 9\n"

// device is one on which some things work and others do not.
func device(t *testing.T) *memory.Device {
	t.Helper()
	d := memory.New()
	d.Listen("127.0.0.1:80", memory.Endpoint{Status: 200})
	d.Listen("127.0.0.1:81", memory.Endpoint{Mute: true})
	d.Listen("example.org:80", memory.Endpoint{Unreachable: true})
	for port, status := range map[string]int{":8199": 199, ":8302": 302, ":8399": 399, ":8400": 400, ":8503": 503} {
		d.Listen("127.0.0.1"+port, memory.Endpoint{Status: status})
	}
	d.Install("on.service", unitText)
	d.StartUnit("on.service")
	d.Install("off.service", unitText)
	d.Install("slow.service", "[Service]\nExecStartPre=/bin/sleep 999\nExecStart=/bin/sleep 9\n")
	d.StartUnit("slow.service")
	for name, health := range map[string]string{"plain": "", "well": "healthy", "ill": "unhealthy", "young": "starting"} {
		image := "example.org/" + name + ":1"
		d.LoadImage(image, memory.Image{Health: health})
		if err := d.Containers().Run(t.Context(), topology.ContainerConfig{Name: name, Image: image, Mark: "m/s"}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestLook(t *testing.T) { // H63, cases 50, 51, 138
	synctest.Test(t, func(t *testing.T) {
		d := device(t)
		d.Mkdir("/srv/dir")
		tcp := func(host string, port uint16) score.Probe {
			return score.Probe{TCP: &score.TCPProbe{Host: host, Port: port}}
		}
		http := func(url string) score.Probe { return score.Probe{HTTP: &score.HTTPProbe{URL: url}} }
		file := func(path string) score.Probe {
			return score.Probe{File: &score.FileProbe{Path: path, MaxAge: 60 * second}}
		}
		d.Put("/srv/now", "")
		tests := []struct {
			name     string
			probe    score.Probe
			ready    Result
			liveness Result
			detail   string // of the readiness
		}{
			{"tcp", tcp("", 80), Succeeded, Succeeded, ""},
			{"tcp, mute", tcp("", 81), Succeeded, Succeeded, ""},
			{"tcp, nobody", tcp("127.0.0.1", 82), Failed, Failed, "cannot connect to 127.0.0.1:82: connection refused"},
			{"tcp, no way", tcp("example.org", 80), Failed, Failed, "cannot connect to example.org:80: there is no such host"},
			{"tcp, v6", tcp("::1", 82), Failed, Failed, "cannot connect to [::1]:82: connection refused"},
			{"http", http("http://127.0.0.1/healthz"), Succeeded, Succeeded, ""},
			{"http, mute", http("http://127.0.0.1:81/"), Failed, Failed, "cannot get http://127.0.0.1:81/: no answer in time"},
			{"http 199", http("http://127.0.0.1:8199/"), Failed, Failed, "http://127.0.0.1:8199/ answers with status 199"},
			{"http 302", http("http://127.0.0.1:8302/"), Succeeded, Succeeded, ""},
			{"http 399", http("http://127.0.0.1:8399/"), Succeeded, Succeeded, ""},
			{"http 400", http("http://127.0.0.1:8400/?token=hush"), Failed, Failed, "http://127.0.0.1:8400/ answers with status 400"},
			{"http, no URL", http("nonsense"), Failed, Failed, "cannot get nonsense: want http://host… or https://host…"},
			{"unit", score.Probe{Unit: "on.service"}, Succeeded, Succeeded, ""},
			{"unit, stopped", score.Probe{Unit: "off.service"}, Failed, Failed, "off.service is inactive"},
			{"unit, starting", score.Probe{Unit: "slow.service"}, Failed, Unseen, "slow.service is activating"},
			{"unit, none", score.Probe{Unit: "no.service"}, Failed, Failed, "no.service is not-found"},
			{"container", score.Probe{Container: "plain"}, Succeeded, Succeeded, ""},
			{"container, healthy", score.Probe{Container: "well"}, Succeeded, Succeeded, ""},
			{"container, unhealthy", score.Probe{Container: "ill"}, Failed, Failed, "container ill is unhealthy"},
			{"container, starting", score.Probe{Container: "young"}, Failed, Unseen, "container young is starting"},
			{"container, none", score.Probe{Container: "no"}, Failed, Failed, "container no is absent"},
			{"file", file("/srv/now"), Succeeded, Succeeded, ""},
			{"file, none", file("/srv/no"), Failed, Failed, "/srv/no does not exist"},
			{"file, a directory", file("/srv/dir"), Failed, Failed, "/srv/dir is a directory, not a regular file"},
			{"nothing", score.Probe{}, Unseen, Unseen, "the probe does not say where to look"},
		}
		for _, tt := range tests {
			for _, hangs := range []bool{false, true} {
				want, name := tt.ready, tt.name
				if hangs {
					want, name = tt.liveness, name+", liveness"
				}
				l := looker{eyes: eyes(d), probe: tt.probe, hangs: hangs}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if r, detail := l.look(ctx); r != want || detail != tt.detail && !hangs {
					t.Errorf("%s: got %d, %q; want %d, %q", name, r, detail, want, tt.detail)
				}
				cancel()
			}
		}
	})
}

// fixed is a device whose units and containers are all alike.
type fixed struct {
	topology.ContainerReader // what no probe asks for
	topology.ServiceReader

	unit      topology.ServiceState
	container topology.ContainerState
}

func (f fixed) Service(context.Context, string) (topology.ServiceState, error) { return f.unit, nil }
func (f fixed) Container(context.Context, string) (topology.ContainerState, error) {
	return f.container, nil
}

// States on the way from one to another, which no device stays in.
func TestLookBetweenStates(t *testing.T) { // H63, case 51
	unit := func(active string) fixed {
		return fixed{unit: topology.ServiceState{Load: topology.Loaded, Active: active}}
	}
	container := func(state, health, unit string) fixed {
		return fixed{container: topology.ContainerState{State: state, Health: health, Unit: topology.ServiceState{Active: unit}}}
	}
	ofUnit, ofContainer := score.Probe{Unit: "u.service"}, score.Probe{Container: "c"}
	tests := []struct {
		name      string
		probe     score.Probe
		dev       fixed
		readiness Result
		liveness  Result
	}{
		{"unit reloads", ofUnit, unit("reloading"), Succeeded, Succeeded},
		{"unit starts", ofUnit, unit("activating"), Failed, Unseen},
		{"unit stops", ofUnit, unit("deactivating"), Failed, Failed},
		{"unit failed", ofUnit, unit("failed"), Failed, Failed},
		{"container starts", ofContainer, container("created", "", "activating"), Failed, Unseen},
		{"container is fetched", ofContainer, container("absent", "", "activating"), Failed, Unseen},
		{"container runs, its unit waits for it", ofContainer, container("running", "starting", "activating"), Failed, Unseen},
		{"container says that it is ill, its unit still waits", ofContainer, container("running", "unhealthy", "activating"), Failed, Unseen},
		{"container stops", ofContainer, container("stopping", "healthy", "deactivating"), Failed, Failed},
		{"container is paused", ofContainer, container("paused", "healthy", "active"), Failed, Failed},
	}
	for _, tt := range tests {
		for hangs, want := range map[bool]Result{false: tt.readiness, true: tt.liveness} {
			l := looker{eyes: Eyes{Services: tt.dev, Containers: tt.dev}, probe: tt.probe, hangs: hangs}
			if r, detail := l.look(t.Context()); r != want {
				t.Errorf("%s, liveness %t: got %d, %q; want %d", tt.name, hangs, r, detail, want)
			}
		}
	}
}

// What could not be found out is neither good nor bad: nothing is restarted for it. X88
func TestLookFindsNothingOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := device(t)
		d.Put("/srv/now", "")
		probes := []score.Probe{
			{TCP: &score.TCPProbe{Port: 80}}, {HTTP: &score.HTTPProbe{URL: "http://127.0.0.1/"}}, {Unit: "on.service"}, {Container: "plain"},
			{File: &score.FileProbe{Path: "/srv/now", MaxAge: 60 * second}},
		}
		look := func(e Eyes, p score.Probe) (Result, string) {
			return (&looker{eyes: e, probe: p, hangs: true}).look(t.Context())
		}
		for _, p := range probes {
			if r, detail := look(Eyes{}, p); r != Unseen || detail == "" {
				t.Errorf("without eyes: got %d, %q", r, detail)
			}
		}
		for _, c := range []memory.Capability{memory.Probes, memory.Services, memory.Containers} {
			d.Unavailable(c, "its socket is gone")
		}
		for _, p := range probes {
			if r, detail := look(eyes(d), p); r != Unseen || detail != "its socket is gone" {
				t.Errorf("dead: got %d, %q", r, detail)
			}
		}
		d.Heal()
		d.Fail("", "", topology.Faultf(topology.CodeIO, "the card is gone"))
		for _, p := range probes[2:] {
			if r, detail := look(eyes(d), p); r != Unseen || detail != "the card is gone" {
				t.Errorf("failing: got %d, %q", r, detail)
			}
		}
	})
}

// A clock that jumps makes no file stale that is written, and none fresh for ever that is not.
func TestFileWhileClocksJump(t *testing.T) { // H63, case 135
	const limit, day = time.Minute, 24 * time.Hour
	type step struct {
		after time.Duration // since the last step
		jump  time.Duration // of the clock, then
		write bool          // then
		late  time.Duration // another jump of the clock, before the look
		want  bool
	}
	tests := []struct {
		name  string
		old   time.Duration // the file, by the clock; before the first step
		steps []step
	}{
		{"written, and then no more", 0, []step{{want: true}, {after: time.Minute, want: true}, {after: 1, want: false}, {write: true, want: true}}},
		{"not new at the first look", 40 * time.Second, []step{{want: true}, {after: 20 * time.Second, want: true}, {after: 1, want: false}}},
		{"old at the first look", day, []step{{want: false}, {after: time.Second, want: false}, {write: true, want: true}}},
		{"the clock goes forward", 0, []step{{want: true}, {after: 30 * time.Second, jump: day, want: true}, {after: 31 * time.Second, want: false}, {write: true, want: true}}},
		{"the clock goes forward after a write", 0, []step{{want: true}, {after: time.Hour, write: true, late: day, want: true}, {after: time.Minute + 1, want: false}}},
		{"the clock goes back", 0, []step{{want: true}, {after: 30 * time.Second, jump: -day, want: true}, {after: 31 * time.Second, want: false}, {after: day, want: false}}},
		{"written after the clock went back", 0, []step{{want: true}, {jump: -day, write: true, want: true}, {after: time.Minute, want: true}, {after: 1, want: false}}},
		{"written tomorrow", -day, []step{{want: true}, {after: time.Minute, want: true}, {after: 1, want: false}, {after: day, want: false}, {write: true, want: true}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			clock, steady := start, start.Add(-day)
			written := clock.Add(-tt.old)
			var a age
			for i, s := range tt.steps {
				clock, steady = clock.Add(s.after+s.jump), steady.Add(s.after)
				if s.write {
					written = clock
				}
				clock = clock.Add(s.late)
				if got := a.lately(written, clock, steady, limit); got != s.want {
					t.Errorf("step %d: got %t", i, got)
				}
			}
		})
	}
	var a age
	if a.lately(start, start, start, limit); a.lately(time.Time{}, start, start, limit) {
		t.Error("a file that is gone was written lately")
	}
}
