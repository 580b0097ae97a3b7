package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

func files(n int) []score.Score {
	out := make([]score.Score, n)
	for i := range out {
		id := score.ID(fmt.Sprintf("f%03d", i))
		out[i] = file(id, "/srv/"+string(id), "x")
	}
	return out
}

// The brake holds above five removals and above one fifth of what is owned, whichever is more (cases 124).
func TestBrakeBoundaries(t *testing.T) {
	tests := []struct{ owned, left, orphans int }{
		{6, 1, 0}, {7, 1, 6}, // five of six, six of seven
		{30, 24, 0}, {30, 23, 7}, {29, 23, 6}, // one fifth of thirty is six
		{6, 6, 0},
	}
	for _, tt := range tests {
		r := newRig(t)
		r.apply(intent(1, manifest("m", files(tt.owned)...)))
		st := r.apply(intent(2, manifest("m", files(tt.left)...)))
		if len(st.Orphans) != tt.orphans || len(r.dev.List("/srv")) != tt.left+tt.orphans {
			t.Errorf("%d to %d: %d are left, want %d", tt.owned, tt.left, len(st.Orphans), tt.orphans)
		}
		for _, o := range st.Orphans {
			if o.Code != interpret.CodeBrake {
				t.Errorf("%d to %d: %+v", tt.owned, tt.left, o)
			}
		}
	}
}

// No score, one and five hundred (S26, H69).
func TestSizes(t *testing.T) {
	for _, n := range []int{0, 1, 500} {
		r := newRig(t)
		if n > 1 {
			r.dev.Fail(memory.OpWriteFile, "file:/srv/f007", topology.Faultf(topology.CodeIO, "io"))
		}
		for g := range 2 {
			st := r.apply(intent(uint64(g+1), manifest("m", files(n)...)))
			if len(st.Manifests) != 1 || len(st.Manifests[0].Scores) != n {
				t.Fatalf("%d scores: %d are reported", n, len(st.Manifests[0].Scores))
			}
			want := interpret.StateConverged
			if n > 1 {
				want = interpret.StatePartial
			}
			if st.State != want {
				t.Errorf("%d scores: %s", n, st.State)
			}
			for i, s := range st.Manifests[0].Scores {
				if s.ID != score.ID(fmt.Sprintf("f%03d", i)) || (s.Outcome == interpret.Failed) != (n > 1 && i == 7) {
					t.Fatalf("score %d is %s, %s", i, s.ID, s.Outcome)
				}
			}
		}
	}
}

// What a score gives up while it lives on: a port is free for others at once, a unit file
// stays and is reported until it is named again or its score goes.
func TestPartsThatAScoreGivesUp(t *testing.T) {
	web := func(ports ...score.Port) score.Score {
		return score.Score{ID: "web", Spec: score.Container{Name: "web", Image: "localhost/app:1", Ports: ports}}
	}
	r := newRig(t)
	r.apply(intent(1, manifest("m", web(score.Port{Host: 80, Container: 80}))))
	st := r.apply(intent(2, manifest("m", web())))
	if _, owned := r.store.Owner("port:tcp/80@*"); owned || len(st.Orphans) > 0 {
		t.Errorf("the port is owned: %v, left: %v", owned, st.Orphans)
	}

	// Given up on paper only, because the container could not be looked at, and claimed again.
	r = newRig(t)
	r.apply(intent(1, manifest("m", web(score.Port{Host: 80, Container: 80}))))
	r.dev.FailOnce(memory.OpContainer, "container:web", topology.Faultf(topology.CodeIO, "io"))
	r.want(r.apply(intent(2, manifest("m", web(score.Port{Host: 81, Container: 80})))), "m/web=failed/io_error")
	r.want(r.apply(intent(3, manifest("m", web(score.Port{Host: 80, Container: 80})))), "m/web=unchanged")
	if e, owned := r.store.Owner("port:tcp/80@*"); !owned || e.Score != "web" {
		t.Errorf("the port is owned: %v, %+v", owned, e)
	}

	r = newRig(t)
	brought := service("s", "s.service")
	bare := score.Score{ID: "s", Spec: score.Service{Unit: "s.service", State: score.Running}}
	r.apply(intent(1, manifest("m", brought)))
	for range 2 {
		st = r.apply(intent(2, manifest("m", bare)))
		r.want(st, "m/s=unchanged")
		if len(st.Orphans) != 1 || st.Orphans[0].Resource != "file:/etc/systemd/system/s.service" || st.Orphans[0].Code != interpret.CodeNotOwned {
			t.Fatalf("left: %+v", st.Orphans)
		}
	}
	if st = r.apply(intent(3, manifest("m", brought))); len(st.Orphans) > 0 {
		t.Errorf("named again, and left: %+v", st.Orphans)
	}
	if _, ok := r.dev.Read("/etc/systemd/system/s.service"); !ok {
		t.Error("the unit file is gone")
	}
}

// A drop-in that is taken out of its score goes, and nothing is left in the books; one of a unit of the system goes with its
// score. What was there before in its place is foreign, and is kept first (G50, cases 55).
func TestDropInsThatAScoreGivesUp(t *testing.T) {
	const p = "/etc/systemd/system/ssh.service.d/10-env.conf"
	ssh := func(dropIns map[string]string) score.Score {
		return score.Score{ID: "ssh", Spec: score.Service{Unit: "ssh.service", State: score.Running, DropIns: dropIns}}
	}
	env := map[string]string{"10-env": "[Service]\nEnvironment=A=b\n", "20-nice": "[Service]\nNice=5\n"}
	fresh := func() *rig {
		r := newRig(t)
		r.dev.Install("ssh.service", "[Service]\nExecStart=/usr/bin/ssh\n")
		return r
	}
	r := fresh()
	r.want(r.apply(intent(1, manifest("m", ssh(env)))), "m/ssh=changed")
	for _, want := range []string{"m/ssh=changed", "m/ssh=unchanged"} {
		st := r.apply(intent(2, manifest("m", ssh(map[string]string{"20-nice": env["20-nice"]}))))
		r.want(st, want)
		if _, owned := r.store.Owner("file:" + p); owned || len(st.Orphans) > 0 {
			t.Errorf("the drop-in is owned: %v, left: %v", owned, st.Orphans)
		}
	}
	st := r.apply(intent(3, manifest("m", file("f", "/etc/f", "1"))))
	if left := r.dev.List("/etc/systemd/system"); len(st.Orphans) > 0 || slices.ContainsFunc(left, func(p string) bool { return strings.HasSuffix(p, ".conf") }) {
		t.Errorf("left: %v, %v", st.Orphans, left)
	}
	if st, err := r.dev.Services().Service(t.Context(), "ssh.service"); err != nil || st.Active != "active" {
		t.Errorf("the unit of the system is %s, %v", st.Active, err)
	}

	r = fresh()
	r.dev.Put(p, "[Service]\n# by hand\n")
	r.want(r.apply(intent(1, manifest("m", ssh(env)))), "m/ssh=conflict/foreign")
	st = r.confirm(intent(1, manifest("m", ssh(env))))
	r.want(st, "m/ssh=changed")
	if _, kept, err := r.store.ReadBackup(st.Manifests[0].Scores[0].Backup); err != nil || string(kept) != "[Service]\n# by hand\n" {
		t.Errorf("kept is %q, %v", kept, err)
	}
}

// A thing moves from one manifest to another and back, both of them stay (cases 126).
func TestOwnershipMovesBothWays(t *testing.T) {
	for _, lost := range []bool{false, true} {
		r := newRig(t)
		shared := file("x", "/etc/x", "1")
		rest := map[string]score.Score{"a": file("a", "/etc/a", "1"), "b": file("b", "/etc/b", "1")}
		r.apply(intent(1, manifest("a", shared, rest["a"]), manifest("b", rest["b"])))
		for g, owner := range []string{"b", "a"} {
			if lost {
				r.loseBooks()
			}
			id := r.dev.Identity("/etc/x")
			ms := []score.Manifest{manifest("a", rest["a"]), manifest("b", rest["b"])}
			for i := range ms {
				if ms[i].Metadata.Name == owner {
					ms[i].Spec.Scores = append(ms[i].Spec.Scores, shared)
				}
			}
			var st interpret.DeviceStatus
			for range 2 {
				st = r.apply(intent(uint64(g+2), ms...))
			}
			if st.State != interpret.StateConverged || len(st.Orphans) > 0 {
				t.Errorf("lost %v, to %s: %s left %v", lost, owner, outcomes(st), st.Orphans)
			}
			if e, ok := r.store.Owner("file:/etc/x"); !lost && (!ok || e.Manifest != owner || r.dev.Identity("/etc/x") != id) {
				t.Errorf("to %s: owned by %q, touched: %v", owner, e.Manifest, r.dev.Identity("/etc/x") != id)
			}
		}
	}
}

// Books lost, and the mark of a manifest that is still there but wants the thing no longer: it moves, it is not stuck.
func TestMarkOfAManifestThatGaveUp(t *testing.T) {
	r := newRig(t)
	r.apply(intent(1, manifest("a", file("a", "/etc/a", "1")), manifest("b", file("x", "/etc/x", "old"), file("b", "/etc/b", "1"))))
	r.loseBooks()
	st := r.apply(intent(2, manifest("a", file("a", "/etc/a", "1"), file("x", "/etc/x", "new")), manifest("b", file("b", "/etc/b", "1"))))
	r.want(st, "a/a=unchanged a/x=changed b/b=unchanged")
	// One that cannot be read may still want it.
	r = newRig(t)
	r.apply(intent(1, manifest("b", file("x", "/etc/x", "old"))))
	r.loseBooks()
	later := score.Score{ID: "x", Spec: score.Opaque{Of: "file", Raw: []byte(`{"acl":1}`), Why: `unknown field "acl"`, Path: "/acl"}}
	st = r.apply(intent(2, manifest("a", file("x", "/etc/x", "new")), manifest("b", later)))
	r.want(st, "a/x=conflict/owned_by b/x=unsupported/unreadable_spec")
}

// A score that this agent could read and now cannot is not an orphan: somebody wants it (S30).
func TestUnreadableIsNotAbsent(t *testing.T) {
	r := newRig(t)
	r.apply(intent(1, manifest("m", file("x", "/etc/x", "1"))))
	st := r.apply(intent(2, manifest("m", score.Score{ID: "x", Spec: score.Opaque{Of: "file", Raw: []byte(`{"acl":1}`), Why: `unknown field "acl"`, Path: "/acl"}})))
	r.want(st, "m/x=unsupported/unreadable_spec")
	if _, ok := r.dev.Read("/etc/x"); !ok || len(st.Orphans) > 0 {
		t.Errorf("there: %v, left %v", ok, st.Orphans)
	}
}

// Two scores of one manifest that claim one thing do not take turns, and one id twice is
// no assignment at all: publishers refuse both, and a device must not believe them.
func TestOneManifestClaimsTwice(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("m", file("a", "/etc/x", "a"), file("b", "/etc/x", "b")))
	r.want(r.apply(in), "m/a=changed m/b=conflict/owned_by")
	r.want(r.apply(in), "m/a=unchanged m/b=conflict/owned_by")

	a := agent.New(agent.Config{Runner: r.runner, Open: open, Log: quiet()})
	var ref *agent.Refusal
	err := a.Offer(intent(2, manifest("m", file("a", "/etc/x", "a"), file("a", "/etc/y", "b"))))
	if !errors.As(err, &ref) || ref.Code != agent.CodeNotWhole || !strings.Contains(ref.Message, `holds the score "a" twice`) {
		t.Errorf("got %v", err)
	}
}

// Scores that wait for each other are all refused; others go on, and nothing is collected meanwhile.
func TestCycle(t *testing.T) {
	r := newRig(t)
	r.apply(intent(1, manifest("m", file("a", "/etc/a", "1"))))
	st := r.apply(intent(2, manifest("m", file("a", "/etc/a", "1", "b"), file("b", "/etc/b", "1", "a")), manifest("n", file("c", "/etc/c", "1"))))
	r.want(st, "m/a=refused/invalid_spec m/b=refused/invalid_spec n/c=changed")
	if _, ok := r.dev.Read("/etc/a"); !ok || len(st.Orphans) > 0 {
		t.Errorf("there: %v, left %v", ok, st.Orphans)
	}
	r.want(r.apply(intent(3, manifest("m", file("a", "/etc/a", "1", "gone")))), "m/a=refused/invalid_spec")
}

// A container that gets another name keeps its port: the old one goes before the new one
// can start, and nothing else goes with it while the pass is not whole (H55).
func TestRenamedContainerKeepsItsPort(t *testing.T) {
	web := func(name string) score.Score {
		return score.Score{ID: "web", Spec: score.Container{Name: name, Image: "localhost/app:1", Ports: []score.Port{{Host: 80, Container: 80}}}}
	}
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", web("old"), file("a", "/etc/a", "1"), file("b", "/etc/b", "1"))))
		time.Sleep(time.Minute)
		r.dev.Before(func(ctx context.Context, c memory.Call) error { // one port, one container
			if c.Op != memory.OpRun {
				return nil
			}
			if st, _ := r.dev.Containers().Container(ctx, "old"); st.State == "running" {
				if _, ok := r.dev.Read("/etc/b"); !ok {
					t.Error("b was removed while the pass was not whole")
				}
				return topology.Faultf(topology.CodeJobFailed, "address already in use")
			}
			return nil
		})
		offer(t, h, intent(2, manifest("m", web("new"), file("a", "/etc/a", "1"))))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if st := f.last(); !st.ConvergedAt(2) || len(st.Orphans) > 0 {
			t.Errorf("got %s, left %v", outcomes(st), st.Orphans)
		}
		if st, _ := r.dev.Containers().Container(context.Background(), "old"); st.State != "absent" {
			t.Errorf("the old one is %s", st.State)
		}
		if _, ok := r.dev.Read("/etc/b"); ok {
			t.Error("b is still there")
		}
	})
}

// Who had a port keeps it, also from one that wants it on all addresses (cases 73, 128).
func TestOwnerKeepsAnOverlappingPort(t *testing.T) {
	web := func(name, ip string) score.Score {
		return score.Score{ID: "web", Spec: score.Container{Name: name, Image: "localhost/app:1", Ports: []score.Port{{IP: ip, Host: 80, Container: 80}}}}
	}
	r := newRig(t)
	r.apply(intent(1, manifest("b", web("two", "127.0.0.1"))))
	both := intent(2, manifest("a", web("one", "")), manifest("b", web("two", "127.0.0.1")))
	for range 2 {
		r.want(r.apply(both), "a/web=conflict/owned_by b/web=unchanged")
	}
}

// A thing that moved without being touched carries the mark of its first manifest; that
// does not keep it when its last one gives it up.
func TestOldMarkDoesNotKeep(t *testing.T) {
	r := newRig(t)
	x, a, b := file("x", "/etc/x", "1"), file("a", "/etc/a", "1"), file("b", "/etc/b", "1")
	r.apply(intent(1, manifest("a", a, x), manifest("b", b)))
	r.apply(intent(2, manifest("a", a), manifest("b", b, x)))
	st := r.apply(intent(3, manifest("a", a), manifest("b", b)))
	if _, ok := r.dev.Read("/etc/x"); ok || len(st.Orphans) > 0 {
		t.Errorf("there: %v, left %+v", ok, st.Orphans)
	}
}

// What the books say of the device is never believed: it is looked at (G09).
func TestBooksAreNoReality(t *testing.T) {
	r := newRig(t)
	in := intent(1, manifest("m", file("a", "/etc/a", "1"), file("b", "/etc/b", "1"), service("app", "app.service"), container("web", "web")))
	r.apply(in)
	r.dev.Put("/etc/a", "by hand")
	r.dev.Delete("/etc/b")
	r.dev.StopUnit("app.service")
	r.dev.StopUnit("web.service")
	r.restart()
	if n := len(r.store.ByManifest("m")); n < 4 {
		t.Fatalf("the books claim %d things", n)
	}
	st, err := r.runner.Observe(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	r.want(st, "m/a=drifted m/app=drifted m/b=drifted m/web=drifted")
}
