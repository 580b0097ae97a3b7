package agent_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Of 200 scores one cannot be made true: 199 are, and the device is partial, not failed (H69).
func TestOneOfTwoHundredFails(t *testing.T) {
	r := newRig(t)
	var scores []score.Score
	for i := range 200 {
		scores = append(scores, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/srv/f%d", i), "x"))
	}
	r.dev.Fail(memory.OpWriteFile, "file:/srv/f77", topology.Faultf(topology.CodeNoSpace, "no space left"))
	st := r.apply(intent(1, manifest("m", scores...)))
	n := map[interpret.Outcome]int{}
	for _, sc := range st.Manifests[0].Scores {
		n[sc.Outcome]++
		if (sc.ID == "f77") != (sc.Outcome == interpret.Failed) {
			t.Errorf("%s is %s", sc.ID, sc.Outcome)
		}
	}
	if n[interpret.Changed] != 199 || n[interpret.Failed] != 1 || st.State != interpret.StatePartial || st.Manifests[0].State != interpret.StatePartial {
		t.Errorf("outcomes %v, state %s", n, st.State)
	}
}

// A score of a later version of its kind is unsupported by name, and its siblings are played (S30, H37).
func TestLaterVersionOfAKind(t *testing.T) {
	r := newRig(t)
	m := manifest("m", file("a", "/etc/a", "1"), score.Score{ID: "b", Spec: score.Opaque{Of: "file/v2", Raw: []byte(`{"path":"/etc/b"}`)}}, service("s", "s.service"))
	st := r.apply(intent(1, m))
	r.want(st, "m/a=changed m/b=unsupported/unknown_kind m/s=changed")
	if b := st.Manifests[0].Scores[1]; b.Kind != "file/v2" || st.ConvergedAt(1) {
		t.Errorf("got %+v, state %s", b, st.State)
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

// Every status that an agent reports fits the schema of statuses: well, failed in every way, with
// what is left over and with problems of its own (H61).
func TestStatusesFitTheirSchema(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		log := quiet()
		_, f, h, _ := r.running(func(c *agent.Config) { c.Log = log })
		seen := map[interpret.Outcome]bool{}
		check := func() {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			for n := 0; ; n++ {
				select {
				case st := <-f.reported:
					b, err := score.Encode(st)
					if err == nil {
						err = schemas.Check("status", b)
					}
					if err != nil {
						t.Errorf("%v\n%s", err, b)
					}
					for _, m := range st.Manifests {
						for _, sc := range m.Scores {
							seen[sc.Outcome] = true
						}
					}
					continue
				default:
				}
				if n == 0 {
					t.Error("nothing was reported")
				}
				return
			}
		}
		check() // no intent
		all := func(content string) []score.Score {
			return []score.Score{file("a", "/etc/a", content), service("s", "s.service", "a"), container("web", "web"), {ID: "host", Spec: score.Hostname{Name: "kiosk-7"}}}
		}
		offer(t, h, intent(1, manifest("m", all("1")...)))
		check()
		r.dev.Symlink("/etc/a", "/etc/link")
		r.dev.RunByHand("theirs", "localhost/other:1")
		r.dev.Unavailable(memory.Host, "no host name here")
		r.dev.Fail(memory.OpWriteFile, "file:/etc/full", topology.Faultf(topology.CodeNoSpace, "no space left"))
		offer(t, h, intent(2, manifest("m", append(all("2"), file("full", "/etc/full", "x"), file("after", "/etc/after", "x", "full"), container("theirs", "theirs"),
			file("link", "/etc/link", "x"), score.Score{ID: "later", Spec: score.Opaque{Of: "hologram/v9", Raw: []byte(`{}`)}},
			score.Score{ID: "odd", Spec: score.Opaque{Of: "file", Raw: []byte(`{"acl":1}`), Why: `unknown field "acl"`, Path: "/acl"}})...)))
		check()
		h.Refused(agent.CodeDuplicate, "there are two of me")
		h.Control(agent.Control{Blocked: true})
		r.dev.Put("/etc/a", "by hand")
		check()
		h.Control(agent.Control{})
		offer(t, h, intent(3, manifest("m", file("full", "/etc/full", "x")))) // what is left over stays, for one score fails
		check()
		for _, o := range []interpret.Outcome{interpret.Unchanged, interpret.Changed, interpret.Drifted, interpret.Waiting, interpret.Conflict, interpret.Unsupported, interpret.Failed} {
			if !seen[o] {
				t.Errorf("no status had the outcome %s", o)
			}
		}
	})
}
