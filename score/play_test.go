package score_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// TestProbeProblems is the table of what is said about probes: every sentence is here once.
func TestProbeProblems(t *testing.T) {
	http := func(url string) score.Probe { return score.Probe{HTTP: &score.HTTPProbe{URL: url}} }
	file := func(path string, age score.Duration) score.Probe {
		return score.Probe{File: &score.FileProbe{Path: path, MaxAge: age}}
	}
	tcp := func(edit func(*score.Probe)) score.Probe {
		p := score.Probe{TCP: &score.TCPProbe{Port: 80}}
		edit(&p)
		return p
	}
	const full = `must be a full http or https address, such as http://127.0.0.1:8080/healthz`
	tests := []struct {
		in   score.Probe
		want []string
	}{
		{tcp(func(p *score.Probe) {
			p.TCP.Host, p.Delay, p.Period, p.Timeout, p.FailureThreshold, p.SuccessThreshold = "::1", minute, second, second, 1, 1000
		}), nil},
		{tcp(func(p *score.Probe) { p.TCP.Host = "db.example.org" }), nil},
		{http("http://127.0.0.1:8080/healthz?deep=1"), nil},
		{http("https://[::1]/"), nil},
		{score.Probe{Unit: "kiosk@1.service"}, nil},
		{score.Probe{Container: "web"}, nil},
		{file("/run/kiosk/alive", minute), nil},

		{score.Probe{}, []string{`: a probe needs one of tcp, http, unit, container and file`}},
		{score.Probe{Period: second}, []string{`: a probe needs one of tcp, http, unit, container and file`}},
		{tcp(func(p *score.Probe) { p.Unit = "a.service" }), []string{`: a probe is one of tcp, http, unit, container and file, and this one is tcp and unit`}},
		{tcp(func(p *score.Probe) { p.TCP.Port = 0 }), []string{`/tcp/port: port must be from 1 to 65535`}},
		{tcp(func(p *score.Probe) { p.TCP.Host = "a b" }), []string{`/tcp/host: host "a b" is no host name and no address`}},
		{tcp(func(p *score.Probe) { p.TCP.Host = "127.0.0.1:80" }), []string{`/tcp/host: host "127.0.0.1:80" is no host name and no address`}},
		{http(""), []string{`/http/url: url "" ` + full}},
		{http("/healthz"), []string{`/http/url: url "/healthz" ` + full}},
		{http("127.0.0.1:8080/healthz"), []string{`/http/url: url "127.0.0.1:8080/healthz" ` + full}},
		{http("ftp://127.0.0.1/"), []string{`/http/url: url "ftp://127.0.0.1/" ` + full}},
		{http("http:///healthz"), []string{`/http/url: url "http:///healthz" ` + full}},
		{http("http://a b/"), []string{`/http/url: url "http://a b/" ` + full}},
		{http("http://me:pw@127.0.0.1/"), []string{`/http/url: url holds a user or password: a manifest is no place for secrets, and a probe needs none`}},
		{http("http://me@127.0.0.1/"), []string{`/http/url: url holds a user or password: a manifest is no place for secrets, and a probe needs none`}},
		{http("http://127.0.0.1/#top"), []string{`/http/url: url "http://127.0.0.1/#top" has a fragment, which no server ever sees: leave out what is behind '#'`}},
		{http("http://127.0.0.1:70000/"), []string{`/http/url: url "http://127.0.0.1:70000/" has the port 70000, which is not of 1 to 65535`}},
		{score.Probe{Unit: "kiosk"}, []string{`/unit: unit "kiosk" must be a full unit name such as kiosk.service`}},
		{score.Probe{Unit: "kiosk@.service"}, []string{`/unit: unit "kiosk@.service" must be a full unit name such as kiosk.service`}},
		{score.Probe{Container: "Web"}, []string{`/container: container "Web" must be lower-case letters, digits, '_', '.' and '-', at most 63`}},
		{file("run/alive", minute), []string{`/file/path: path "run/alive" must be absolute and clean: no '..', no '//' and no '/' at the end`}},
		{file("/run/alive", 0), []string{`/file/maxAge: maxAge is 0s, and must be a second at least`}},

		{tcp(func(p *score.Probe) { p.Delay = -second }), []string{`/delay: delay -1s must be from 0s to 1h`}},
		{tcp(func(p *score.Probe) { p.Delay = 61 * minute }), []string{`/delay: delay 1h1m must be from 0s to 1h`}},
		{tcp(func(p *score.Probe) { p.Period = second / 2 }), []string{`/period: period 500ms must be from 1s to 24h`}},
		{tcp(func(p *score.Probe) { p.Period = -second }), []string{`/period: period -1s must be from 1s to 24h`}},
		{tcp(func(p *score.Probe) { p.Period, p.Timeout = 2*second, 3*second }), []string{`/timeout: timeout 3s is longer than the period, which is 2s`}},
		{tcp(func(p *score.Probe) { p.Timeout = 11 * second }), []string{`/timeout: timeout 11s is longer than the period, which is 10s if it is left out`}},
		{tcp(func(p *score.Probe) { p.Timeout = -second }), []string{`/timeout: timeout -1s must be 10ms at least`}},
		{tcp(func(p *score.Probe) { p.FailureThreshold = -1 }), []string{`/failureThreshold: failureThreshold -1 must be from 1 to 1000`}},
		{tcp(func(p *score.Probe) { p.SuccessThreshold = 1001 }), []string{`/successThreshold: successThreshold 1001 must be from 1 to 1000`}},
	}
	for _, tt := range tests {
		for _, at := range []string{"readiness", "liveness"} {
			m := manifest(score.Score{ID: "a", Spec: score.Container{Name: "x", Image: "a.b/c:1"}, Health: &score.Health{Readiness: &tt.in}})
			if at == "liveness" {
				m.Spec.Scores[0].Health = &score.Health{Liveness: &tt.in}
			}
			want := slices.Clone(tt.want)
			for i := range want {
				want[i] = "/spec/scores/0/health/" + at + want[i]
			}
			if got := problems(m.Validate()); !slices.Equal(got, want) {
				t.Errorf("%+v:\ngot  %q\nwant %q", tt.in, got, want)
			}
		}
	}
}

// TestPlayProblems: what is said about how a score is played, beside its probes.
func TestPlayProblems(t *testing.T) {
	alive := &score.Health{Liveness: &score.Probe{Unit: "a.service"}}
	ready := func(p score.Probe) *score.Health { p.Unit = "a.service"; return &score.Health{Readiness: &p} }
	service := score.Service{Unit: "a.service", State: score.Running}
	back := score.Policy{OnFailure: score.FailureRollBack}
	engine := func(e score.Engine) score.Score { return score.Score{Spec: service, Engine: &e} }
	tests := []struct {
		policy score.Policy
		in     score.Score
		want   []string
	}{
		{score.Policy{}, score.Score{Spec: service, Health: alive}, nil},
		{score.Policy{}, score.Score{Spec: service, Health: &score.Health{}}, []string{`/health: health says nothing: give readiness or liveness, or leave it out`}},
		{score.Policy{}, score.Score{Spec: score.Hostname{Name: "a"}, Health: ready(score.Probe{})}, nil},
		{score.Policy{}, score.Score{Spec: score.Hostname{Name: "a"}, Health: alive}, []string{`/health/liveness: liveness goes with what can be restarted; a hostname cannot`}},
		{score.Policy{}, score.Score{Spec: score.Service{Unit: "a.service", Enabled: new(true)}, Health: alive}, []string{`/health/liveness: liveness goes with state running`}},
		{score.Policy{}, score.Score{Spec: score.Opaque{Of: "x"}, Health: alive}, []string{`/kind: unknown kind "x"`}},
		{score.Policy{}, score.Score{Spec: service, Health: alive, Decommission: true}, []string{`warning /health: health has no effect: nothing is probed of what is to be removed`}},
		{score.Policy{}, score.Score{Spec: service, Decommission: true}, nil},

		{score.Policy{}, engine(score.Engine{Noop: true, Retries: new(0), Delay: second, Timeout: second, Poll: second, Limit: &score.Limit{Changes: 1, Per: second}, Group: "display"}), nil},
		{score.Policy{}, engine(score.Engine{Retries: new(-1)}), []string{`/engine/retries: retries -1 must be 0 or more`}},
		{score.Policy{}, engine(score.Engine{Delay: 1}), []string{`/engine/delay: delay 1ns must be from 1s to 5m`}},
		{score.Policy{}, engine(score.Engine{Delay: 6 * minute}), []string{`/engine/delay: delay 6m must be from 1s to 5m`}},
		{score.Policy{}, engine(score.Engine{Timeout: -second}), []string{`/engine/timeout: timeout -1s must be from 1s to 24h`}},
		{score.Policy{}, engine(score.Engine{Poll: second / 2}), []string{`/engine/poll: poll 500ms must be from 1s to 24h`}},
		{score.Policy{}, engine(score.Engine{Limit: &score.Limit{Per: minute}}), []string{`/engine/limit/changes: changes 0 must be 1 or more; to change nothing, write noop: true`}},
		{score.Policy{}, engine(score.Engine{Limit: &score.Limit{Changes: 1}}), []string{`/engine/limit/per: per must be a second at least`}},
		{score.Policy{}, engine(score.Engine{Limit: &score.Limit{Changes: 1, Per: -1}}), []string{`/engine/limit/per: per -1ns must be from 1s to 720h`}},
		{score.Policy{}, engine(score.Engine{Group: "My Group"}), []string{`/engine/group: group "My Group" must be lower-case letters, digits and '-', at most 63`}},

		{back, score.Score{Spec: service, Health: ready(score.Probe{Delay: minute})}, nil},
		{score.Policy{OnFailure: score.FailureRollBack, Deadline: minute}, score.Score{Spec: service, Health: ready(score.Probe{Delay: minute})},
			[]string{`/health/readiness: readiness takes 1m at least, and the generation is rolled back after 1m: make the deadline longer, or the probe quicker`}},
		{back, score.Score{Spec: service, Decommission: true}, []string{`/decommission: what is removed with its data cannot be rolled back: decommission it in a manifest without onFailure: rollBack`}},
		{back, score.Score{Spec: service, Health: ready(score.Probe{Delay: minute, SuccessThreshold: 55})},
			[]string{`/health/readiness: readiness takes 10m at least, and the generation is rolled back after 10m: make the deadline longer, or the probe quicker`}},
		{back, score.Score{Spec: service, Health: ready(score.Probe{Delay: 11 * minute}), Policy: &score.Policy{OnFailure: score.FailureHold}}, nil},
		{back, engine(score.Engine{Noop: true}), []string{`warning /engine/noop: while a score that is only looked at differs, its generation does not count as good, and nothing can be rolled back to it`}},
	}
	for _, tt := range tests {
		tt.in.ID = "a"
		m := manifest(tt.in)
		m.Spec.Policy = tt.policy
		got := problems(m.Validate())
		for i := range got {
			got[i] = strings.Replace(got[i], "/spec/scores/0", "", 1)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v:\ngot  %q\nwant %q", tt.in, got, tt.want)
		}
	}
}

// What comes after something that is to go has to go as well.
func TestAfterDecommissioned(t *testing.T) {
	gone := score.Score{ID: "gone", Decommission: true, Spec: score.Container{Name: "gone", Image: "a.b/c:1"}}
	next := score.Score{ID: "next", After: []score.ID{"gone"}, Spec: score.Service{Unit: "a.service", State: score.Running, RestartOn: []score.ID{"gone"}}}
	const why = `score "gone" is decommissioned: what needs it has to go as well (decommission: true), or to stop needing it`
	if got, want := problems(manifest(gone, next).Validate()), []string{"/spec/scores/1/after/0: " + why, "/spec/scores/1/spec/restartOn/0: " + why}; !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	next.Decommission = true
	if got := problems(manifest(gone, next).Validate()); got != nil {
		t.Errorf("both go: %q", got)
	}
	gone.After, gone.Decommission, next.After, next.Spec = []score.ID{"next"}, true, nil, score.Service{Unit: "a.service", State: score.Running}
	next.Decommission = false
	if got := problems(manifest(gone, next).Validate()); got != nil {
		t.Errorf("what goes comes after what stays: %q", got)
	}
}

// A trial is a kind that is experimental.
type trial struct {
	// Name of it.
	Name string `json:"name" effect:"mutate"`
	Size int    `json:"size,omitempty"`
}

func (trial) Kind() score.Kind           { return "trial" }
func (trial) Check(*score.Report)        {}
func (t trial) Claims() []score.Resource { return []score.Resource{score.Resource("trial:" + t.Name)} }

// TestExperimental: a kind that may change or go is used only by who says so (H79, H80).
func TestExperimental(t *testing.T) {
	m := manifest(score.Score{ID: "t", Spec: score.Opaque{Of: "trial"}})
	m.Spec.AllowExperimental = true
	if got := problems(m.Validate()); !slices.Equal(got, []string{`/spec/scores/0/kind: unknown kind "trial"`}) {
		t.Errorf("a build without the kind says %q", got)
	}
	score.Register(score.Definition[trial]{Doc: "A trial.", Stability: score.Experimental, Sample: trial{Name: "a"}})
	t.Cleanup(func() { score.Unregister("trial") })
	m = manifest(score.Score{ID: "t", Spec: trial{Name: "a"}})
	want := []string{`/spec/scores/0/kind: kind "trial" is experimental, which means that it may change, or go: write allowExperimental: true beside the scores to use it`}
	if got := problems(m.Validate()); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	m.Spec.AllowExperimental = true
	if got := problems(m.Validate()); got != nil {
		t.Errorf("it is allowed, and has %q", got)
	}
	info, _ := score.Lookup("trial")
	if info.Stability != score.Experimental || info.Effects["name"] != "mutate" || info.Effects["size"] != "destroy" { // X106
		t.Errorf("got %+v", info)
	}
	for _, k := range score.Kinds() {
		if k.Kind != "trial" && k.Stability != score.Stable {
			t.Errorf("%s is %q", k.Kind, k.Stability)
		}
	}
}
