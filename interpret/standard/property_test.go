package standard_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// wishes makes random, valid specs of each kind.
var wishes = map[score.Kind]func(*rand.Rand) score.Spec{
	score.KindFile: func(r *rand.Rand) score.Spec {
		f := score.File{
			Path: fmt.Sprintf("/srv/%d", r.IntN(5)), Content: pick(r, "", "\n", "a", "a\n", "a\r\n", "\u00e9\U0001F680"),
			Mode: score.Mode(r.IntN(0o10000)), Owner: pick(r, "", "root", "pi", "1000", "54321"), Group: pick(r, "", "root", "pi", "0"),
			State: pick(r, "", "", score.Present, score.Absent), Create: pick(r, "", score.CreateAlways, score.CreateOnce),
			Normalize: pick(r, nil, []score.Normalization{score.NormalizeCRLF}, []score.Normalization{score.NormalizeTrailingNewline, score.NormalizeCRLF}),
		}
		if f.Content == "a" {
			f.Content, f.Template = "", &score.Template{Text: "{{ .vars.a }} of {{ .facts.arch }}\n", Vars: map[string]string{"a": pick(r, "", "1", "$x %n")}}
		}
		return f
	},
	score.KindDirectory: func(r *rand.Rand) score.Spec {
		return score.Directory{
			Path: fmt.Sprintf("/srv/%d", r.IntN(5)), Mode: score.Mode(r.IntN(0o10000)), Owner: pick(r, "", "root", "pi", "1000", "54321"), Group: pick(r, "", "root", "pi", "0"),
			State: pick(r, "", "", score.Present, score.Absent), Exclusive: r.IntN(2) == 0,
		}
	},
	score.KindSymlink: func(r *rand.Rand) score.Spec {
		return score.Symlink{Path: fmt.Sprintf("/srv/%d", r.IntN(5)), Target: pick(r, "a", "/srv/9", "../caf\u00e9 \U0001F680"), State: pick(r, "", "", score.Present, score.Absent)}
	},
	score.KindHosts: func(r *rand.Rand) score.Spec {
		h := score.Hosts{Entries: []score.HostEntry{{Address: "192.0.2.1", Names: []string{"a"}}}}
		for range r.IntN(3) {
			h.Entries = append(h.Entries, score.HostEntry{Address: pick(r, "192.0.2.2", "2001:db8::2"), Names: pick(r, []string{"b"}, []string{"c", "d.example.org"})})
		}
		return h
	},
	score.KindService: func(r *rand.Rand) score.Spec {
		s := score.Service{Unit: fmt.Sprintf("u%d.service", r.IntN(3)), State: pick(r, "", score.Running, score.Stopped)}
		s.UnitFile = "[Service]\nExecStart=/usr/bin/x\n" + pick(r, "", "Restart=always\n", "# comment\n") + "[Install]\nWantedBy=multi-user.target\n"
		if r.IntN(3) > 0 {
			s.Enabled = new(r.IntN(2) == 0)
		}
		return s
	},
	score.KindContainer: func(r *rand.Rand) score.Spec {
		c := score.Container{
			Name: fmt.Sprintf("con%d", r.IntN(3)), Image: pick(r, "a.b/c:1", "a.b/c:2"),
			Restart: pick(r, "", score.RestartNever, score.RestartFailure, score.RestartAlways), Env: map[string]score.Value{},
		}
		for _, k := range []string{"A", "B", "C"}[:r.IntN(4)] {
			c.Env[k] = score.Text(pick(r, "", "1", "$x %n"))
		}
		for i, p := range r.Perm(3)[:r.IntN(4)] {
			c.Ports = append(c.Ports, score.Port{Host: uint16(8000 + p), Container: uint16(80 + i), UDP: p == 2})
			c.Command = append(c.Command, pick(r, "", "a b", "--x"))
		}
		return c
	},
	score.KindTimeSync: func(r *rand.Rand) score.Spec {
		servers := func() []string { return []string{"192.0.2.1", "a.example.org", "b.example.org"}[r.IntN(4)%3:] }
		s := score.TimeSync{Timezone: pick(r, "Europe/Berlin", "Etc/UTC"), Servers: pick(r, nil, servers()), Fallback: pick(r, nil, servers())}
		if r.IntN(2) == 0 {
			s.Enabled = new(r.IntN(2) == 0)
		}
		return s
	},
	score.KindFirewall: func(r *rand.Rand) score.Spec {
		f := score.Firewall{Input: pick(r, score.InputAccept, score.InputDrop)}
		for range r.IntN(4) {
			a := score.Allow{
				Protocol: pick(r, "", "tcp", "udp"), Interface: pick(r, "eth0", "wlan0"),
				From: pick(r, nil, []string{"192.0.2.0/24", "2001:db8::/32"}, []string{"0.0.0.0/0"}),
			}
			for range r.IntN(3) {
				a.Ports = append(a.Ports, score.PortSpan{First: uint16(1 + r.IntN(100)), More: uint16(r.IntN(3))})
			}
			f.Allow = append(f.Allow, a)
		}
		if r.IntN(2) == 0 {
			f.ICMP = new(r.IntN(2) == 0)
		}
		return f
	},
	score.KindVolume: func(r *rand.Rand) score.Spec { return score.NamedVolume{Name: fmt.Sprintf("v-%d", r.IntN(50))} },
	score.KindContainerNetwork: func(r *rand.Rand) score.Spec {
		n := score.ContainerNetwork{Name: pick(r, "one", "two"), Internal: r.IntN(2) == 0, NoDNS: r.IntN(2) == 0}
		for i := range r.IntN(3) {
			n.Subnets = append(n.Subnets, score.Subnet{Subnet: fmt.Sprintf("192.0.2.%d/26", 64*i), Gateway: pick(r, "", fmt.Sprintf("192.0.2.%d", 64*i+5))})
		}
		return n
	},
	score.KindJob: func(r *rand.Rand) score.Spec {
		j := score.Job{Name: fmt.Sprintf("job%d", r.IntN(3)), Retries: r.IntN(3)}
		if r.IntN(2) == 0 {
			j.Unit = &score.JobUnit{Exec: []string{"/usr/bin/x", pick(r, "", "a b", "$x %n")}, Env: map[string]string{"A": pick(r, "", "1")}}
		} else {
			j.Container = &score.JobContainer{Image: pick(r, "a.b/c:1", "a.b/c:2"), Volumes: []score.Volume{{Source: "/srv/x", Target: pick(r, "/a", "/b")}}}
		}
		return j
	},
	score.KindHostname: func(r *rand.Rand) score.Spec { return score.Hostname{Name: fmt.Sprintf("pi-%d", r.IntN(50))} },
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// TestOnePassConverges: whatever a kind is asked for, on whatever the wish before left behind, one
// pass makes it so, and the next finds nothing to do (X75, H08).
func TestOnePassConverges(t *testing.T) {
	for _, sample := range made(t) {
		k := sample.Kind()
		t.Run(string(k), func(t *testing.T) {
			wish := wishes[k]
			if wish == nil {
				t.Fatal("add the kind to wishes, in property_test.go")
			}
			rng := rand.New(rand.NewPCG(3, 5))
			r := newRig(t)
			r.SetSecret("wifi-psk", canary)
			for range 500 {
				s := wish(rng)
				rep := score.NewReport()
				if s.Check(rep); score.Errors(rep.Problems()) > 0 {
					t.Fatalf("%+v is no valid wish: %v", s, rep.Problems())
				}
				if st := r.play(s); !st.Outcome.Converged() {
					t.Fatalf("%+v: %s %s", s, st.Outcome, st.Message)
				}
				r.settled(s)
			}
		})
	}
}

// TestWishesAreShared: two devices may be given one wish at a time, and none of them changes it.
// The race detector is the judge (cases 141).
func TestWishesAreShared(t *testing.T) {
	for _, s := range made(t) {
		before := encoded(t, s)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				d := memory.New()
				prepare(rig{t, d, nil}, s)
				table := standard.Bind(d)
				for range 3 {
					st, err := table.Play(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: s}}, &open{})
					if err != nil || !st.Outcome.Converged() {
						t.Errorf("%s: %s %s, %v", s.Kind(), st.Outcome, st.Message, err)
					}
				}
			})
		}
		wg.Wait()
		if got := encoded(t, s); got != before {
			t.Errorf("the wish was changed to %s", got)
		}
	}
}
