package score_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func TestSelector(t *testing.T) { // X21
	labels := []map[string]string{
		nil, {"role": "kiosk"}, {"role": "kiosk", "site": "lab"}, {"role": "broker", "site": "lab"}, {"role": ""},
	}
	eq := func(k, v string) score.Selector { return score.Selector{MatchLabels: map[string]string{k: v}} }
	ex := func(k string, o score.Operator, vs ...string) score.Selector {
		return score.Selector{MatchExpressions: []score.Requirement{{Key: k, Operator: o, Values: vs}}}
	}
	both := eq("role", "kiosk")
	both.MatchExpressions = ex("site", score.Exists).MatchExpressions
	tests := []struct {
		name string
		s    score.Selector
		want []bool
	}{
		{"empty", score.Selector{}, []bool{true, true, true, true, true}},
		{"equal", eq("role", "kiosk"), []bool{false, true, true, false, false}},
		{"equal to nothing", eq("role", ""), []bool{false, false, false, false, true}},
		{"In", ex("role", score.In, "kiosk", "broker"), []bool{false, true, true, true, false}},
		{"NotIn", ex("role", score.NotIn, "kiosk"), []bool{true, false, false, true, true}},
		{"Exists", ex("site", score.Exists), []bool{false, false, true, true, false}},
		{"DoesNotExist", ex("site", score.DoesNotExist), []bool{true, true, false, false, true}},
		{"both", both, []bool{false, false, true, false, false}},
		{"unknown operator matches nothing", ex("role", "Like", "kiosk"), []bool{false, false, false, false, false}},
	}
	for _, tt := range tests {
		for i, l := range labels {
			if got := tt.s.Matches(l); got != tt.want[i] {
				t.Errorf("%s on %v: got %v", tt.name, l, got)
			}
		}
	}
}

func broker(d *score.Draft[score.PiZero]) {
	conf := score.AddFile(d, "conf", score.File{Path: "/etc/mosquitto/mosquitto.conf", Mode: 0o644})
	score.AddService(d, "unit", score.Service{Unit: "mosquitto.service", State: score.Running, RestartOn: []score.ID{conf.ID(), "certs"}})
	d.After(conf.ID(), "certs")
}

// TestCompose: members carry the id of the composite, references between them follow,
// references to others stay, and the same composite is the same scores (H75, X105).
func TestCompose(t *testing.T) {
	write := func() score.Manifest {
		d := score.NewDraft[score.PiZero]("home", score.Target{Device: "pi-7"})
		score.AddFile(d, "certs", score.File{Path: "/etc/certs.pem", Mode: 0o600})
		d.Compose("broker", broker)
		d.Compose("site", func(d *score.Draft[score.PiZero]) {
			d.Compose("inner", func(d *score.Draft[score.PiZero]) {
				score.AddHostname(d, "name", score.Hostname{Name: "pi-7"})
			})
		})
		return d.Manifest()
	}
	m := write()
	if p := m.Validate(); len(p) > 0 {
		t.Fatalf("problems: %v", p)
	}
	var ids []string
	for _, s := range m.Spec.Scores {
		ids = append(ids, string(s.ID))
	}
	if got, want := strings.Join(ids, " "), "certs broker/conf broker/unit site/inner/name"; got != want {
		t.Errorf("ids are %s, want %s", got, want)
	}
	unit := m.Spec.Scores[2]
	want := []score.ID{"broker/conf", "certs"}
	if !slices.Equal(unit.After, want) || !slices.Equal(unit.Spec.(score.Service).RestartOn, want) {
		t.Errorf("got after %v, restartOn %v", unit.After, unit.Spec.(score.Service).RestartOn)
	}
	if !reflect.DeepEqual(write(), m) {
		t.Error("the same composite gives other scores")
	}
	// The members that went in are not changed.
	members := []score.Score{{ID: "a", After: []score.ID{"b"}, Spec: score.Container{RestartOn: []score.ID{"b"}}}, {ID: "b", Spec: score.Hostname{}}}
	out := score.Compose("c", members...)
	if members[0].After[0] != "b" || members[0].Spec.(score.Container).RestartOn[0] != "b" {
		t.Errorf("Compose has changed its arguments: %+v", members)
	}
	if out[0].After[0] != "c/b" || out[0].Spec.(score.Container).RestartOn[0] != "c/b" {
		t.Errorf("got %+v", out)
	}
}

// TestDraftIsCopied: a manifest that was handed out does not change with its draft.
func TestDraftIsCopied(t *testing.T) {
	d := score.NewDraft[score.RaspberryPi]("m", score.Target{Device: "pi-7"})
	score.AddHostname(d, "a", score.Hostname{Name: "a"})
	m := d.Manifest()
	d.After("b")
	score.AddHostname(d, "b", score.Hostname{Name: "b"})
	if len(m.Spec.Scores) != 1 || len(m.Spec.Scores[0].After) != 0 {
		t.Errorf("got %+v", m.Spec.Scores)
	}
	if m.Spec.Profile != "raspberry-pi" || m.Spec.Policy != (score.Policy{}) || m.APIVersion != score.APIVersion {
		t.Errorf("got %+v", m)
	}
	defer func() {
		if p := recover(); p != "score: profile is not in the table of profiles" {
			t.Errorf("got %v", p)
		}
	}()
	score.NewDraft[struct{}]("m", score.Target{})
}

// TestDraftSaysEverything: whatever a manifest can say can be written in Go, of the score that was added last, and
// nothing that was handed in is shared.
func TestDraftSaysEverything(t *testing.T) {
	d := score.NewDraft[score.PiZero]("m", score.Target{Device: "pi-7"})
	policy := score.Policy{Preset: score.Converge, Brake: &score.Brake{MaxRemovals: new(1)}}
	health := score.Health{Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}}}
	engine := score.Engine{Retries: new(2)}
	d.Policy(policy).AllowExperimental()
	score.AddFile(d, "gone", score.File{Path: "/etc/gone", Mode: 0o644})
	d.Decommission()
	score.AddService(d, "web", score.Service{Unit: "web.service", State: score.Running})
	d.Restrict(policy).Health(health).Engine(engine)
	want := score.ManifestSpec{
		Profile: "pi-zero", Target: score.Target{Device: "pi-7"}, AllowExperimental: true,
		Policy: score.Policy{Preset: score.Converge, Brake: &score.Brake{MaxRemovals: new(1)}},
		Scores: []score.Score{
			{ID: "gone", Decommission: true, Spec: score.File{Path: "/etc/gone", Mode: 0o644}},
			{ID: "web", Policy: &score.Policy{Preset: score.Converge, Brake: &score.Brake{MaxRemovals: new(1)}},
				Health: &score.Health{Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}}}, Engine: &score.Engine{Retries: new(2)},
				Spec: score.Service{Unit: "web.service", State: score.Running}},
		},
	}
	*policy.Brake.MaxRemovals, health.Readiness.TCP.Port, *engine.Retries = 9, 9, 9
	if got := d.Manifest().Spec; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	defer func() {
		if p := recover(); p != "score: the draft has no score yet that this could be said of" {
			t.Errorf("got %v", p)
		}
	}()
	score.NewDraft[score.PiZero]("m", score.Target{}).Engine(engine)
}

func TestProfiles(t *testing.T) {
	for _, name := range score.Profiles() {
		caps, ok := score.ProfileCapabilities(name)
		if !ok || slices.Contains(caps, score.CapContainers) != (name == "raspberry-pi") || !slices.Contains(caps, score.CapFiles) {
			t.Errorf("%s has %v", name, caps)
		}
	}
	if _, ok := score.ProfileCapabilities("amiga"); ok {
		t.Error("an Amiga has a profile")
	}
}

// TestOrderMeansNothing: any permutation of scores gives one order (H26).
func TestOrderMeansNothing(t *testing.T) {
	scores := []score.Score{
		name("z", "/z"), name("a", "/a", "m", "z"), name("m", "/m", "z", "not-there"), name("b", "/b"), name("k", "/k", "a"),
		{ID: "s", After: []score.ID{"b"}, Spec: score.Service{Unit: "s.service", State: score.Running, RestartOn: []score.ID{"k", "b"}}},
	}
	want := score.Order(scores)
	at := map[score.ID]int{}
	for i, s := range want {
		at[s.ID] = i
	}
	for _, s := range want {
		for _, need := range s.Needs() {
			if i, ok := at[need]; ok && i >= at[s.ID] {
				t.Errorf("%s comes before %s, which it needs", s.ID, need)
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 720 {
		rng.Shuffle(len(scores), func(i, j int) { scores[i], scores[j] = scores[j], scores[i] })
		if got := score.Order(scores); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v, want %v", ids(got), ids(want))
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a cycle was ordered")
		}
	}()
	score.Order([]score.Score{name("a", "/a", "b"), name("b", "/b", "a")})
}

func ids(scores []score.Score) (out []score.ID) {
	for _, s := range scores {
		out = append(out, s.ID)
	}
	return out
}

func TestNeeds(t *testing.T) {
	s := score.Score{After: []score.ID{"a", "b"}, Spec: score.Container{RestartOn: []score.ID{"b", "c"}}}
	for range 2 { // and the score is not changed by it
		if got := fmt.Sprint(s.Needs()); got != "[a b c]" || len(s.After) != 2 {
			t.Errorf("got %s", got)
		}
	}
}

type badSpec struct{ score.Hostname }

type rawSpec struct {
	Any map[string]any `json:"any"`
}

func (rawSpec) Kind() score.Kind         { return "raw" }
func (rawSpec) Check(*score.Report)      {}
func (rawSpec) Claims() []score.Resource { return nil }

func (badSpec) Kind() score.Kind { return "embedded" }

// TestRegisterRefuses: what is not plain data is no kind (H20, H32).
func TestRegisterRefuses(t *testing.T) {
	tests := []struct {
		want     string
		register func()
	}{
		{"bad or duplicate kind \"file\"", func() { score.Register(score.Definition[score.File]{}) }},
		{"kind \"raw\" is not plain data: raw.Any[] is a interface", func() { score.Register(score.Definition[rawSpec]{}) }},
		{"kind \"embedded\" is not plain data: embedded.Hostname is unexported or embedded", func() { score.Register(score.Definition[badSpec]{}) }},
	}
	for _, tt := range tests {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, tt.want) {
					t.Errorf("got %q, want …%s…", p, tt.want)
				}
			}()
			tt.register()
		}()
	}
}

// TestSpecIsSmall: what every kind has to say are three things. Whatever else one can do, and whatever a score has beside its
// kind, comes without changing the others (X32).
func TestSpecIsSmall(t *testing.T) {
	var methods []string
	for m := range reflect.TypeFor[score.Spec]().Methods() {
		methods = append(methods, m.Name)
	}
	if !slices.Equal(methods, []string{"Check", "Claims", "Kind"}) {
		t.Errorf("a spec must have %v: put what is new into an interface of its own", methods)
	}
	more := map[string]reflect.Type{
		"Restarter": reflect.TypeFor[score.Restarter](), "Reloader": reflect.TypeFor[score.Reloader](), "SecretUser": reflect.TypeFor[score.SecretUser](),
		"BlobUser": reflect.TypeFor[score.BlobUser](), "Confirming": reflect.TypeFor[score.Confirming](), "User": reflect.TypeFor[score.User](),
	}
	for name, i := range more {
		with, without := 0, 0
		for _, k := range score.Kinds() {
			if k.Type.Implements(i) {
				with++
			} else {
				without++
			}
		}
		if with == 0 || without == 0 {
			t.Errorf("%d kinds are a %s, and %d are none", with, name, without)
		}
	}
}
