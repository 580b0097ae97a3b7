package health

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const web topology.Mark = "kiosk/web"

// rig is a Watch that runs on a device in memory, inside of a bubble.
type rig struct {
	*Watch
	t       *testing.T
	d       *memory.Device
	looks   *memory.Recorder
	mu      sync.Mutex
	changes []topology.Mark
	stop    func() // and waits until Run has returned
}

func bubble(t *testing.T, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, d: memory.New()}
		r.looks = r.d.Record()
		r.Watch = New(eyes(r.d), func(m topology.Mark) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.changes = append(r.changes, m)
		})
		r.run()
		defer func() { r.stop() }()
		f(r)
	})
}

func (r *rig) run() {
	ctx, cancel := context.WithCancel(r.t.Context())
	over := make(chan struct{})
	go func() { defer close(over); r.Run(ctx) }()
	r.stop = func() { cancel(); <-over }
}

// pass lets time pass, and what is due in it happen.
func (r *rig) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// look lets time pass until there was another look.
func (r *rig) look() {
	before := len(r.looks.Calls())
	for range 1000 {
		if r.pass(100 * time.Millisecond); len(r.looks.Calls()) > before {
			return
		}
	}
	r.t.Fatal("nobody looks")
}

// told is who was told of since the last time.
func (r *rig) told() []topology.Mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.changes = nil }()
	return r.changes
}

func (r *rig) state(mark topology.Mark) State {
	r.t.Helper()
	s, ok := r.State(mark)
	if !ok {
		r.t.Fatalf("nothing is known of %s", mark)
	}
	return s
}

func tcp(port uint16) *score.Probe {
	return &score.Probe{TCP: &score.TCPProbe{Port: port}, FailureThreshold: 3, SuccessThreshold: 2}
}

func (r *rig) listen(on bool) {
	if r.d.Unlisten("127.0.0.1:80"); on {
		r.d.Listen("127.0.0.1:80", memory.Endpoint{Status: 200})
	}
}

func TestReadiness(t *testing.T) { // H63, H64
	bubble(t, func(r *rig) {
		r.stop()
		r.Set(map[topology.Mark]score.Health{web: {Readiness: tcp(80)}, "kiosk/none": {}})
		begun := time.Now()
		if s := r.state(web); s.Ready() || s.Healthy() || !s.Alive() || s.Readiness != Unknown || s.Message != "it is not ready: the first look is still to come" {
			t.Errorf("before the first look: %+v", s)
		}
		if _, ok := r.State("kiosk/none"); ok {
			t.Error("a score without probes is known")
		}
		r.run()
		synctest.Wait()
		const refused = "it is not ready: cannot connect to 127.0.0.1:80: connection refused"
		for i, want := range []Verdict{Unknown, Unknown, Unhealthy, Unhealthy} {
			s := r.state(web)
			if s.Readiness != want || s.Ready() || s.Message != refused || !s.Since.Equal(begun) {
				t.Errorf("failed look %d: %+v, want %s", i+1, s, want)
			}
			if told := len(r.told()); (told == 1) != (i == 2) {
				t.Errorf("failed look %d: told %d times", i+1, told)
			}
			r.look()
		}
		r.listen(true)
		r.look()
		if s := r.state(web); s.Ready() || s.Message != "it is not ready: it works again, but not for long enough yet" {
			t.Errorf("after one good look: %+v", s)
		}
		r.look()
		good := time.Now()
		s := r.state(web)
		if !s.Ready() || !s.Healthy() || s.Message != "" || good.Sub(s.Since) > time.Second {
			t.Errorf("after two good looks, at %s: %+v", good, s)
		}
		if got := r.told(); !slices.Equal(got, []topology.Mark{web}) {
			t.Errorf("told of %v", got)
		}
		r.look()
		if again := r.state(web); again != s || len(r.told()) != 0 {
			t.Errorf("nothing has changed, but %+v is %+v", s, again)
		}
	})
}

func TestDelayAndPeriod(t *testing.T) {
	bubble(t, func(r *rig) {
		r.Set(map[topology.Mark]score.Health{web: {Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}, Delay: 30 * second, Period: 20 * second}}})
		r.pass(30*time.Second - 1)
		if n := len(r.looks.Calls()); n != 0 {
			t.Errorf("%d looks during the delay", n)
		}
		r.pass(1)
		if n := len(r.looks.Calls()); n != 1 {
			t.Errorf("%d looks at the end of the delay, want 1", n)
		}
		at := time.Now()
		gaps := map[time.Duration]bool{}
		for range 100 {
			r.look()
			gap := time.Since(at).Round(100 * time.Millisecond)
			if at = time.Now(); gap < 19*time.Second || gap > 21*time.Second {
				t.Errorf("%s between two looks", gap)
			}
			gaps[gap] = true
		}
		if len(gaps) < 3 {
			t.Error("looks that began together stay together")
		}
	})
}

// Nothing is done for nothing: no probes, no timer; probes at rest, no goroutines.
func TestIdle(t *testing.T) {
	bubble(t, func(r *rig) {
		synctest.Wait()
		before := runtime.NumGoroutine()
		many := map[topology.Mark]score.Health{}
		for i := range 100 {
			many[topology.Mark(fmt.Sprint("m/", i))] = score.Health{Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}}}
		}
		r.Set(many)
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > before+parallel { // those that end are counted for a while
			t.Errorf("100 probes that rest have %d goroutines", n-before)
		}
		r.looks.Reset()
		r.pass(10 * time.Minute)
		if n := len(r.looks.Calls()) / 10; n < 590 || n > 605 {
			t.Errorf("100 probes with a period of 10 s look %d times a minute", n)
		}
		r.Set(nil)
		synctest.Wait()
		if begin, _, next := r.due(time.Now().Add(time.Hour), parallel); len(begin) != 0 || !next.IsZero() {
			t.Errorf("without probes it wakes up at %s", next)
		}
		r.looks.Reset()
		r.pass(time.Hour)
		if n := len(r.looks.Calls()); n != 0 {
			t.Errorf("%d looks without probes", n)
		}
	})
}

// Four looks at once, one for each probe, and a probe that hangs holds the others up for
// its timeout only.
func TestLooksAreBounded(t *testing.T) {
	bubble(t, func(r *rig) {
		var mu sync.Mutex
		now, most := map[topology.Resource]int{}, 0
		last := map[topology.Resource]time.Time{}
		r.d.Before(func(ctx context.Context, c memory.Call) error {
			mu.Lock()
			now[c.Resource]++
			sum := 0
			for res, n := range now {
				if sum += n; n > 1 {
					t.Errorf("two looks at %s at once", res)
				}
			}
			most = max(most, sum)
			if before, ok := last[c.Resource]; ok && time.Since(before) > 4*time.Second {
				t.Errorf("%s without a look at %s: others come first", time.Since(before), c.Resource)
			}
			last[c.Resource] = time.Now()
			mu.Unlock()
			<-ctx.Done() // nothing answers
			mu.Lock()
			now[c.Resource]--
			mu.Unlock()
			return ctx.Err()
		})
		many := map[topology.Mark]score.Health{}
		for i := range 10 {
			many[topology.Mark(fmt.Sprint("m/", i))] = score.Health{Liveness: &score.Probe{
				TCP: &score.TCPProbe{Port: uint16(1 + i)}, Period: second / 2, Timeout: second,
			}}
		}
		r.Set(many)
		r.pass(30*time.Second + 1)
		if n := len(r.looks.Calls()); n != 124 || most != parallel || len(last) != 10 {
			t.Errorf("%d looks at %d, %d at once; want 124 at 10, %d at once", n, len(last), most, parallel)
		}
		if s := r.state("m/3"); s.Alive() {
			t.Errorf("what never answers is %+v", s)
		}
	})
}

func TestSetWhileItRuns(t *testing.T) {
	bubble(t, func(r *rig) {
		r.listen(true)
		other := topology.Mark("kiosk/other")
		probe := tcp(80)
		probe.SuccessThreshold = 1
		r.Set(map[topology.Mark]score.Health{web: {Readiness: probe, Liveness: probe}, other: {Readiness: probe}})
		synctest.Wait()
		s := r.state(web)
		if !s.Healthy() || s.Liveness != Healthy || len(r.told()) != 3 {
			t.Fatalf("at first: %+v", s)
		}
		equal, slower := *probe, *probe
		equal.TCP = &score.TCPProbe{Port: 80}
		slower.Period = 60 * second
		r.Set(map[topology.Mark]score.Health{web: {Readiness: &equal, Liveness: probe}})
		if again := r.state(web); again != s {
			t.Errorf("the same set again: %+v, was %+v", again, s)
		}
		if _, ok := r.State(other); ok {
			t.Error("what is no longer in the set is known")
		}
		r.pass(time.Minute)
		r.stop()
		r.Set(map[topology.Mark]score.Health{web: {Readiness: &slower, Liveness: probe}})
		if s := r.state(web); s.Readiness != Unknown || s.Liveness != Healthy || s.Healthy() || !s.Since.Equal(time.Now()) {
			t.Errorf("another readiness: %+v", s)
		}
		r.run()
		synctest.Wait()
		if s := r.state(web); !s.Healthy() {
			t.Errorf("nobody has looked at once: %+v", s)
		}
		r.Set(map[topology.Mark]score.Health{web: {Liveness: probe}})
		if s := r.state(web); s.Readiness != "" || !s.Ready() || s.Liveness != Healthy {
			t.Errorf("no readiness any more: %+v", s)
		}
	})
}

// What a look finds out about something that was started again, or taken away, meanwhile
// is not true of what is there now, also if the look had ended before.
func TestLooksThatCountNoMore(t *testing.T) { // H63, case 139
	set := map[topology.Mark]score.Health{web: {Liveness: &score.Probe{TCP: &score.TCPProbe{Port: 80}, FailureThreshold: 1}}}
	tests := []struct {
		name      string
		meanwhile func(*Watch)
		counts    bool
	}{
		{"nothing", func(*Watch) {}, true},
		{"the same set", func(w *Watch) { w.Set(set) }, true},
		{"reset", func(w *Watch) { w.Reset(web) }, false},
		{"restarted", func(w *Watch) { w.Restarted(web) }, false},
		{"another is reset", func(w *Watch) { w.Reset("kiosk/other") }, true},
		{"taken away", func(w *Watch) { w.Set(nil) }, false},
		{"taken away, and back", func(w *Watch) { w.Set(nil); w.Set(set) }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := New(Eyes{}, nil)
			w.Set(set)
			begin, _, _ := w.due(time.Now(), parallel)
			if len(begin) != 1 {
				t.Fatalf("%d looks are due", len(begin))
			}
			tt.meanwhile(w)
			changed := w.record(seen{probe: begin[0], at: time.Now(), result: Failed})
			if s, _ := w.State(web); changed != tt.counts || s.Alive() == tt.counts {
				t.Errorf("changed %t: %+v", changed, s)
			}
		})
	}
}

// It begins anew at once, although a look is under way.
func TestResetDuringALook(t *testing.T) {
	for _, anew := range []func(*rig){func(r *rig) { r.Reset(web) }, func(r *rig) { r.Restarted(web) }} {
		bubble(t, func(r *rig) {
			r.d.Listen("127.0.0.1:80", memory.Endpoint{Mute: true})
			r.Set(map[topology.Mark]score.Health{web: {Readiness: &score.Probe{
				HTTP: &score.HTTPProbe{URL: "http://127.0.0.1/"}, FailureThreshold: 1, Period: 60 * second, Timeout: 60 * second,
			}}})
			r.pass(time.Second)
			r.listen(true)
			anew(r)
			synctest.Wait()
			if s := r.state(web); !s.Ready() || len(r.looks.Calls()) != 2 {
				t.Errorf("%d looks: %+v", len(r.looks.Calls()), s)
			}
		})
	}
}

// A set that is set again breaks off no look.
func TestSetDuringALook(t *testing.T) {
	bubble(t, func(r *rig) {
		release := make(chan struct{})
		r.d.Before(func(context.Context, memory.Call) error { <-release; return nil })
		r.listen(true)
		set := map[topology.Mark]score.Health{web: {Readiness: &score.Probe{TCP: &score.TCPProbe{Port: 80}}}}
		r.Set(set)
		synctest.Wait()
		r.Set(set)
		close(release)
		synctest.Wait()
		if s := r.state(web); !s.Ready() || len(r.looks.Calls()) != 1 {
			t.Errorf("%d looks: %+v", len(r.looks.Calls()), s)
		}
	})
}

// Looks that nobody asks for any more keep no other one waiting, however patient they are.
func TestForgottenLooksEnd(t *testing.T) {
	forget := map[string]func(*rig, map[topology.Mark]score.Health){
		"removed": func(r *rig, _ map[topology.Mark]score.Health) { r.Set(nil) },
		"changed": func(r *rig, set map[topology.Mark]score.Health) {
			for mark := range set {
				set[mark] = score.Health{Liveness: &score.Probe{TCP: &score.TCPProbe{Port: 81}, Delay: 3600 * second}}
			}
			r.Set(set)
		},
		"begun anew": func(r *rig, set map[topology.Mark]score.Health) {
			r.d.Heal() // the next look is quick
			for mark := range set {
				r.Reset(mark)
			}
		},
	}
	for name, f := range forget {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				ended := make(chan struct{}, 2*parallel)
				r.d.Before(func(ctx context.Context, c memory.Call) error {
					<-ctx.Done()
					ended <- struct{}{}
					return ctx.Err()
				})
				set := map[topology.Mark]score.Health{}
				for i := range parallel {
					set[topology.Mark(fmt.Sprint("m/", i))] = score.Health{Liveness: &score.Probe{TCP: &score.TCPProbe{Port: 80}, Timeout: 3600 * second}}
				}
				r.Set(set)
				r.pass(time.Second)
				f(r, set)
				r.pass(time.Second)
				if len(ended) != parallel {
					t.Errorf("%d of %d looks have ended", len(ended), parallel)
				}
			})
		})
	}
}

func TestLiveness(t *testing.T) { // H64, S18
	bubble(t, func(r *rig) {
		r.listen(true)
		probe := &score.Probe{TCP: &score.TCPProbe{Port: 80}, Period: 10 * second}
		r.stop()
		r.Set(map[topology.Mark]score.Health{web: {Liveness: probe}})
		if s := r.state(web); !s.Alive() || !s.Healthy() || s.Liveness != Unknown {
			t.Errorf("before the first look: %+v", s)
		}
		r.run()
		synctest.Wait()
		r.told()
		hang := func() State {
			r.listen(false)
			for r.state(web).Alive() {
				r.look()
			}
			return r.state(web)
		}
		s := hang()
		if want := "it hangs: cannot connect to 127.0.0.1:80: connection refused"; s.Message != want || s.Healthy() || s.Restart.Sub(s.Since) != time.Second {
			t.Errorf("it hangs: %+v", s)
		}
		if len(r.told()) != 1 || len(r.Due(s.Restart.Add(-1))) != 0 {
			t.Error("a restart is due at once")
		}
		r.pass(time.Until(s.Restart))
		if got := r.told(); !slices.Equal(got, []topology.Mark{web}) || !slices.Equal(r.Due(time.Now()), got) {
			t.Errorf("told of %v, due is %v", got, r.Due(time.Now()))
		}
		r.pass(time.Hour) // nobody may restart it
		if got := r.told(); len(got) != 0 || len(r.Due(time.Now())) != 1 {
			t.Errorf("told of %v again", got)
		}
		r.listen(true) // and it comes back by itself
		r.look()
		if s := r.state(web); !s.Healthy() || !s.Restart.IsZero() || len(r.Due(time.Now())) != 0 {
			t.Errorf("it is back: %+v", s)
		}
		for i, want := range []time.Duration{1, 2, 4} {
			s := hang()
			if pause := s.Restart.Sub(s.Since); pause != want*time.Second || s.Restarts != i {
				t.Errorf("restart %d is put off by %s, want %d s", s.Restarts, pause, want)
			}
			r.told()
			r.pass(time.Until(s.Restart))
			if got := r.told(); !slices.Equal(got, []topology.Mark{web}) {
				t.Errorf("restart %d is due, and told of are %v", s.Restarts, got)
			}
			r.Restarted(web)
			if s := r.state(web); s.Liveness != Unknown || s.Restarts != i+1 || !s.Restart.IsZero() || len(r.Due(time.Now())) != 0 {
				t.Errorf("restarted: %+v", s)
			}
		}
		hang()
		r.Reset(web)
		if s := hang(); s.Restarts != 0 || s.Restart.Sub(s.Since) != time.Second {
			t.Errorf("after a change of the score: %+v", s)
		}
		r.Restarted(web)
		probe = &score.Probe{TCP: probe.TCP, Period: 5 * second}
		r.Set(map[topology.Mark]score.Health{web: {Liveness: probe}})
		if s := hang(); s.Restarts != 0 {
			t.Errorf("after a change of the probe: %+v", s)
		}
		r.Restarted(web)
		r.listen(true)
		r.pass(time.Minute)
		if s := hang(); s.Restarts != 0 {
			t.Errorf("after it has worked for long: %+v", s)
		}
	})
}

func TestDueIsInOrder(t *testing.T) {
	bubble(t, func(r *rig) {
		set := map[topology.Mark]score.Health{}
		var want []topology.Mark
		for i := range 10 {
			mark := topology.Mark(fmt.Sprint("m/", i))
			want = append(want, mark)
			set[mark] = score.Health{Liveness: &score.Probe{TCP: &score.TCPProbe{Port: 80}, FailureThreshold: 1}}
		}
		r.Set(set)
		r.pass(time.Minute)
		if got := r.Due(time.Now()); !slices.Equal(got, want) {
			t.Errorf("due are %v", got)
		}
	})
}

// Something that hangs whatever one does is restarted ever more rarely, for ever.
func TestRestartsAreRare(t *testing.T) { // H64, case 139
	bubble(t, func(r *rig) {
		probe := &score.Probe{TCP: &score.TCPProbe{Port: 80}, Period: second, FailureThreshold: 1}
		r.Set(map[topology.Mark]score.Health{web: {Liveness: probe}})
		restarts := 0
		for range 4 * 60 * 60 {
			r.pass(time.Second)
			for _, m := range r.Due(time.Now()) {
				r.Restarted(m)
				restarts++
			}
		}
		if restarts < 53 || restarts > 57 { // 9 in the first 9 minutes, then one in 5 minutes
			t.Errorf("%d restarts in 4 hours", restarts)
		}
	})
}

func TestRunEndsAndBeginsAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		r.d.Listen("127.0.0.1:80", memory.Endpoint{Mute: true})
		r.Set(map[topology.Mark]score.Health{web: {Readiness: &score.Probe{HTTP: &score.HTTPProbe{URL: "http://127.0.0.1/"}, Timeout: 3600 * second, FailureThreshold: 1}}})
		synctest.Wait()
		r.stop() // in the midst of a look
		if s := r.state(web); s.Readiness != Unknown {
			t.Errorf("a look that was broken off counts: %+v", s)
		}
		r.listen(true)
		r.run()
		r.look()
		if s := r.state(web); s.Readiness != Healthy {
			t.Errorf("after another start: %+v", s)
		}
	})
}

func BenchmarkDue(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := New(Eyes{}, func(topology.Mark) {})
			many := map[topology.Mark]score.Health{}
			for i := range n {
				many[topology.Mark(fmt.Sprint("m/", i))] = score.Health{Liveness: &score.Probe{Unit: "u", Delay: score.Duration(time.Duration(i) * time.Hour)}}
			}
			w.Set(many)
			for b.Loop() {
				w.due(time.Time{}, parallel)
			}
		})
	}
}
