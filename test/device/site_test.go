//go:build device && linux

package device

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

const (
	agentUnit = "continuo-agent.service"
	// patience is how long something may take that is about to happen. Only a failing test waits so long.
	patience = 90 * time.Second
	// manifestName is what the manifests of these tests are called, unless one says otherwise.
	manifestName = "kiosk"
)

// A site is a fleet with one device: a server from the generated configuration, encrypted, the operator's connection,
// and a box in which the agent is installed as its documentation says.
type site struct {
	*box.Box
	t     *testing.T
	id    fleet.Device
	srv   *natstest.Server
	relay *relay
	keys  fleet.Keys
	fleet *fleet.Fleet
}

// newSite makes a site. Its agent is enabled and not started.
func newSite(t *testing.T, o box.Options) *site {
	t.Helper()
	s := &site{t: t, id: fleet.Device{Site: "main", ID: "pi-7"}}
	s.srv = natstest.StartTLS(t, []string{box.HubName}, s.id)
	s.srv.CreateStreams()
	target, err := url.Parse(s.srv.URL)
	s.must(err)
	s.relay = newRelay(t, target.Host)
	s.keys, err = fleet.OpenKeys(filepath.Join(t.TempDir(), "keys"))
	s.must(err)
	s.fleet = s.connect(s.srv.Operator)
	s.Box = box.Start(t, o)
	s.install()
	return s
}

// online is newSite with an agent that runs, and a control service.
func online(t *testing.T, o box.Options) *site {
	t.Helper()
	s := newSite(t, o)
	s.control(fleet.ServeOptions{Interval: 5 * time.Second, Reconnect: 5 * time.Second})
	s.run("systemctl", "start", agentUnit)
	return s
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

var agentBinary struct {
	sync.Mutex
	content []byte
}

// install does what an administrator does: the program, its configuration, its key and its unit.
func (s *site) install() {
	s.t.Helper()
	agentBinary.Lock()
	if agentBinary.content == nil {
		b, err := os.ReadFile(box.Build(s.t, "./cmd/continuo-agent"))
		s.must(err)
		agentBinary.content = b
	}
	agentBinary.Unlock()
	s.PutFile("/usr/local/bin/continuo-agent", agentBinary.content, 0o755)

	operator, control, err := s.keys.Trusted()
	s.must(err)
	config, err := json.Marshal(map[string]any{
		"apiVersion": score.APIVersion, "kind": "AgentConfig", "device": s.id.ID,
		"servers":     []string{fmt.Sprintf("tls://%s:%d", box.HubName, s.relay.port)},
		"credentials": map[string]any{"type": "creds", "file": "/etc/continuo/device.creds"},
		"tls":         map[string]any{"ca": "/etc/continuo/ca.pem"},
		"trust":       map[string]any{"documents": []string{operator}, "control": []string{control}},
		"registries":  map[string]any{"plaintext": []string{box.HubName + ":5000"}}, // that of the hub
	})
	s.must(err)
	s.PutFile("/etc/continuo/agent.yaml", config, 0o644)
	creds, err := os.ReadFile(s.srv.Creds(s.srv.DeviceKey(s.id)))
	s.must(err)
	s.PutFile("/etc/continuo/device.creds", creds, 0o600)
	ca, err := os.ReadFile(s.srv.CA)
	s.must(err)
	s.PutFile("/etc/continuo/ca.pem", ca, 0o644)
	s.sh(`continuo-agent unit >/etc/systemd/system/continuo-agent.service
		systemctl daemon-reload
		systemctl enable --quiet continuo-agent
		sync -f /etc/continuo`)
}

// run runs a command in the box that must succeed.
func (s *site) run(args ...string) string {
	s.t.Helper()
	return run(s.t, s.Box, args...)
}

// sh runs lines of shell in the box that must succeed.
func (s *site) sh(script string) string {
	s.t.Helper()
	return run(s.t, s.Box, "sh", "-ec", script)
}

// connect connects with a key, as a command does with a credentials file.
func (s *site) connect(key nkeys.KeyPair) *fleet.Fleet {
	s.t.Helper()
	f, err := fleet.Connect(s.t.Context(), fleet.Options{
		Server: s.srv.URL, CA: s.srv.CA, Creds: s.srv.Creds(key), Getenv: func(string) string { return "" }, ConfigDir: s.t.TempDir(),
	})
	s.must(err)
	s.t.Cleanup(f.Close)
	return f
}

// control runs a control service until stop is called or the test ends.
func (s *site) control(o fleet.ServeOptions) (stop func()) {
	s.t.Helper()
	operator, _, err := s.keys.Trusted()
	s.must(err)
	o.Signer = s.keys.Control
	o.Keys, err = fleet.DocumentKeys(operator)
	s.must(err)
	f := s.connect(s.srv.Controller)
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
		f.Close()
	})
	s.t.Cleanup(stop)
	return stop
}

// connected waits until the server has the agent's connection.
func (s *site) connected() {
	s.t.Helper()
	box.Until(s.t, patience, "the agent is connected", func() error {
		if n := len(s.clients()); n != 1 {
			return fmt.Errorf("%d connections of it", n)
		}
		return nil
	})
}

// agentPID is the main process of the agent's service, which must run.
func (s *site) agentPID() string {
	s.t.Helper()
	pid := s.run("systemctl", "show", "-P", "MainPID", agentUnit)
	if pid == "0" {
		s.t.Fatalf("the agent does not run:\n%s", s.journal())
	}
	return pid
}

// clients are the connections that the server has from the device's key.
func (s *site) clients() []*server.ConnInfo {
	s.t.Helper()
	key, err := s.srv.DeviceKey(s.id).PublicKey()
	s.must(err)
	conns, err := s.srv.Embedded().Connz(&server.ConnzOptions{Username: true, Subscriptions: true})
	s.must(err)
	var own []*server.ConnInfo
	for _, c := range conns.Conns {
		if c.AuthorizedUser == key {
			own = append(own, c)
		}
	}
	return own
}

func (s *site) journal() string {
	return s.run("journalctl", "-b", "-u", agentUnit, "-n", "40", "--no-pager", "-o", "short-precise")
}

// logged counts lines of the agent's log.
func (s *site) logged(text string) int {
	s.t.Helper()
	return strings.Count(s.run("journalctl", "-b", "-u", agentUnit, "--no-pager", "-o", "cat"), text)
}

// image is what pibox-image makes.
const image = "localhost/busybox:1"
