package agent_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// wishes makes a random intent: some things, each in one of two manifests.
func wishes(rnd *rand.Rand, generation uint64) agent.Intent {
	ms := []score.Manifest{manifest("a"), manifest("b")}
	for i := range ms {
		ms[i].Metadata.Generation = generation
		conf := file("conf", fmt.Sprintf("/etc/%d.conf", i), fmt.Sprint(rnd.IntN(3)))
		ms[i].Spec.Scores = append(ms[i].Spec.Scores, conf)
		if rnd.IntN(3) > 0 {
			ms[i].Spec.Scores = append(ms[i].Spec.Scores, service("app", fmt.Sprintf("app%d.service", i), "conf"))
		}
	}
	for i := range 5 {
		if m := rnd.IntN(3); m < 2 {
			ms[m].Spec.Scores = append(ms[m].Spec.Scores, file(score.ID(fmt.Sprint("f", i)), fmt.Sprintf("/srv/%d", i), fmt.Sprint(rnd.IntN(3))))
		}
	}
	if m := rnd.IntN(3); m < 2 {
		web := score.Container{Name: []string{"web", "www"}[rnd.IntN(2)], Image: "localhost/app:1", Ports: []score.Port{{Host: uint16(80 + rnd.IntN(2)), Container: 80}}}
		ms[m].Spec.Scores = append(ms[m].Spec.Scores, score.Score{ID: "web", Spec: web})
	}
	return intent(generation, ms...)
}

// Whatever happens, in whatever order, the device ends in the state of the last intent, and
// its books say just what it holds: intents, drift, failures of the device and of the disk,
// kills and power cuts, blocks.
func TestEverythingAtOnce(t *testing.T) {
	for seed := range uint64(40) {
		bubble(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			r := newRig(t)
			var full atomic.Bool // the disk of the books
			fault := func(store.Step) error {
				if full.Load() {
					return errors.New("no space left")
				}
				return nil
			}
			r.disk.Fault = fault
			_, f, h, stop := r.running()
			var last agent.Intent
			for g := uint64(1); g <= 60; g++ {
				switch rnd.IntN(12) {
				default:
					in := wishes(rnd, g)
					if h.Offer(in) == nil {
						last = in
					}
				case 0:
					// only what is there: what is not would be foreign, and stay
					if path := fmt.Sprintf("/etc/%d.conf", rnd.IntN(2)); slices.Contains(r.dev.List("/etc"), path) {
						r.dev.Put(path, "by hand")
					}
				case 1:
					r.dev.StopUnit(fmt.Sprintf("app%d.service", rnd.IntN(2)))
				case 2:
					for range rnd.IntN(5) {
						op := []memory.Op{memory.OpWriteFile, memory.OpFile, memory.OpRun, memory.OpRestart, memory.OpStart, memory.OpRemoveFile, memory.OpRemoveContainer, memory.OpEnsureImage}[rnd.IntN(8)]
						r.dev.FailOnce(op, "", topology.Faultf(topology.CodeIO, "io"))
					}
				case 3, 4:
					stop()
					full.Store(false)
					r.disk = r.disk.Crash([]store.Loss{store.LoseAll, store.LoseNothing, store.LoseHalf, store.LoseToZeros}[rnd.IntN(4)])
					r.start()
					r.disk.Fault = fault
					_, f, h, stop = r.running()
				case 6:
					full.Store(rnd.IntN(2) == 0)
				case 5:
					h.Control(agent.Control{Blocked: rnd.IntN(2) == 0})
				}
				time.Sleep(time.Duration(rnd.Int64N(int64([]time.Duration{time.Millisecond, time.Second, time.Minute}[rnd.IntN(3)]))))
			}
			h.Control(agent.Control{})
			r.dev.Heal()
			full.Store(false)
			if err := h.Offer(last); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Minute)
			synctest.Wait()
			st := f.last()
			if slices.ContainsFunc(st.Orphans, func(o interpret.Orphan) bool { return o.Code == interpret.CodeBrake }) {
				return // too many of them came together
			}
			others := slices.ContainsFunc(st.Problems, func(p interpret.Problem) bool { return p.Code != agent.CodeRecovered })
			if !st.ConvergedAt(last.Generation) || len(st.Orphans) > 0 || others {
				t.Errorf("seed %d: generation %d %s: %s left %v problems %v", seed, st.Generation, st.State, outcomes(st), st.Orphans, st.Problems)
			}
			r.holds(seed, last)
		})
	}
}

// holds compares the device and the books with an intent.
func (r *rig) holds(seed uint64, in agent.Intent) {
	var want, there []string
	for _, m := range in.Assignment.Spec.Manifests {
		for _, s := range m.Spec.Scores {
			for _, c := range s.Spec.Claims() {
				want = append(want, fmt.Sprintf("%s %s/%s", c, m.Metadata.Name, s.ID))
			}
			if fs, ok := s.Spec.(score.File); ok {
				there = append(there, fs.Path+" "+fs.Content)
			}
		}
	}
	var owned, have []string
	for _, e := range r.store.Entries() {
		owned = append(owned, fmt.Sprintf("%s %s/%s", e.Resource, e.Manifest, e.Score))
	}
	for _, p := range append(r.dev.List("/srv"), "/etc/0.conf", "/etc/1.conf") {
		if c, ok := r.dev.Read(p); ok {
			have = append(have, p+" "+c)
		}
	}
	for _, s := range [][]string{want, there, owned, have} {
		slices.Sort(s)
	}
	if !slices.Equal(owned, want) || len(r.store.OpenActions()) > 0 {
		r.t.Errorf("seed %d: the books hold\n%v\nwant\n%v\nopen %v", seed, owned, want, r.store.OpenActions())
	}
	if !slices.Equal(have, there) {
		r.t.Errorf("seed %d: the device has\n%v\nwant\n%v", seed, have, there)
	}
}
