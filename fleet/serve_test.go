package fleet_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// beat sends a heartbeat of d by hand, and gives the verified answer.
func (r *rig) beat(nc *nats.Conn, d fleet.Device, instance string, change ...func(*wire.Heartbeat)) (wire.ControlEnvelope, error) {
	r.t.Helper()
	nonce := []byte("0123456789abcdef")
	hb := wire.Heartbeat{Agent: "test", Instance: instance, Nonce: nonce}
	for _, c := range change {
		c(&hb)
	}
	b, err := hb.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	answer, err := nc.Request(wire.HeartbeatSubject(d), b, patience)
	if err != nil {
		return wire.ControlEnvelope{}, err
	}
	_, control, err := r.keys.Trusted()
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := fleet.ControlKeys(control)
	if err != nil {
		r.t.Fatal(err)
	}
	return wire.OpenControl(answer.Data, keys, d, nonce)
}

// beatUntil sends heartbeats until an answer is as f wants it.
func (r *rig) beatUntil(nc *nats.Conn, d fleet.Device, what string, f func(wire.ControlEnvelope) bool) wire.ControlEnvelope {
	r.t.Helper()
	var c wire.ControlEnvelope
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if c, err = r.beat(nc, d, "a"); err == nil && f(c) {
			return c
		}
		if err != nil && !errors.Is(err, nats.ErrNoResponders) {
			r.t.Fatal(err)
		}
	}
	r.t.Fatalf("never %s: %+v, %v", what, c, err)
	return c
}

// The answer names what is published and who is blocked; what is not signed by the operator is not announced (S24).
func TestAnswer(t *testing.T) {
	r := newRig(t, pi1, pi10)
	var mu sync.Mutex
	var notices []string
	r.serve(fleet.ServeOptions{Interval: 10 * time.Second, Poll: time.Minute, Notice: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		notices = append(notices, err.Error())
	}})
	nc, other := r.srv.ConnectDevice(pi1), r.srv.ConnectDevice(pi10)
	c := r.beatUntil(nc, pi1, "answered", func(wire.ControlEnvelope) bool { return true })
	if c.Generation != 0 || c.Interval != 10 || c.Poll != 60 || c.Reconnect != 5 || c.Blocked {
		t.Errorf("with nothing published: %+v", c)
	}
	p := r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	c = r.beatUntil(nc, pi1, "announced", func(c wire.ControlEnvelope) bool { return c.Generation == 1 })
	if len(c.Digest) != sha256.Size || c.Size != uint64(p[0].Size) {
		t.Errorf("got %+v for %+v", c, p[0])
	}
	if c, err := r.beat(other, pi10, "a"); err != nil || c.Generation != 0 {
		t.Errorf("the other device hears of %+v, %v", c, err)
	}
	// Somebody with write access to the bucket and without the key.
	if _, err := r.js().Publish(t.Context(), wire.DesiredSubject(wire.DeviceKey(pi10)), []byte("\xdd\xff\xff\xff\xff")); err != nil {
		t.Fatal(err)
	}
	for _, hostile := range []string{"", "\xdd\xff\xff\xff\xff", strings.Repeat("x", 5000)} {
		if err := other.PublishRequest(wire.HeartbeatSubject(pi10), wire.InboxPrefix(pi10)+".x", []byte(hostile)); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(patience); ; {
		mu.Lock()
		all := strings.Join(notices, "\n")
		mu.Unlock()
		if strings.Contains(all, "what is published for main.pi-10 is not announced") && strings.Contains(all, "cannot read a heartbeat of main.pi-10") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("notices: %s", all)
		}
	}
	// A device cannot fill the log of its fleet. What it sends later is answered later.
	if _, err := r.beat(other, pi10, "a"); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if n := strings.Count(strings.Join(notices, "\n"), "cannot read a heartbeat of main.pi-10"); n != 1 {
		t.Errorf("%d lines of one device", n)
	}
	mu.Unlock()
	control := r.connect(r.srv.Controller)
	if err := control.Block(t.Context(), pi1, true); err != nil {
		t.Fatal(err)
	}
	r.beatUntil(nc, pi1, "blocked", func(c wire.ControlEnvelope) bool { return c.Blocked })
	if err := control.Block(t.Context(), pi1, false); err != nil {
		t.Fatal(err)
	}
	r.beatUntil(nc, pi1, "not blocked", func(c wire.ControlEnvelope) bool { return !c.Blocked && c.Generation == 1 })
}

// Several services share the heartbeats, and one that starts knows everything (nothing of it is its own).
func TestSeveralServices(t *testing.T) {
	r := newRig(t, pi1)
	first := r.serve(fleet.ServeOptions{})
	nc := r.srv.ConnectDevice(pi1)
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	r.beatUntil(nc, pi1, "announced", func(c wire.ControlEnvelope) bool { return c.Generation == 1 })
	r.serve(fleet.ServeOptions{})
	sub, err := nc.SubscribeSync(wire.InboxPrefix(pi1) + ".answers")
	if err != nil {
		t.Fatal(err)
	}
	b, err := wire.Heartbeat{Instance: "a", Nonce: []byte("n")}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	const n = 50
	for range n {
		if err := nc.PublishRequest(wire.HeartbeatSubject(pi1), wire.InboxPrefix(pi1)+".answers", b); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		if _, err := sub.NextMsg(patience); err != nil {
			t.Fatal(err)
		}
	}
	first()
	r.beatUntil(nc, pi1, "announced by the second", func(c wire.ControlEnvelope) bool { return c.Generation == 1 })
	if extra, _, err := sub.Pending(); err != nil || extra != 0 {
		t.Errorf("%d answers too many, %v", extra, err)
	}
}

// Silence is judged by the store, needs somebody who listens, and does not touch what is known (H12, H27, X01).
func TestLiveness(t *testing.T) {
	r := newRig(t, pi1)
	js := r.js()
	alive, err := js.Stream(t.Context(), wire.StreamAlive)
	if err != nil {
		t.Fatal(err)
	}
	config := alive.CachedInfo().Config
	config.MaxAge, config.Duplicates = time.Second, time.Second // instead of 90 s
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	nc := r.srv.ConnectDevice(pi1)
	st := interpret.DeviceStatus{APIVersion: score.APIVersion, Kind: interpret.StatusKind, State: interpret.StateConverged, Generation: 1, Time: time.Now().Add(time.Hour)}
	body, err := score.Encode(st)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nc.Request(wire.StatusSubject(pi1), body, patience); err != nil {
		t.Fatal(err)
	}
	if s, err := r.Status(t.Context(), pi1); err != nil || s[0].Liveness != fleet.Unheard || s[0].Desired != 1 {
		t.Errorf("without a service: %+v, %v", s, err)
	}
	r.serve(fleet.ServeOptions{Interval: 300 * time.Millisecond})
	if _, err := r.beat(nc, pi1, "a"); err != nil {
		r.beatUntil(nc, pi1, "answered", func(wire.ControlEnvelope) bool { return true })
	}
	s := r.until(pi1, "heard", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Live })
	if s.Heartbeat.Agent != "test" || s.LastHeard.IsZero() {
		t.Errorf("got %+v", s)
	}
	s = r.until(pi1, "silent", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Silent })
	if s.Verdict != fleet.Stale || s.Status == nil || s.LastHeard.IsZero() || s.ReportedAt.After(time.Now().Add(time.Minute)) {
		t.Errorf("got %+v", s)
	}
	if _, err := r.beat(nc, pi1, "a"); err != nil {
		t.Fatal(err)
	}
	r.until(pi1, "back", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Live })
}

// Heartbeats of two agents in turn are an alarm; a restart is not (case 134).
func TestTwoAgentsOfOneName(t *testing.T) {
	r := newRig(t, pi1)
	r.serve(fleet.ServeOptions{})
	nc := r.srv.ConnectDevice(pi1)
	for _, instance := range []string{"a", "a", "b", "b", "c"} { // restarts
		for r.tryBeat(nc, instance) != nil {
		}
	}
	if s := r.until(pi1, "heard of c", func(s fleet.DeviceState) bool { return s.Heartbeat.Instance == "c" }); s.Heartbeat.Conflict != "" {
		t.Errorf("a restart is taken for a second device: %+v", s)
	}
	for _, instance := range []string{"d", "c", "d", "c"} {
		if err := r.tryBeat(nc, instance); err != nil {
			t.Fatal(err)
		}
	}
	s := r.until(pi1, "an alarm", func(s fleet.DeviceState) bool { return s.Heartbeat.Conflict != "" })
	if s.Verdict != fleet.Failed || !strings.Contains(s.Reason, "identity_conflict") {
		t.Errorf("got %s (%s)", s.Verdict, s.Reason)
	}
}

// The answer tells both of two agents, also those of two boards, and the status of the fleet says it (case 134).
func TestTwoBoardsOfOneName(t *testing.T) {
	r := newRig(t, pi1)
	r.serve(fleet.ServeOptions{})
	nc := r.srv.ConnectDevice(pi1)
	board := func(hb *wire.Heartbeat) { hb.Serial = "board-" + hb.Instance }
	for r.tryBeat(nc, "a") != nil {
	}
	for _, instance := range []string{"a", "b", "a"} {
		if _, err := r.beat(nc, pi1, instance, board); err != nil {
			t.Fatal(err)
		}
	}
	for _, instance := range []string{"a", "b"} {
		if c, err := r.beat(nc, pi1, instance, board); err != nil || c.Conflict != wire.ConflictHold {
			t.Errorf("%s hears %q, %v", instance, c.Conflict, err)
		}
	}
	s := r.until(pi1, "an alarm", func(s fleet.DeviceState) bool { return s.Heartbeat.Conflict != "" && s.Heartbeat.Serial == "board-b" })
	if s.Verdict != fleet.Failed || !strings.Contains(s.Reason, "board-b") {
		t.Errorf("got %s (%s)", s.Verdict, s.Reason)
	}
}

func (r *rig) tryBeat(nc *nats.Conn, instance string) error {
	_, err := r.beat(nc, pi1, instance)
	if err != nil && !errors.Is(err, nats.ErrNoResponders) {
		r.t.Fatal(err)
	}
	return err
}

// What one device writes, with whatever headers, is not believed of another, and harms no reader.
func TestHostileStatus(t *testing.T) {
	r := newRig(t, pi1, pi10)
	bad, good := r.srv.ConnectDevice(pi1), r.srv.ConnectDevice(pi10)
	write := func(nc *nats.Conn, d fleet.Device, body string, header nats.Header) {
		t.Helper()
		if _, err := nc.RequestMsg(&nats.Msg{Subject: wire.StatusSubject(d), Data: []byte(body), Header: header}, patience); err != nil {
			t.Fatal(err)
		}
	}
	fine := `{"apiVersion":"continuo/v1","kind":"Status","device":"%s","phase":"idle","state":"converged","generation":3,"later":"field"}`
	write(good, pi10, fmt.Sprintf(fine, "pi-10"), nil)
	tests := []struct{ name, body string }{
		{"bytes", "\xdd\xff\xff\xff\xff"},
		{"nothing", ""},
		{"deep", strings.Repeat("[", 60_000)},
		{"another document", `{"apiVersion":"continuo/v1","kind":"Manifest"}`},
		{"another version", `{"apiVersion":"continuo/v9","kind":"Status"}`},
		{"another type", `{"apiVersion":"continuo/v1","kind":"Status","generation":"many"}`},
	}
	spoofed := nats.Header{"Nats-Subject": {"actual.main.pi-10"}, "Nats-Sequence": {"999999"}, "Nats-Stream": {"X"}, "Continuo-Gen": {"77"}, "KV-Operation": {"DEL"}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			write(bad, pi1, tt.body, spoofed)
			s, err := r.Status(t.Context())
			if err != nil || len(s) != 2 {
				t.Fatalf("got %+v, %v", s, err)
			}
			if s[0].Device != pi1 || s[0].Status != nil || s[0].Unreadable == "" || s[0].Verdict != fleet.Unknown || s[0].Revision > 100 {
				t.Errorf("the bad one: %+v", s[0])
			}
			if s[1].Device != pi10 || s[1].Status == nil || s[1].Status.Generation != 3 || s[1].Revision != 1 {
				t.Errorf("the good one: %+v", s[1])
			}
		})
	}
}

// The summary of a fleet comes from the store, and asks no device (H14); nothing is left on the server by reading it.
func TestStatusOfMany(t *testing.T) {
	var devices []fleet.Device
	for i := range 20 {
		devices = append(devices, fleet.Device{Site: "main", ID: fmt.Sprintf("pi-%02d", i)})
	}
	r := newRig(t, devices...)
	for i, d := range devices {
		r.publish(manifest("a", d.ID, file("f", "/etc/a", "1")))
		if i%2 == 0 {
			body := fmt.Sprintf(`{"apiVersion":"continuo/v1","kind":"Status","phase":"idle","state":"failed","generation":1,"manifests":[{"name":"a","generation":1,"state":"failed","scores":[{"id":"f","kind":"file","outcome":"failed","code":"no_space","message":"disk %d is full"}]}]}`, i)
			if _, err := r.srv.ConnectDevice(d).Request(wire.StatusSubject(d), []byte(body), patience); err != nil {
				t.Fatal(err)
			}
		}
	}
	all, err := r.Status(t.Context())
	if err != nil || len(all) != 20 {
		t.Fatalf("%d states, %v", len(all), err)
	}
	count := map[fleet.Verdict]int{}
	for i, s := range all {
		count[s.Verdict]++
		if i%2 == 0 && s.Reason != fmt.Sprintf("a/f is failed: disk %d is full", i) {
			t.Errorf("reason %q", s.Reason)
		}
	}
	if count[fleet.Failed] != 10 || count[fleet.Unknown] != 10 {
		t.Errorf("got %v", count)
	}
	two, err := r.Status(t.Context(), devices[3], fleet.Device{Site: "main", ID: "nobody"})
	if err != nil || len(two) != 2 || two[0].Desired != 1 || two[1].Verdict != fleet.Unknown {
		t.Errorf("got %+v, %v", two, err)
	}
	if _, err := r.Status(t.Context(), fleet.Device{Site: "main", ID: ">"}); err == nil {
		t.Error("a wildcard is a device")
	}
	js := r.js()
	for _, st := range wire.Streams(1) {
		s, err := js.Stream(t.Context(), st.Name)
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); ; {
			info, err := s.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if info.State.Consumers == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d consumers are left on %s", info.State.Consumers, st.Name)
			}
		}
	}
}

// A watch lives on over a restart of the server, and tells only what is new (case 108).
func TestWatchOverRestart(t *testing.T) {
	r := newRig(t, pi1)
	r.serve(fleet.ServeOptions{})
	r.device(pi1)
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	r.wait(pi1, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := make(chan fleet.DeviceState, 100)
	done := make(chan error, 1)
	go func() {
		done <- r.Watch(ctx, nil, func(s fleet.DeviceState) bool {
			seen <- s
			return s.Verdict != fleet.Converged || s.Desired < 3
		})
	}()
	if s := <-seen; s.Desired != 1 || s.Verdict != fleet.Converged {
		t.Errorf("first comes %+v", s)
	}
	r.srv.Kill()
	r.srv.Restart()
	other := r.connect(r.srv.Operator) // one that is connected for sure
	for i := 2; i <= 3; i++ {
		if _, err := other.Publish(t.Context(), []score.Manifest{manifest("a", "pi-1", file("f", "/etc/a", fmt.Sprint(i)))}, r.options()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	close(seen)
	var last fleet.DeviceState
	for s := range seen {
		if last.Device == s.Device && last.Revision == s.Revision && last.Desired == s.Desired && last.Verdict == s.Verdict && last.Liveness == s.Liveness && last.Reason == s.Reason {
			t.Errorf("twice: %+v", s)
		}
		last = s
	}
}

// Who waits too long hears how far the device is.
func TestWaitEnds(t *testing.T) {
	r := newRig(t, pi1)
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	s, err := r.Wait(ctx, pi1, 1)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "main.pi-1 is still unknown (it never reported)") || s.Device != pi1 {
		t.Errorf("got %+v, %v", s, err)
	}
	// A device that fails is settled: nobody has to wait for the end.
	r.device(pi1).Special("/etc/pipe")
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")), manifest("b", "pi-1", file("c", "/etc/pipe", "x")))
	if s := r.wait(pi1, 2); s.Verdict != fleet.Failed || !strings.Contains(s.Reason, "b/c") {
		t.Errorf("got %s (%s)", s.Verdict, s.Reason)
	}
}

func TestServeRefusals(t *testing.T) {
	r := newRig(t)
	if err := r.Serve(t.Context(), fleet.ServeOptions{}); err == nil || !strings.Contains(err.Error(), "no control key") {
		t.Errorf("got %v", err)
	}
	if err := r.Serve(t.Context(), fleet.ServeOptions{Signer: r.keys.Control, Interval: time.Hour}); err == nil || !strings.Contains(err.Error(), "too few") {
		t.Errorf("got %v", err)
	}
	for _, interval := range []time.Duration{-time.Second, 1, time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // only a failing test serves so long
		if err := r.Serve(ctx, fleet.ServeOptions{Signer: r.keys.Control, Interval: interval}); err == nil || !strings.Contains(err.Error(), "at least 100ms") {
			t.Errorf("%s: got %v", interval, err)
		}
		cancel()
	}
}

// A server without the streams of a fleet is told from an empty fleet.
func TestNoStreams(t *testing.T) {
	r := newRig(t)
	js := r.js()
	for _, name := range []string{wire.StreamActual, wire.StreamDesired} {
		if err := js.DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "continuo setup") {
			t.Errorf("got %v", err)
		}
	}
}
