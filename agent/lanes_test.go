package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Whatever asks for changes, from as many sides as there are: of one thing there is one change at a time, different things are
// changed at once, and operations are answered in the order in which they came (X74).
func TestOneLanePerResource(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		var mu sync.Mutex
		now, all, most := map[topology.Resource]int{}, 0, 0
		r.dev.Before(func(_ context.Context, c memory.Call) error {
			if c.Op != memory.OpWriteFile {
				return nil
			}
			mu.Lock()
			now[c.Resource]++
			all++
			if most = max(most, all); now[c.Resource] > 1 {
				t.Errorf("%s is changed twice at once", c.Resource)
			}
			mu.Unlock()
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			now[c.Resource]--
			all--
			mu.Unlock()
			return nil
		})
		var accepted sync.Mutex
		generation, backup := uint64(0), ""
		var asked []string
		publish := func() {
			accepted.Lock()
			defer accepted.Unlock()
			generation++
			var scores []score.Score
			for i := range 10 {
				scores = append(scores, file(score.ID(fmt.Sprint("f", i)), fmt.Sprint("/etc/f", i), fmt.Sprint(generation)))
			}
			m := manifest("m", scores...)
			m.Metadata.Generation = generation
			offer(t, h, intent(generation, m))
		}
		ask := func(op interpret.Operation) {
			accepted.Lock()
			defer accepted.Unlock()
			op.ID, op.Expires = fmt.Sprint("op-", len(asked)), time.Now().Add(time.Hour)
			if err := h.Operation(op, op.ID); err != nil {
				t.Error(err)
			}
			asked = append(asked, op.ID)
		}
		r.dev.Put("/etc/f0", "theirs")
		publish()
		later(time.Second)
		backup = f.ask(t, h, interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "m"}).Actions[0].Backup
		for len(f.receipts) > 0 {
			<-f.receipts
		}
		var wg sync.WaitGroup
		for n := range uint64(8) {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(n, 1))
				for range 25 {
					switch rnd.IntN(6) {
					case 0:
						publish()
					case 1:
						ask(interpret.Operation{Verb: interpret.VerbRestore, Backup: backup})
					case 2:
						ask(interpret.Operation{Verb: interpret.VerbPlan})
					default:
						r.dev.Put(fmt.Sprint("/etc/f", rnd.IntN(10)), fmt.Sprint("by hand ", rnd.Int()))
					}
					time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		later(time.Hour)
		if st := f.last(); !st.ConvergedAt(generation) {
			t.Errorf("generation %d: %s", generation, outcomes(st))
		}
		var answered []string
		for len(f.receipts) > 0 {
			if rc := <-f.receipts; strings.HasPrefix(rc.ID, "op-") && rc.Code != agent.CodeTooManyWaiting {
				answered = append(answered, rc.ID)
			}
		}
		if !slices.Equal(answered, asked) || len(asked) < 20 || most < 2 {
			t.Errorf("asked %v, answered %v; at most %d changes at once", asked, answered, most)
		}
	})
}

// A stop in the middle of a change ends it, and closes the journal: the next start has nothing to recover from, and goes on (X58).
func TestStopInTheMiddleOfAChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, _, h, stop := r.running()
		r.dev.Before(func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpWriteFile && c.Resource == "file:/etc/b" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		offer(t, h, intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1", "a"), file("c", "/etc/c", "1", "b"))))
		later(time.Second)
		begun := time.Now()
		stop()
		if d := time.Since(begun); d > time.Second {
			t.Errorf("stopping took %s", d)
		}
		r.dev.Before(nil)
		r.disk = r.disk.Crash(store.LoseAll)
		r.start()
		if open := r.store.OpenActions(); len(open) > 0 || len(r.lost.Findings) > 0 {
			t.Errorf("open %+v, found %+v", open, r.lost.Findings)
		}
		r.gone("/etc/c")
		_, f, _, _ := r.running()
		later(time.Minute)
		if st := f.last(); !st.ConvergedAt(1) {
			t.Errorf("afterwards: %s", outcomes(st))
		}
	})
}
