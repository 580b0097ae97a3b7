package agent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Whatever is published under whatever policy, and whatever people confirm, approve, adopt, release and restore: what was on
// the device and was not ours is where it was, or in a backup (K14, G38, X92).
func TestNothingForeignIsLost(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			r := newRig(t)
			_, f, h, stop := r.running()
			path := func(i int) string { return fmt.Sprint("/srv/", i) }
			precious := map[string]string{} // by path: what is there and not ours
			var story []string
			tell := func(format string, args ...any) { story = append(story, fmt.Sprintf(format, args...)) }
			byHand := func(i int) {
				c := fmt.Sprint("by hand ", rnd.IntN(1<<30))
				if rnd.IntN(5) == 0 {
					c = fmt.Sprint(rnd.IntN(3))
				}
				r.dev.Put(path(i), c)
				delete(precious, path(i))
				if _, owned := r.store.Owner("file:" + path(i)); !owned {
					precious[path(i)] = c
				}
				tell("%s := %q", path(i), c)
			}
			check := func() {
				t.Helper()
				kept, err := r.store.Backups()
				if err != nil {
					t.Fatal(err)
				}
				for p, want := range precious {
					if c, there := r.dev.Read(p); there && c == want {
						continue
					}
					found := false
					for _, b := range kept {
						if b.Path == p {
							_, content, err := r.store.ReadBackup(b.Name)
							found = found || err == nil && string(content) == want
						}
					}
					if !found {
						c, there := r.dev.Read(p)
						t.Fatalf("seed %d: %q of %s is lost; there is %q, %v\n%s", seed, want, p, c, there, strings.Join(story, "\n"))
					}
				}
			}
			for i := range 4 {
				byHand(i)
			}
			word := func() score.Policy {
				p := score.Policy{Preset: []score.Preset{score.Converge, score.Guarded, score.Reviewed}[rnd.IntN(3)]}
				if rnd.IntN(2) == 0 {
					p.OnAbsent = []score.OnAbsent{score.AbsentCollect, score.AbsentRestore, score.AbsentRelease, score.AbsentReport}[rnd.IntN(4)]
				}
				if rnd.IntN(3) == 0 {
					p.OnFailure = score.FailureRollBack
				}
				if rnd.IntN(3) == 0 {
					p.OnDrift = []score.OnDrift{score.DriftCorrect, score.DriftReport, score.DriftIgnore}[rnd.IntN(3)]
				}
				return p
			}
			ops := 0
			ask := func(op interpret.Operation) interpret.Receipt {
				ops++
				op.ID = fmt.Sprint("op-", ops)
				rc := f.ask(t, h, op)
				tell("%s %s %v → %s %s", op.Verb, op.Manifest, op.Scores, rc.Result, rc.Code)
				return rc
			}
			var in agent.Intent
			for g := uint64(1); g <= 30; g++ {
				switch rnd.IntN(9) {
				case 0, 1, 2:
					var ms []score.Manifest
					owner := map[int]string{}
					for _, name := range []string{"m", "n"} {
						var scores []score.Score
						for i := range 6 {
							if rnd.IntN(2) == 0 && owner[i] == "" {
								owner[i] = name
								s := file(score.ID(fmt.Sprint("s", i)), path(i), fmt.Sprint(rnd.IntN(3)))
								s.Decommission = rnd.IntN(6) == 0
								scores = append(scores, s)
							}
						}
						if len(scores) > 0 {
							m := under(word(), manifest(name, scores...))
							m.Metadata.Generation = g
							ms = append(ms, m)
						}
					}
					in = intent(g, ms...)
					if h.Offer(in) == nil {
						for _, m := range ms {
							for _, s := range m.Spec.Scores {
								tell("generation %d: %s/%s %q gone %v %+v", g, m.Metadata.Name, s.ID, s.Spec.(score.File).Content, s.Decommission, m.Spec.Policy)
							}
						}
					}
				case 3:
					byHand(rnd.IntN(6))
				case 4:
					plan := ask(interpret.Operation{Verb: interpret.VerbPlan}).Plan
					if plan == nil {
						break
					}
					op := interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID}
					if rnd.IntN(2) == 0 {
						op.Verb = interpret.VerbApprove
						for _, a := range plan.Actions {
							if rnd.IntN(2) == 0 {
								op.Approvals = append(op.Approvals, interpret.Approval{Manifest: a.Manifest, Score: a.Score, Action: a.Action, Resources: a.Resources, SpecDigest: a.SpecDigest})
							}
						}
					}
					ask(op)
				case 5:
					ask(interpret.Operation{Verb: interpret.VerbAdopt, Manifest: []string{"m", "n"}[rnd.IntN(2)]})
				case 6:
					ask(interpret.Operation{Verb: interpret.VerbRelease, Manifest: []string{"m", "n"}[rnd.IntN(2)]})
					for i := range 6 { // what is given up is somebody's from then on
						c, there := r.dev.Read(path(i))
						if _, owned := r.store.Owner("file:" + path(i)); !owned && there {
							precious[path(i)] = c
						}
					}
				case 7:
					if kept, err := r.store.Backups(); err == nil && len(kept) > 0 {
						b := kept[rnd.IntN(len(kept))]
						ask(interpret.Operation{Verb: interpret.VerbRestore, Backup: b.Name})
					}
				case 8:
					stop()
					r.restart()
					_, f, h, stop = r.running()
					tell("restart")
				}
				later(time.Duration(rnd.IntN(120)) * time.Second)
				check()
			}
		})
	}
}

// What is there already as it is wished is unchanged, and stays somebody else's: it is not removed when it is no longer named,
// not even when that is asked for in words, and when it becomes another it is in conflict, until it is adopted (K14, X92).
func TestEqualStaysForeign(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		text := service("s", "s.service").Spec.(score.Service).UnitFile
		r.dev.Put("/etc/a", "same")
		r.dev.Put("/etc/systemd/system/s.service", text)
		r.dev.Enable("s.service", false)
		r.dev.StartUnit("s.service")
		g := uint64(0)
		publish := func(scores ...score.Score) {
			t.Helper()
			g++
			m := manifest("m", append(scores, file("k", "/etc/k", "1"))...)
			m.Metadata.Generation = g
			offer(t, h, intent(g, m))
			later(time.Minute)
		}
		rec := r.dev.Record()
		publish(file("a", "/etc/a", "same"), service("s", "s.service"))
		r.want(f.last(), "m/a=unchanged m/k=unchanged m/s=unchanged")
		if n := len(r.store.Entries()); n != 1 {
			t.Errorf("the books claim %+v", r.store.Entries())
		}
		a, s := file("a", "/etc/a", "same"), service("s", "s.service")
		a.Decommission, s.Decommission = true, true
		publish(a, s)
		r.want(f.last(), "m/a=conflict/foreign m/k=unchanged m/s=conflict/foreign")
		publish()
		if st := f.last(); !st.ConvergedAt(g) || len(st.Orphans) > 0 {
			t.Errorf("dropped: %s, left %+v", outcomes(st), st.Orphans)
		}
		publish(file("a", "/etc/a", "same"), service("s", "s.service"))
		r.dev.Put("/etc/a", "theirs")
		later(time.Minute)
		if st, _ := scoreOf(f.last(), "m", "a"); st.Outcome != interpret.Conflict {
			t.Errorf("it is another: %s", outcomes(f.last()))
		}
		for _, c := range rec.Mutations() {
			if c.Resource != "file:/etc/k" {
				t.Errorf("called %v", c)
			}
		}
		r.content("/etc/a", "theirs")
		if !r.active(t, "s.service") {
			t.Error("the service does not run")
		}
		rc := f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m", Scores: []score.ID{"a", "s"}})
		later(time.Minute)
		if st := f.last(); rc.Result != interpret.ResultDone || !st.ConvergedAt(g) {
			t.Errorf("adopted: %+v, %s", rc, outcomes(st))
		}
		r.content("/etc/a", "same")
	})
}
