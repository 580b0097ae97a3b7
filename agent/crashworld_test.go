package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// A world is a device with an agent that goes through a story, and with the fleet that tells it. The agent is killed on the
// way, its disk or its device fail; then it is started again, and told again what a link tells it when it connects.
type world struct {
	*rig
	loss store.Loss
	pace time.Duration                 // between full passes
	disk func(store.Step) error        // a fault of the books
	call func(memory.Call, bool) error // of the device, before (false) and after a call took effect
	seen func(interpret.DeviceStatus)  // every report

	h    agent.Handler
	stop func()

	intent  agent.Intent
	asked   interpret.Operation
	refused bool // the agent could not take or do something because of its books, and said so
	ops     int

	mu       sync.Mutex
	left     int // steps until the next kill
	kills    []int
	dead     bool
	died     chan struct{}
	steps    int
	last     interpret.DeviceStatus
	answers  map[string]interpret.Receipt
	first    interpret.Receipt // of the first operation
	breaches []string          // changes of the device that the books did not know of
}

// newWorld is a device with what others made, and no agent yet. Kills are the numbers of steps after which the agent is
// killed, each counted from its start.
func newWorld(t *testing.T, loss store.Loss, kills ...int) *world {
	w := &world{rig: newRig(t), loss: loss, kills: kills, pace: 3 * time.Second, answers: map[string]interpret.Receipt{}}
	w.dev.Program("/usr/bin/broken", memory.Program{Exits: true, Status: 3})
	w.dev.Put("/etc/motd", "theirs")
	w.dev.Put("/srv/theirs", "precious")
	w.dev.Before(w.before)
	return w
}

// live starts an agent.
func (w *world) live() {
	w.mu.Lock()
	w.dead, w.left, w.died = false, -1, make(chan struct{})
	if len(w.kills) > 0 {
		w.left, w.kills = w.kills[0], w.kills[1:]
	}
	w.mu.Unlock()
	w.rig.disk.Fault = func(s store.Step) error {
		if w.disk != nil {
			if err := w.disk(s); err != nil {
				return err
			}
		}
		return w.step(s.Op != "read")
	}
	w.runner.Table, w.runner.Parallel = standard.Bind(late{w.dev, w}), 1
	handler := make(chan agent.Handler, 1)
	a := agent.New(agent.Config{Runner: w.runner, Recovered: w.lost, Open: open, Link: &worldLink{w, w.died, handler}, Events: w.dev.Events(), Device: "pi-1", Relist: w.pace, Log: quiet()})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { a.Run(ctx); close(done) }()
	w.stop = func() { cancel(); <-done }
	w.t.Cleanup(w.stop)
	w.h = <-handler
}

// step lets the agent go on, or not any more.
func (w *world) step(counts bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return store.ErrStopped
	}
	if !counts {
		return nil
	}
	w.steps++
	if w.left--; w.left == -1 {
		w.dead = true
		close(w.died)
		return store.ErrStopped
	}
	return nil
}

// kill ends the agent now.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.dead {
		w.dead = true
		close(w.died)
	}
}

// before stands in front of every call of the device: what changes something must be open in the books.
func (w *world) before(_ context.Context, c memory.Call) error {
	if c.Mutates && c.Op != memory.OpEnsureImage && !w.store.IsOpen(string(c.Resource)) {
		w.mu.Lock()
		if !w.dead {
			w.breaches = append(w.breaches, fmt.Sprint(c))
		}
		w.mu.Unlock()
	}
	if w.call != nil && c.Mutates {
		if err := w.call(c, false); err != nil {
			return err
		}
	}
	return w.step(c.Mutates)
}

// after makes a call fail that took effect.
func (w *world) after(op memory.Op, res string, err error) error {
	if err == nil && w.call != nil {
		err = w.call(memory.Call{Op: op, Resource: topology.Resource(res), Mutates: true}, true)
	}
	return err
}

// revive starts the agent again, from what is left, and tells it what was told last.
func (w *world) revive() {
	w.stop()
	w.rig.disk = w.rig.disk.Crash(w.loss)
	w.start()
	w.live()
	_ = w.h.Offer(w.intent) // if it dies of it, that comes again
	if w.asked.ID != "" {
		_ = w.h.Operation(w.asked, digestOf(w.asked))
	}
}

// rest lets time go by.
func (w *world) rest(d time.Duration) {
	for {
		select {
		case <-w.died:
			w.revive()
			continue
		case <-time.After(d):
		}
		synctest.Wait()
		select {
		case <-w.died:
		default:
			return
		}
	}
}

// until asks the agent for something until it has it, as a link does.
func (w *world) until(f func() error) {
	w.t.Helper()
	for range 20 {
		if f() == nil {
			return
		}
		w.refused = true
		w.rest(10 * time.Second)
	}
	w.t.Fatal("the agent takes nothing any more")
}

// settle lets time go by for a full pass at least.
func (w *world) settle() { w.rest(w.pace * 4 / 3) }

func (w *world) publish(in agent.Intent) {
	w.t.Helper()
	if w.asked.ID != "" { // it is answered, and the link fetches what is new
		w.asked = interpret.Operation{}
	}
	w.intent = in
	w.until(func() error { return w.h.Offer(in) })
	w.settle()
}

func digestOf(op interpret.Operation) string { return "digest-of-" + op.ID }

// ask has an operation done, once: asked again it does nothing and has the same answer.
func (w *world) ask(op interpret.Operation) interpret.Receipt {
	w.t.Helper()
	w.ops++
	op.ID = fmt.Sprint("op-", w.ops)
	op.Expires = time.Now().Add(24 * time.Hour)
	w.asked = op
	w.until(func() error { return w.h.Operation(op, digestOf(op)) })
	w.settle()
	first := w.answer(op.ID)
	rec := w.dev.Record()
	w.until(func() error { return w.h.Operation(op, digestOf(op)) })
	w.rest(time.Second)
	if again := w.answer(op.ID); again.Result != first.Result || again.Finished != first.Finished {
		w.t.Errorf("%s %s was %s, and asked again it is %s", op.ID, op.Verb, first.Result, again.Result)
	}
	if n := rec.Mutations(); len(n) > 0 {
		w.t.Errorf("%s %s was done twice: %v", op.ID, op.Verb, n)
	}
	return first
}

func (w *world) answer(id string) interpret.Receipt {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.answers[id]
	if !ok {
		w.t.Fatalf("%s has no answer", id)
	}
	return r
}

// worldLink is the link of one life of the agent. The dead say nothing.
type worldLink struct {
	w       *world
	died    chan struct{}
	handler chan agent.Handler
}

func (l *worldLink) Run(ctx context.Context, h agent.Handler) {
	l.handler <- h
	<-ctx.Done()
}

func (l *worldLink) says(f func()) error {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	select {
	case <-l.died:
		return store.ErrStopped
	default:
		f()
		return nil
	}
}

func (l *worldLink) Ask(context.Context, interpret.ApprovalRequests) error { return nil }
func (l *worldLink) Inform(context.Context, interpret.DeviceInfo) error    { return nil }

func (l *worldLink) Report(_ context.Context, st interpret.DeviceStatus) error {
	return l.says(func() {
		l.w.last = st
		if l.w.seen != nil {
			l.w.seen(st)
		}
	})
}

func (l *worldLink) Send(_ context.Context, r interpret.Receipt) error {
	return l.says(func() {
		l.w.answers[r.ID] = r
		l.w.refused = l.w.refused || r.Code == agent.CodeStore
	})
}

// late is a device whose calls can fail after they took effect.
type late struct {
	*memory.Device
	w *world
}

func (d late) Files() topology.Files           { return lateFiles{d.Device.Files(), d.w} }
func (d late) Services() topology.Services     { return lateServices{d.Device.Services(), d.w} }
func (d late) Containers() topology.Containers { return lateContainers{d.Device.Containers(), d.w} }
func (d late) Host() topology.Host             { return lateHost{d.Device.Host(), d.w} }

type lateFiles struct {
	topology.Files
	w *world
}

func (f lateFiles) WriteFile(ctx context.Context, x topology.FileWrite) error {
	return f.w.after(memory.OpWriteFile, x.Path, f.Files.WriteFile(ctx, x))
}

func (f lateFiles) SetAttributes(ctx context.Context, x topology.FileWrite) error {
	return f.w.after(memory.OpSetAttributes, x.Path, f.Files.SetAttributes(ctx, x))
}

func (f lateFiles) RemoveFile(ctx context.Context, path string) error {
	return f.w.after(memory.OpRemoveFile, path, f.Files.RemoveFile(ctx, path))
}

type lateServices struct {
	topology.Services
	w *world
}

func (s lateServices) Define(ctx context.Context, d topology.Definition) error {
	return s.w.after(memory.OpDefine, d.Unit, s.Services.Define(ctx, d))
}

func (s lateServices) Undefine(ctx context.Context, unit string) error {
	return s.w.after(memory.OpUndefine, unit, s.Services.Undefine(ctx, unit))
}

func (s lateServices) SetEnabled(ctx context.Context, unit string, on bool) error {
	return s.w.after(memory.OpSetEnabled, unit, s.Services.SetEnabled(ctx, unit, on))
}

func (s lateServices) Start(ctx context.Context, unit string, reset bool) error {
	return s.w.after(memory.OpStart, unit, s.Services.Start(ctx, unit, reset))
}

func (s lateServices) Stop(ctx context.Context, unit string) error {
	return s.w.after(memory.OpStop, unit, s.Services.Stop(ctx, unit))
}

func (s lateServices) Restart(ctx context.Context, unit string, reset bool) error {
	return s.w.after(memory.OpRestart, unit, s.Services.Restart(ctx, unit, reset))
}

type lateContainers struct {
	topology.Containers
	w *world
}

func (c lateContainers) EnsureImage(ctx context.Context, r topology.ImageRequest) (string, error) {
	digest, err := c.Containers.EnsureImage(ctx, r)
	return digest, c.w.after(memory.OpEnsureImage, r.Image, err)
}

func (c lateContainers) Run(ctx context.Context, x topology.ContainerConfig) error {
	return c.w.after(memory.OpRun, x.Name, c.Containers.Run(ctx, x))
}

func (c lateContainers) Restart(ctx context.Context, name string) error {
	return c.w.after(memory.OpRestartRun, name, c.Containers.Restart(ctx, name))
}

func (c lateContainers) RemoveContainer(ctx context.Context, name string) error {
	return c.w.after(memory.OpRemoveContainer, name, c.Containers.RemoveContainer(ctx, name))
}

type lateHost struct {
	topology.Host
	w *world
}

func (h lateHost) SetHostname(ctx context.Context, name string) error {
	return h.w.after(memory.OpSetHostname, name, h.Host.SetHostname(ctx, name))
}

// story is the life of a device, with everything in it that an engine does: all kinds, what restarts others, collection, a
// foreign file that is adopted and given up, an installation under review, a decommission and a rollback. It tells how it
// ends.
func (w *world) story() string {
	w.t.Helper()
	w.live()
	for _, chapter := range chapters {
		chapter(w)
	}
	w.rest(3 * w.pace)
	return w.ending()
}

var chapters = []func(*world){
	func(w *world) { w.publish(edition(1)) },
	func(w *world) {
		for range 5 {
			if w.ask(interpret.Operation{Verb: interpret.VerbAdopt, Manifest: "f"}).Result == interpret.ResultDone {
				break
			}
		}
	},
	func(w *world) { w.publish(edition(2)) },
	func(w *world) {
		for range 5 {
			plan := w.ask(interpret.Operation{Verb: interpret.VerbPlan}).Plan
			if plan == nil { // that it was interrupted is an answer, too
				continue
			}
			if len(plan.Actions) == 0 {
				break
			}
			w.ask(interpret.Operation{Verb: interpret.VerbInstall, Plan: plan.ID})
		}
	},
	func(w *world) { w.publish(edition(3)) },
	func(w *world) { w.publish(edition(4)) },
	func(w *world) {
		for range 5 { // one that is interrupted may have nothing left to do
			if r := w.ask(interpret.Operation{Verb: interpret.VerbRelease, Manifest: "f"}); r.Result == interpret.ResultDone || r.Result == interpret.ResultRefused {
				break
			}
		}
	},
}

// edition is what is published as the n-th generation.
func edition(n uint64) agent.Intent {
	host := func(n string) score.Score { return score.Score{ID: "host", Spec: score.Hostname{Name: n}} }
	ends := file("ends", "/etc/ends", "1")
	one := []score.Score{file("conf", "/etc/app.conf", "1"), service("app", "app.service", "conf"), ends,
		file("gone", "/etc/gone", "1"), service("old", "old.service"), container("web", "web"), host("a")}
	two := []score.Score{file("conf", "/etc/app.conf", "2"), service("app", "app.service", "conf"), ends,
		file("new", "/etc/new/file", "2"), container("web", "web"), container("db", "base"), host("b")}
	web := two[4].Spec.(score.Container)
	web.RestartOn = []score.ID{"new"}
	two[4].Spec = web
	ends.Decommission = true
	three := slices.Clone(two)
	three[2] = ends
	m := manifest("m", [][]score.Score{one, two, three, three}[n-1]...)
	m.Metadata.Generation = n
	f := manifest("f", file("motd", "/etc/motd", "ours"))
	r := version(1, manifest("r", file("rconf", "/etc/r.conf", "1"), service("rapp", "r.service", "rconf")))
	if n == 4 {
		r = version(4, manifest("r", file("rconf", "/etc/r.conf", "2"), file("extra", "/etc/extra", "2"), brokenUnit("rapp", "r.service", "rconf")))
	}
	ms := []score.Manifest{m, f, r}
	if n > 1 {
		ms = append(ms, preset(score.Reviewed, manifest("v", file("a", "/srv/a", "1"), file("b", "/srv/b", "1", "a"), service("s", "v.service", "a"))))
	}
	return intent(n, ms...)
}

// ending is all that the device has, what its books say, and what it reports.
func (w *world) ending() string {
	w.mu.Lock()
	st := w.last
	w.mu.Unlock()
	var b strings.Builder
	b.WriteString(w.snapshot())
	for _, u := range []string{"r.service", "v.service"} {
		s, err := w.dev.Services().Service(context.Background(), u)
		fmt.Fprintf(&b, "%s %s %s %s %v\n", u, s.Load, s.Active, s.Enabled, err)
	}
	for name := range w.store.Notes("") {
		if !strings.HasPrefix(name, "op/") && !strings.HasPrefix(name, "audit/") {
			fmt.Fprintf(&b, "note %s\n", name)
		}
	}
	goods := w.store.Goods()
	for _, g := range goods {
		v, ok, err := w.store.Good(g)
		fmt.Fprintf(&b, "good %s %d %s %v %v\n", g, v.Generation, v.Digest, ok, err)
	}
	for _, m := range st.Manifests {
		for _, sc := range m.Scores {
			if msg, _, _ := strings.Cut(sc.Message, "; next try at"); msg != "" { // it may have been condemned while it waited for that
				fmt.Fprintf(&b, "%s/%s: %s\n", m.Name, sc.ID, msg)
			}
		}
	}
	fmt.Fprintf(&b, "reported %d %s: %s\norphans %v\n", st.Generation, st.State, outcomes(st), st.Orphans)
	for _, p := range st.Problems {
		if p.Code != agent.CodeRecovered { // a power cut in a write is said
			fmt.Fprintf(&b, "problem %s %s\n", p.Code, p.Message)
		}
	}
	for _, m := range st.Manifests {
		if back := m.RolledBack; back != nil {
			fmt.Fprintf(&b, "rolled back %s %d to %d: %s %s %s\n", m.Name, back.Generation, back.To, back.Score, back.Code, back.Digest)
		}
	}
	for name := range w.store.Notes("op/") {
		id := strings.TrimPrefix(name, "op/")
		if _, ok, err := w.store.Receipt(id); !ok || err != nil {
			fmt.Fprintf(&b, "no receipt of %s: %v\n", id, err)
		}
	}
	for _, x := range w.breaches {
		fmt.Fprintf(&b, "not in the books: %s\n", x)
	}
	lines := strings.Split(b.String(), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
