package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

var errKilled = errors.New("the agent was killed")

// killAfter ends the agent before its n-th step from now: a call of the device or a
// step of its books. Nothing that it does afterwards has any effect. It returns what
// is then left of the disk, nil if it did not come to that.
func (r *rig) killAfter(n int, loss store.Loss) (left func() *store.Mem) {
	steps, dead := 0, false
	var disk *store.Mem
	step := func(books bool) error {
		if steps++; steps <= n {
			return nil
		}
		// a write that is under way leaves a part; what comes after it does not happen
		if disk == nil && (dead || !books) {
			disk = r.disk.Crash(loss)
		}
		dead = true
		return errKilled
	}
	r.runner.Parallel = 1 // one step after the other
	r.disk.Fault = func(store.Step) error { return step(true) }
	r.dev.Before(func(context.Context, memory.Call) error { return step(false) })
	return func() *store.Mem {
		if dead && disk == nil {
			disk = r.disk.Crash(loss)
		}
		return disk
	}
}

// snapshot is everything that the device has, and what the books say of it.
func (r *rig) snapshot() string {
	var b strings.Builder
	for _, p := range r.dev.List("/") {
		c, _ := r.dev.Read(p)
		st, err := r.dev.Files().File(context.Background(), p)
		fmt.Fprintf(&b, "%s %q %o %s %v\n", p, c, st.Mode, st.Mark, err)
	}
	for _, u := range []string{"app.service", "old.service", "web.service", "base.service"} {
		st, err := r.dev.Services().Service(context.Background(), u)
		fmt.Fprintf(&b, "%s %s %s %s %v\n", u, st.Load, st.Active, st.Enabled, err)
	}
	for _, c := range []string{"web", "base"} {
		st, err := r.dev.Containers().Container(context.Background(), c)
		fmt.Fprintf(&b, "%s %s %s %v\n", c, st.State, st.SpecDigest, err)
	}
	h, err := r.dev.Host().Hostname(context.Background())
	fmt.Fprintf(&b, "%v %v\n", h, err)
	var owned []string
	for _, e := range r.store.Entries() {
		owned = append(owned, fmt.Sprintf("%s %s/%s %s %d", e.Resource, e.Manifest, e.Score, e.Provenance, e.LastChanged))
	}
	slices.Sort(owned)
	fmt.Fprintf(&b, "%s\nopen %d\n", strings.Join(owned, "\n"), len(r.store.OpenActions()))
	return b.String()
}

// Killed before any step, with or without its un-synced bytes, the agent ends in the same
// state as one that was left alone: same device, same books, nothing open (H57, X44, X77).
func TestKillAtEveryStep(t *testing.T) {
	host := func(n string) score.Score { return score.Score{ID: "host", Spec: score.Hostname{Name: n}} }
	one := intent(1, manifest("m", file("conf", "/etc/app.conf", "1"), service("app", "app.service", "conf"),
		file("gone", "/etc/gone", "1"), service("old", "old.service"), container("web", "web"), host("a")))
	m := manifest("m", file("conf", "/etc/app.conf", "2"), service("app", "app.service", "conf"),
		file("new", "/etc/new/file", "2"), container("web", "web"), container("db", "base"), host("b"))
	m.Metadata.Generation = 2
	two := intent(2, m)
	prepared := func() *rig {
		r := newRig(t)
		r.dev.Put("/etc/new/file", "was here before")
		r.apply(one)
		return r
	}
	undisturbed := prepared()
	undisturbed.apply(two)
	want := undisturbed.snapshot()

	for _, loss := range []store.Loss{store.LoseAll, store.LoseNothing, store.LoseHalf, store.LoseToZeros} {
		kills := 0
		for n := 0; ; n++ {
			r := prepared()
			left := r.killAfter(n, loss)
			_, _ = r.runner.Apply(t.Context(), two) // a killed agent has nothing to say
			r.dev.Heal()
			if r.disk = left(); r.disk == nil {
				break
			}
			kills++
			r.start()
			for range 3 { // what was half done may need another look
				if st := r.apply(two); st.ConvergedAt(2) && len(st.Orphans) == 0 {
					break
				}
			}
			if got := r.snapshot(); got != want {
				t.Fatalf("loss %v, killed before step %d, found %v:\n%s", loss, n+1, r.lost.Findings, diff(want, got))
			}
		}
		if kills < 30 {
			t.Fatalf("killed %d times only", kills)
		}
	}
}

func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, l := range w {
		if !slices.Contains(g, l) {
			out = append(out, "- "+l)
		}
	}
	for _, l := range g {
		if !slices.Contains(w, l) {
			out = append(out, "+ "+l)
		}
	}
	return strings.Join(out, "\n")
}
