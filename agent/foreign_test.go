package agent_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
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
								op.Approvals = append(op.Approvals, interpret.Approval{Manifest: a.Manifest, Score: a.Score, Action: a.Action, Effect: a.Effect, Resources: a.Resources, SpecDigest: a.SpecDigest})
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

// A foreign file is a conflict for whatever policy lets a device act by itself. With a person's consent it is overwritten,
// after a durable copy; a foreign container never (cases 83, K14).
func TestForeign(t *testing.T) {
	r := newRig(t)
	r.dev.Put("/etc/motd", "precious")
	r.dev.RunByHand("web", "localhost/other:1")
	in := intent(1, manifest("m", file("motd", "/etc/motd", "ours"), container("web", "web")))
	r.want(r.apply(in), "m/motd=conflict/foreign m/web=conflict/foreign")
	if c, _ := r.dev.Read("/etc/motd"); c != "precious" {
		t.Fatalf("the file is %q", c)
	}
	st := r.confirm(in)
	r.want(st, "m/motd=changed m/web=conflict/foreign")
	name := st.Manifests[0].Scores[0].Backup
	_, content, err := r.store.ReadBackup(name)
	if err != nil || string(content) != "precious" {
		t.Errorf("backup %q holds %q, %v", name, content, err)
	}
}

// Without a reader of files nothing foreign can be backed up, so nothing foreign is overwritten.
func TestForeignWithoutBackup(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*rig)
	}{
		{"no reader", func(r *rig) { r.runner.Files = nil }},
		{"cannot be read", func(r *rig) {
			r.dev.Fail(memory.OpContent, "file:/etc/motd", topology.Faultf(topology.CodeIO, "io"))
		}},
	} {
		r := newRig(t)
		r.dev.Put("/etc/motd", "precious")
		tt.set(r)
		st := r.confirm(intent(1, manifest("m", file("motd", "/etc/motd", "ours"))))
		s := st.Manifests[0].Scores[0]
		if c, _ := r.dev.Read("/etc/motd"); c != "precious" || s.Outcome != interpret.Failed || !strings.Contains(s.Message, "cannot back up what is there") {
			t.Errorf("%s: content %q, %s: %s", tt.name, c, s.Outcome, s.Message)
		}
	}
	r := newRig(t) // a foreign unit file
	r.dev.Put("/etc/systemd/system/s.service", "[Service]\nExecStart=/usr/bin/theirs\n")
	st := r.confirm(intent(1, manifest("m", service("s", "s.service"))))
	name := st.Manifests[0].Scores[0].Backup
	if _, content, err := r.store.ReadBackup(name); err != nil || !strings.Contains(string(content), "theirs") {
		t.Errorf("backup %q holds %q, %v", name, content, err)
	}
}

// An agent that was never told anything changes nothing, and removes nothing, whatever the device holds that looks as if
// it were its own, and however often it looks; so does one whose only intent on disk is damaged (S22, S23).
func TestColdStartLeavesWhatLooksManaged(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			made := newRig(t)
			var scores []score.Score
			for i := range 8 {
				scores = append(scores, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/srv/f%d", i), "x"))
			}
			in := intent(1, manifest("m", append(scores, service("s", "s.service"), container("web", "web"))...))
			made.apply(in)

			r := newRig(t)
			r.dev, r.runner.Table, r.runner.Files = made.dev, made.runner.Table, made.runner.Files
			if damaged {
				_, _, h, stop := r.running()
				offer(t, h, in)
				time.Sleep(time.Minute)
				stop()
				for name, b := range r.disk.Files() {
					if len(name) > 7 && name[:7] == "intent/" {
						for i := range b {
							b[i] ^= 0xff
						}
						r.disk.Put(name, b)
					}
				}
				r.restart()
			}
			rec := r.dev.Record()
			_, f, _, _ := r.running()
			for range 100 {
				time.Sleep(10 * time.Minute) // a full pass, at least
			}
			synctest.Wait()
			if m := rec.Mutations(); len(m) > 0 {
				t.Errorf("damaged %v: called %v", damaged, m)
			}
			if st := f.last(); st.State != interpret.StateNoIntent {
				t.Errorf("damaged %v: state %s", damaged, st.State)
			}
			if left := len(r.dev.List("/srv")); left != 8 {
				t.Errorf("damaged %v: %d of 8 files are left", damaged, left)
			}
		})
	}
}
