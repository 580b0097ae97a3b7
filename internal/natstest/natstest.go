// Package natstest runs a real NATS server inside a test, from the very configuration that the product generates:
// accounts, imports, permissions and streams. It is for tests only; the product's own server is started by the command.
package natstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// patience bounds what the server is asked to do. It is long, for loaded machines, and reached only by failing tests.
const patience = 30 * time.Second

// A Server is one server with its keys, its store and its port. Everything goes when the test ends. Its methods fail
// the test when they cannot do what they say; they are for the goroutine of the test.
type Server struct {
	URL        string
	CA         string        // PEM file to check the server with; empty without TLS
	Operator   nkeys.KeyPair // connection key with [wire.Operator]
	Controller nkeys.KeyPair // connection key with [wire.RoleController]

	t       testing.TB
	dir     string
	config  wire.ServerConfig
	devices map[wire.Device]nkeys.KeyPair
	running *server.Server
}

// Start runs a server that knows the devices, with the streams created.
func Start(t testing.TB, devices ...wire.Device) *Server {
	t.Helper()
	s := start(t, nil, devices)
	s.CreateStreams()
	return s
}

func start(t testing.TB, hosts []string, devices []wire.Device) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), Operator: UserKey(t), Controller: UserKey(t), devices: map[wire.Device]nkeys.KeyPair{}}
	s.config = wire.ServerConfig{
		Name:     "natstest",
		Listen:   freePort(t),
		StoreDir: filepath.Join(s.dir, "store"),
		ControlUsers: []wire.ControlUser{
			{PublicKey: public(t, s.Operator), Roles: wire.Operator},
			{PublicKey: public(t, s.Controller), Roles: []wire.Role{wire.RoleController}},
		},
	}
	s.URL = "nats://" + s.config.Listen
	if hosts != nil {
		s.encrypt(hosts)
	}
	for _, d := range devices {
		s.know(d)
	}
	t.Cleanup(func() {
		if s.running != nil {
			s.Stop()
		}
	})
	s.Restart()
	return s
}

// Stop shuts the server down. The port and the store stay.
func (s *Server) Stop() {
	s.t.Helper()
	if s.running == nil {
		s.t.Fatal("natstest: the server is stopped already")
	}
	s.running.Shutdown()
	s.running.WaitForShutdown()
	s.running = nil
}

// Kill ends the server as kill -9 does: what the next start finds is the store as it was while the server still ran,
// not as a tidy shutdown leaves it. It does not stand for a loss of power.
func (s *Server) Kill() {
	s.t.Helper()
	killed := filepath.Join(s.dir, "killed")
	err := fs.ErrNotExist
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < 10; try++ { // the server renames files while they are copied
		s.must("drop a torn copy", os.RemoveAll(killed))
		err = os.CopyFS(killed, os.DirFS(s.config.StoreDir))
	}
	s.must("copy the store", err)
	s.Stop()
	s.must("drop the store", os.RemoveAll(s.config.StoreDir))
	s.must("put the store back", os.Rename(killed, s.config.StoreDir))
}

// Restart starts the server again, on the same port and on whatever the store holds.
func (s *Server) Restart() {
	s.t.Helper()
	if s.running != nil {
		s.t.Fatal("natstest: the server is running already")
	}
	s.writeConfig()
	opts, err := server.ProcessConfigFile(s.configFile())
	s.must("read the generated configuration", err)
	opts.NoSigs, opts.NoLog = true, true
	srv, err := server.NewServer(opts)
	s.must("make a server", err)
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		srv.Shutdown()
		s.t.Fatalf("natstest: no server on %s after %s", s.config.Listen, patience)
	}
	s.running = srv
}

// Wipe removes everything that a stopped server has stored.
func (s *Server) Wipe() {
	s.t.Helper()
	if s.running != nil {
		s.t.Fatal("natstest: stop the server before its store is wiped")
	}
	s.must("wipe the store", os.RemoveAll(s.config.StoreDir))
}

// CreateStreams creates the streams of [wire.Streams].
func (s *Server) CreateStreams() {
	s.t.Helper()
	nc := s.ConnectOperator()
	defer nc.Close()
	js, err := jetstream.New(nc)
	s.must("use JetStream", err)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for _, st := range wire.Streams(1) {
		b, err := json.Marshal(st)
		s.must("encode stream "+st.Name, err)
		var config jetstream.StreamConfig
		s.must("decode stream "+st.Name, json.Unmarshal(b, &config))
		_, err = js.CreateStream(ctx, config)
		s.must("create stream "+st.Name, err)
	}
}

// AddDevice makes the running server know d. Nobody else is disconnected.
func (s *Server) AddDevice(d wire.Device) {
	s.t.Helper()
	s.know(d)
	s.reload()
}

// RemoveDevice makes the running server forget d, and cuts its connection.
func (s *Server) RemoveDevice(d wire.Device) {
	s.t.Helper()
	delete(s.devices, d)
	for i, u := range s.config.Devices {
		if u.Device == d {
			s.config.Devices = append(s.config.Devices[:i:i], s.config.Devices[i+1:]...)
			break
		}
	}
	s.reload()
}

// DeviceKey is the connection key of d, to write to a seed file.
func (s *Server) DeviceKey(d wire.Device) nkeys.KeyPair {
	s.t.Helper()
	kp, ok := s.devices[d]
	if !ok {
		s.t.Fatalf("natstest: the server does not know device %s", d)
	}
	return kp
}

// ConnectOperator connects with [Server.Operator].
func (s *Server) ConnectOperator(opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	return s.Connect(s.Operator, opts...)
}

// ConnectController connects with [Server.Controller].
func (s *Server) ConnectController(opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	return s.Connect(s.Controller, opts...)
}

// ConnectDevice connects as d, with its own inbox.
func (s *Server) ConnectDevice(d wire.Device, opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	return s.Connect(s.DeviceKey(d), append([]nats.Option{nats.CustomInboxPrefix(wire.InboxPrefix(d))}, opts...)...)
}

// Connect connects with a key. The connection is closed when the test ends.
func (s *Server) Connect(kp nkeys.KeyPair, opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	key := public(s.t, kp)
	own := []nats.Option{nats.Nkey(key, kp.Sign), nats.Timeout(patience)}
	if s.CA != "" {
		own = append(own, nats.RootCAs(s.CA))
	}
	nc, err := nats.Connect(s.URL, append(own, opts...)...)
	s.must("connect", err)
	s.t.Cleanup(nc.Close)
	return nc
}

// Embedded is the running server itself, for what only it can tell: connections, subscriptions, consumers.
func (s *Server) Embedded() *server.Server { return s.running }

// UserKey makes a connection key.
func UserKey(t testing.TB) nkeys.KeyPair {
	t.Helper()
	kp, err := nkeys.CreateUser()
	if err != nil {
		t.Fatalf("natstest: cannot make a key: %v", err)
	}
	return kp
}

func (s *Server) know(d wire.Device) {
	s.t.Helper()
	kp := UserKey(s.t)
	s.devices[d] = kp
	s.config.Devices = append(s.config.Devices, wire.DeviceUser{PublicKey: public(s.t, kp), Device: d})
}

func (s *Server) configFile() string { return filepath.Join(s.dir, "nats.conf") }

func (s *Server) writeConfig() {
	s.t.Helper()
	text, err := s.config.Text()
	s.must("generate a configuration", err)
	s.must("write the configuration", os.WriteFile(s.configFile(), []byte(text), 0o600))
}

func (s *Server) reload() {
	s.t.Helper()
	s.writeConfig()
	if s.running != nil {
		s.must("reload the configuration", s.running.Reload())
	}
}

func (s *Server) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("natstest: cannot %s: %v", what, err)
	}
}

func public(t testing.TB, kp nkeys.KeyPair) string {
	t.Helper()
	key, err := kp.PublicKey()
	if err != nil {
		t.Fatalf("natstest: cannot read a public key: %v", err)
	}
	return key
}

// freePort finds a port that stays the server's over restarts.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("natstest: cannot find a free port: %v", err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
