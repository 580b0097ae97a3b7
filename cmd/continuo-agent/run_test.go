package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// temporary is a name as atomicfile gives to a file that is being written.
const temporary = ".continuo-AAAABBBBCCCCDDDD-7"

// minimal is the smallest configuration.
var minimal = `apiVersion: continuo/v1
kind: AgentConfig
device: pi-7
servers: ["nats://127.0.0.1:1"]
credentials: {type: none}
trust: {documents: [` + newKey() + `]}
`

func newKey() string {
	kp, err := nkeys.CreateAccount()
	if err != nil {
		panic(err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		panic(err)
	}
	return public
}

// open opens the books as a running agent does.
func (b *bench) open() *store.Store {
	b.t.Helper()
	s, _, err := store.Open(store.Dir(filepath.Join(b.root, config.DefaultState)), store.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func begun(e store.Entry) store.Action { return store.Action{Entry: e, Verb: "apply"} }

// A fakeLink offers one intent and hands on what is reported.
type fakeLink struct {
	offer    agent.Intent
	reported chan interpret.DeviceStatus
}

func (l *fakeLink) Run(ctx context.Context, h agent.Handler) {
	if err := h.Offer(l.offer); err != nil {
		h.Refused("test", err.Error())
	}
	<-ctx.Done()
}

func (l *fakeLink) Send(context.Context, interpret.Receipt) error { return nil }

func (l *fakeLink) Ask(context.Context, interpret.ApprovalRequests) error { return nil }
func (l *fakeLink) Inform(context.Context, interpret.DeviceInfo) error    { return nil }

func (l *fakeLink) Report(ctx context.Context, st interpret.DeviceStatus) error {
	select {
	case l.reported <- st:
	case <-ctx.Done():
	}
	return nil
}

type fakeSupervisor struct{ heard chan string }

func (s fakeSupervisor) Ready()    { s.heard <- "ready" }
func (s fakeSupervisor) Alive()    {}
func (s fakeSupervisor) Stopping() { s.heard <- "stopping" }

// S36: the wiring is one function; given other parts, a whole cycle runs without a device and without a server.
func TestWiring(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	m := score.Manifest{APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: "m", Generation: 1},
		Spec: score.ManifestSpec{Policy: score.Policy{Preset: score.Converge}, Scores: []score.Score{
			{ID: "name", Spec: score.Hostname{Name: "kiosk-7"}},
			{ID: "motd", Spec: score.File{Path: "/etc/motd", Content: "hello", Mode: 0o644}},
		}}}
	in := agent.Once(m)
	in.Generation, in.Digest, in.Envelope = 1, "d1", []byte("signed")
	dev := memory.New()
	link := &fakeLink{offer: in, reported: make(chan interpret.DeviceStatus)}
	sv := fakeSupervisor{make(chan string, 2)}
	a, books, err := assemble(config.Config{Device: "pi-7"}, interpret.Agent{Version: "test"}, parts{
		disk: store.NewMem(), device: dev, link: link, supervisor: sv, log: logrus.NewEntry(log),
		open: func([]byte) (agent.Intent, error) { return in, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	stopped := make(chan struct{})
	go func() { a.Run(ctx); close(stopped) }()
	var st interpret.DeviceStatus
	for !st.ConvergedAt(1) {
		select {
		case st = <-link.reported:
		case <-ctx.Done():
			t.Fatalf("not converged: %+v", st)
		}
	}
	if st.Device != "pi-7" || st.Agent.Version != "test" {
		t.Errorf("reported as %q by %q", st.Device, st.Agent.Version)
	}
	if got, _ := dev.Read("/etc/motd"); got != "hello" {
		t.Errorf("the device has %q", got)
	}
	cancel()
	<-stopped
	if err := books.Close(); err != nil {
		t.Error(err)
	}
	if a, b := <-sv.heard, <-sv.heard; a != "ready" || b != "stopping" {
		t.Errorf("the supervisor heard %q, %q", a, b)
	}
}

// The agent is under the ceiling of its configuration, and looks through the eyes of its device.
func TestCeilingIsWired(t *testing.T) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	c := config.Config{Device: "pi-7", Ceiling: authority.Ceiling{Kinds: []score.Kind{"hostname"}}}
	a, books, err := assemble(c, interpret.Agent{}, parts{disk: store.NewMem(), device: memory.New(), log: logrus.NewEntry(log)})
	if err != nil {
		t.Fatal(err)
	}
	defer books.Close()
	m := score.Manifest{Metadata: score.Metadata{Name: "m", Generation: 1}, Spec: score.ManifestSpec{Scores: []score.Score{{ID: "a", Spec: score.File{Path: "/etc/a", Mode: 0o644}}}}}
	st, err := a.Runner.Apply(t.Context(), agent.Once(m))
	if err != nil || st.Manifests[0].Scores[0].Code != authority.CodeKind {
		t.Errorf("%v: %+v", err, st.Manifests)
	}
	if e := a.Runner.Eyes; e == nil || e.Probes == nil || e.Services == nil || e.Containers == nil {
		t.Errorf("it looks through %+v", e)
	}
}

// H03: a running agent listens on no port. The service manager hears that it is ready although there is no server, is
// told of the watchdog, and hears that the agent stops.
func TestRunListensOnNothing(t *testing.T) {
	b := newBench(t)
	socket := filepath.Join(b.dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "300000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	before := listening(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var errs strings.Builder
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, newRoot(), []string{"run", "--config", b.write("agent.yaml", minimal), "--root", b.root, "--state", b.dir + "/state"}, nil, io.Discard, &errs)
	}()
	hear := func(want string) {
		t.Helper()
		buf := make([]byte, 256)
		for {
			if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if string(buf[:n]) == want {
				return
			}
		}
	}
	hear("READY=1")
	hear("WATCHDOG=1")
	if got := listening(t); got != before {
		t.Errorf("listening sockets: %q, before %q", got, before)
	}
	st, err := os.Stat(b.dir + "/state")
	if err == nil && st.Mode().Perm() != 0o700 {
		t.Errorf("the state directory has mode %o", st.Mode().Perm())
	}
	stop()
	hear("STOPPING=1")
	if code := <-ended; code != 0 {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// listening names the TCP sockets of this process that listen.
func listening(t *testing.T) string {
	t.Helper()
	mine := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatalf("cannot tell who listens: %v", err)
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil {
			mine[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	var out []string
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && mine[f[9]] {
				out = append(out, f[1])
			}
		}
	}
	return strings.Join(out, " ")
}

// The helper above sees a port if there is one.
func TestListeningSeesAPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if listening(t) == "" {
		t.Error("a listening socket was not seen")
	}
}

// X19, X89: what is wrong with a configuration ends the start with exit 2, names the place, and shows no secret.
func TestRunRefusesConfigurations(t *testing.T) {
	b := newBench(t)
	seed := filepath.Join(b.dir, "seed")
	if err := os.WriteFile(seed, []byte("SUAM"), 0o644); err != nil {
		t.Fatal(err)
	}
	change := func(old, new string) string { return strings.Replace(minimal, old, new, 1) }
	tests := []struct {
		name, in, want string
		code           int
	}{
		{"unknown credentials", change("type: none", "type: zitadel-v9"), `agent.yaml:5:21: /credentials/type: unknown credentials type "zitadel-v9"`, 2},
		{"unknown field", minimal + "sever: x\n", "unknown field `sever`", 2},
		{"no server", change(`["nats://127.0.0.1:1"]`, "[]"), "no server is given", 2},
		{"password in a server", change("nats://", "nats://u:hunter2@"), "must not hold a user or a password", 2},
		{"no key", minimal[:strings.Index(minimal, "trust:")] + "trust: {documents: []}\n", "a device that trusts nobody", 2},
		{"seed as a key", change("documents: [", "documents: [SAAFAKEFAKE, "), "it is not the public key of a signer", 2},
		{"no credential file", change("type: none", "type: nkey"), "credentials of type nkey need a file", 2},
		{"open credential file", change("type: none", "type: nkey, file: "+seed), "its mode is 0644 and others may read it; run chmod 0600", 1},
		{"missing credential file", change("type: none", "type: creds, file: /nonexistent/x"), "it is not there", 1},
		{"two documents", minimal + "---\n" + minimal, "document", 2},
		{"empty", "", "", 2},
		{"another machine in the clear", change("127.0.0.1", "nats.example.org"), "would not be encrypted", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, _, errs := b.run("", "run", "--config", b.write("agent.yaml", tt.in), "--root", b.root, "--state", b.dir+"/state")
			if code != tt.code || !strings.Contains(errs, tt.want) {
				t.Errorf("exit %d, stderr %q, want exit %d and %q", code, errs, tt.code, tt.want)
			}
			if strings.Contains(errs, "hunter2") || strings.Contains(errs, "SAAFAKE") || strings.Contains(errs, "SUAM") {
				t.Errorf("a secret is shown: %q", errs)
			}
			if _, err := os.Stat(b.dir + "/state"); err == nil {
				t.Error("the state directory was made")
			}
		})
	}
}
