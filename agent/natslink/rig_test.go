package natslink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

var (
	pi1  = wire.Device{Site: "main", ID: "pi-1"}
	pi10 = wire.Device{Site: "main", ID: "pi-10"}
)

// patience is how long something may take that is about to happen. Only a failing test waits so long.
const patience = 20 * time.Second

// A handler remembers what a link brings. It stands for the agent, whose own tests are elsewhere.
type handler struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and made anew on every change
	intents  []agent.Intent
	problems map[interpret.Code]string
	reports  map[interpret.Code]int // calls of Refused
	control  agent.Control
	ahead    *time.Duration
	trusted  int // calls of TrustChanged
	pulse    agent.Pulse
	block    chan struct{} // Offer waits for it
}

func newHandler() *handler {
	return &handler{changed: make(chan struct{}), problems: map[interpret.Code]string{}, reports: map[interpret.Code]int{}}
}

func (h *handler) change(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *handler) Offer(in agent.Intent) error {
	if h.block != nil {
		<-h.block
	}
	var err error
	h.change(func() {
		if in.Generation < h.pulse.Generation {
			err = &agent.Refusal{Code: agent.CodeRegressed, Message: "older"}
			return
		}
		if in.Generation == h.pulse.Generation && in.Digest == h.pulse.Digest {
			return
		}
		h.intents = append(h.intents, in)
		h.pulse.Generation, h.pulse.Digest = in.Generation, in.Digest
	})
	return err
}

func (h *handler) Refused(code interpret.Code, message string) {
	h.change(func() { h.problems[code] = message; h.reports[code]++ })
}

func (h *handler) TrustChanged()                               { h.change(func() { h.trusted++ }) }
func (h *handler) Resolved(code interpret.Code)                { h.change(func() { delete(h.problems, code) }) }
func (h *handler) Clock(ahead, _ time.Duration)                { h.change(func() { h.ahead = &ahead }) }
func (h *handler) Operation(interpret.Operation, string) error { return nil }
func (h *handler) Control(c agent.Control)                     { h.change(func() { h.control = c }) }

func (h *handler) Pulse() agent.Pulse {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pulse
}

// until waits until f is true of the handler.
func (h *handler) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	late := time.After(patience)
	for {
		h.mu.Lock()
		ok, changed := f(), h.changed
		h.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			h.mu.Lock()
			defer h.mu.Unlock()
			t.Fatalf("never %s; intents %d, problems %v, pulse %+v, control %+v", what, len(h.intents), h.problems, h.pulse, h.control)
		}
	}
}

func (h *handler) generation(t *testing.T, g uint64) {
	t.Helper()
	h.until(t, fmt.Sprintf("at generation %d", g), func() bool { return h.pulse.Generation == g })
}

func (h *handler) has(t *testing.T, code interpret.Code) {
	t.Helper()
	h.until(t, "has the problem "+string(code), func() bool { return h.problems[code] != "" })
}

func (h *handler) hasNot(t *testing.T, code interpret.Code) {
	t.Helper()
	h.until(t, "without the problem "+string(code), func() bool { return h.problems[code] == "" })
}

// A rig is a server, the keys of a fleet, and what its control side does by hand.
type rig struct {
	t                 *testing.T
	srv               *natstest.Server
	operator, control nkeys.KeyPair
	nc                *nats.Conn
	js                jetstream.JetStream
	asked             chan wire.Heartbeat
}

func newRig(t *testing.T, devices ...wire.Device) *rig {
	t.Helper()
	if len(devices) == 0 {
		devices = []wire.Device{pi1, pi10}
	}
	r := &rig{t: t, srv: natstest.Start(t, devices...), operator: newSigner(t), control: newSigner(t), asked: make(chan wire.Heartbeat, 10_000)}
	r.nc = r.srv.ConnectUnbound(nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	var err error
	if r.js, err = jetstream.New(r.nc); err != nil {
		t.Fatal(err)
	}
	return r
}

func newSigner(t testing.TB) nkeys.KeyPair {
	t.Helper()
	kp, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	return kp
}

func trustIn(t testing.TB, kind wire.Kind, signers ...nkeys.KeyPair) wire.KeySet {
	t.Helper()
	var keys []wire.TrustedKey
	for _, s := range signers {
		public, err := s.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, wire.TrustedKey{PublicKey: public, Kinds: []wire.Kind{kind}})
	}
	set, err := wire.NewKeySet(0, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// answerWith answers heartbeats of pi1 with c, and from then on with what is sent to next.
func (r *rig) answerWith(c wire.ControlEnvelope) (next chan<- wire.ControlEnvelope) {
	r.t.Helper()
	news := make(chan wire.ControlEnvelope, 1)
	r.answer(func(wire.Heartbeat) *wire.ControlEnvelope {
		select {
		case c = <-news:
		default:
		}
		answer := c
		return &answer
	})
	return news
}

// answer answers heartbeats of pi1 with what f makes of them; nil is no answer.
func (r *rig) answer(f func(hb wire.Heartbeat) *wire.ControlEnvelope) {
	r.t.Helper()
	nc := r.srv.ConnectController(nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0))
	_, err := nc.Subscribe(wire.AllHeartbeats, func(m *nats.Msg) {
		hb, err := wire.DecodeHeartbeat(m.Data)
		if err != nil {
			return
		}
		if c := f(hb); c != nil {
			if c.Nonce = hb.Nonce; c.Now == 0 {
				c.Now = wire.UnixSeconds(time.Now())
			}
			if b, err := wire.SealControl(*c, pi1, r.control); err == nil {
				_ = m.Respond(b)
			}
		}
		select {
		case r.asked <- hb:
		default:
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// beats waits for n more heartbeats.
func (r *rig) beats(n int) (last wire.Heartbeat) {
	r.t.Helper()
	for len(r.asked) > 0 {
		<-r.asked
	}
	for range n {
		select {
		case last = <-r.asked:
		case <-time.After(patience):
			r.t.Fatal("no heartbeat")
		}
	}
	return last
}

func assignment(d wire.Device, generation uint64) score.Assignment {
	return score.Assignment{
		APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: d.ID, Generation: generation},
		Spec: score.AssignmentSpec{Complete: true, Scores: 1, Manifests: []score.Manifest{{
			APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: "kiosk", Generation: generation},
			Spec: score.ManifestSpec{Target: score.Target{Device: d.ID}, Policy: score.Policy{Preset: score.Converge}, Scores: []score.Score{
				{ID: "conf", Spec: score.File{Path: "/etc/kiosk.conf", Content: strings.Repeat(fmt.Sprintf("line of %d\n", generation), 20), Mode: 0o644}},
			}},
		}}},
	}
}

// seal makes the document of d.
func seal(t testing.TB, d wire.Device, generation uint64, signer wire.Signer, change ...func(*wire.Statement, *score.Assignment)) (frame []byte, st wire.Statement) {
	t.Helper()
	as := assignment(d, generation)
	st = wire.Statement{Kind: wire.KindDevice, Audience: d.String(), Generation: generation, Issued: 1, Encoding: wire.EncodingGzip, Media: wire.MediaAssignment}
	for _, c := range change {
		c(&st, &as)
	}
	payload, err := score.Encode(as)
	if err != nil {
		t.Fatal(err)
	}
	if frame, err = wire.Seal(st, payload, signer); err != nil {
		t.Fatal(err)
	}
	v, err := wire.Verify(frame, trustIn(t, st.Kind, signer.(nkeys.KeyPair)), wire.Expect{Kind: st.Kind, Audience: st.Audience})
	if err != nil {
		t.Fatal(err)
	}
	return frame, v.Statement
}

// publish stores a generation for pi1 and gives what a control envelope says of it.
func (r *rig) publish(generation uint64) wire.ControlEnvelope {
	r.t.Helper()
	frame, st := seal(r.t, pi1, generation, r.operator)
	r.put(frame, wire.Announce(st))
	return wire.ControlEnvelope{Generation: generation, Digest: st.Digest, Size: st.Size}
}

// put stores bytes for pi1.
func (r *rig) put(b []byte, header map[string][]string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	m := &nats.Msg{Subject: wire.DesiredSubject(wire.DeviceKey(pi1)), Header: header, Data: b}
	for {
		_, err := r.js.PublishMsg(ctx, m)
		if err == nil {
			return
		}
		if ctx.Err() != nil || !errors.Is(err, nats.ErrNoResponders) && !errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, nats.ErrReconnectBufExceeded) {
			r.t.Fatal(err)
		}
	}
}

// restart starts the server again, and waits until the control side is connected to that one: what is asked before may
// go down with the old connection, and nobody answers it.
func (r *rig) restart() {
	r.t.Helper()
	r.srv.Restart()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for r.nc.FlushWithContext(ctx) != nil {
		if ctx.Err() != nil {
			r.t.Fatal("the control side is not connected again")
		}
	}
}

// options are those of the link of pi1.
func (r *rig) options() Options {
	r.t.Helper()
	return Options{
		Servers: []string{r.srv.URL}, Device: pi1, CredsFile: r.srv.Creds(r.srv.DeviceKey(pi1)), Version: "test", BootID: "boot-1", Instance: "instance-1",
		Trust: TrustKeys(trustIn(r.t, wire.KindDevice, r.operator), wire.KeySet{}, trustIn(r.t, wire.KindHeartbeat, r.control)),
		tune:  tuning{heartbeat: 20 * time.Millisecond, poll: time.Hour, timeout: time.Second, watchdog: time.Hour},
	}
}

// run runs a link until stop is called or the test ends.
func (r *rig) run(o Options) (l *Link, h *handler, stop func()) {
	r.t.Helper()
	l, err := New(o)
	if err != nil {
		r.t.Fatal(err)
	}
	h = newHandler()
	stop = r.start(l, h)
	return l, h, stop
}

func (r *rig) start(l *Link, h *handler) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx, h); close(done) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(patience):
			buf := make([]byte, 1<<20)
			r.t.Fatalf("the link does not stop:\n%s", buf[:runtime.Stack(buf, true)])
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// online waits until l is connected.
func (r *rig) online(l *Link) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		nc, err := l.conn(ctx)
		if err != nil {
			r.t.Fatal("never online")
		}
		if nc.FlushWithContext(ctx) == nil {
			return
		}
	}
}

// stored is what the fleet holds as the status of pi1.
func (r *rig) stored() (body []byte, revision uint64) {
	r.t.Helper()
	s, err := r.js.Stream(r.t.Context(), wire.StreamActual)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(r.t.Context(), wire.ActualSubject(pi1))
	if err != nil {
		return nil, 0
	}
	return m.Data, m.Sequence
}

func status(instance string, sequence uint64) interpret.DeviceStatus {
	return interpret.DeviceStatus{
		APIVersion: score.APIVersion, Kind: interpret.StatusKind, Device: pi1.ID, Phase: interpret.PhaseIdle, State: interpret.StateConverged,
		Agent: interpret.Agent{Version: "test", Instance: instance, Sequence: sequence},
	}
}

// A proxy stands between a link and its server. It counts, and it can lose what it carries.
type proxy struct {
	net.Listener
	server string

	mu       sync.Mutex
	conns    []net.Conn
	accepted int
	sent     []byte // everything that clients sent
	deaf     bool   // what the server says is lost
	trap     string // once a client has sent this, the proxy is deaf
	sprung   chan struct{}
	down     bool
	rate     int // bytes a second of what the server says; 0: as fast as they come
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l, server: strings.TrimPrefix(server, "nats://")}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.carry(c)
		}
	}()
	return p
}

func (p *proxy) url() string { return "nats://" + p.Addr().String() }

func (p *proxy) carry(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted++
	if p.down {
		client.Close()
		return
	}
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	p.conns = append(p.conns, client, server)
	go p.copy(server, client, func(b []byte) bool {
		p.sent = append(p.sent, b...)
		if p.trap != "" && strings.Contains(string(p.sent), p.trap) {
			p.trap, p.deaf = "", true
			close(p.sprung)
		}
		return true
	})
	var slow net.Conn = client
	if p.rate > 0 {
		slow = slowConn{client, p.rate}
	}
	go p.copy(slow, server, func([]byte) bool { return !p.deaf })
}

func (p *proxy) copy(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		p.mu.Lock()
		ok := pass(b[:n])
		p.mu.Unlock()
		if ok {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
	}
}

// cut ends every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

// setDown takes the network away, or gives it back.
func (p *proxy) setDown(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.cut()
	}
}

// deafen loses what the server says from the moment on that a client sends something, until hear is called.
func (p *proxy) deafen(trap string) (sprung <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap, p.sent, p.sprung = trap, nil, make(chan struct{})
	return p.sprung
}

func (p *proxy) hear() {
	p.mu.Lock()
	p.deaf = false
	p.mu.Unlock()
}

// count is how often clients sent something.
func (p *proxy) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Count(string(p.sent), what)
}

func (p *proxy) connects() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.accepted
}
