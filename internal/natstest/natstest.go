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

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// patience bounds what the server is asked to do. It is long, for loaded machines, and reached only by failing tests.
const patience = 30 * time.Second

// A Server is one server with its keys, its store and its port. Everything goes when the test ends. Its methods fail
// the test when they cannot do what they say; they are for the goroutine of the test.
type Server struct {
	URL        string
	CA         string        // PEM file to check the server with; empty without TLS
	Operator   nkeys.KeyPair // connection key with [wire.RoleOwner]
	Controller nkeys.KeyPair // connection key with [wire.RoleController]
	Unbound    nkeys.KeyPair // connection key of somebody who may do everything with what is stored, as no role may

	t       testing.TB
	dir     string
	config  access.ServerConfig
	keys    access.Keys
	jwts    map[string]string // of users, by their public keys
	devices map[wire.Device]nkeys.KeyPair
	system  nkeys.KeyPair
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
	s := &Server{t: t, dir: t.TempDir(), devices: map[wire.Device]nkeys.KeyPair{}, jwts: map[string]string{}}
	var err error
	var own nkeys.KeyPair // of the account itself
	s.keys, err = access.OpenKeys(func(name string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) {
		kp, err := create()
		if name == "account-"+string(access.Control) {
			own = kp
		}
		return kp, err
	})
	s.must("make keys", err)
	s.Operator, s.Controller = s.User(wire.RoleOwner), s.User(wire.RoleController)
	s.Unbound = UserKey(t)
	c := jwt.NewUserClaims(public(t, s.Unbound))
	c.Name = "unbound"
	c.Pub.Allow, c.Sub.Allow = jwt.StringList{">"}, jwt.StringList{">"}
	token, err := c.Encode(own)
	s.must("make a user", err)
	s.Know(s.Unbound, token)
	s.system = UserKey(t)
	s.jwts[public(t, s.system)], err = s.keys.SystemUser(public(t, s.system))
	s.must("make a system user", err)
	s.config = access.ServerConfig{
		Name:     "natstest",
		Listen:   freePort(t),
		StoreDir: filepath.Join(s.dir, "store"),
		JWTDir:   filepath.Join(s.dir, "jwt"),
		System:   s.keys.PublicAccount(access.System),
	}
	s.config.Operator, err = s.keys.Operator()
	s.must("make an operator", err)
	s.config.Accounts, err = s.keys.Accounts(func(string) string { return "" })
	s.must("make accounts", err)
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

// AddDevice makes a credential for d.
func (s *Server) AddDevice(d wire.Device) {
	s.t.Helper()
	s.know(d)
}

// RemoveDevice makes the running server refuse d, and cuts its connection.
func (s *Server) RemoveDevice(d wire.Device) {
	s.t.Helper()
	key := public(s.t, s.DeviceKey(d))
	delete(s.devices, d)
	s.Revoke(access.Fleet, key)
}

// Revoke revokes a credential on the running server.
func (s *Server) Revoke(a access.Account, userPublicKey string) {
	s.t.Helper()
	nc := s.Connect(s.system)
	defer nc.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	s.must("revoke a credential", s.keys.RevokeOn(ctx, nc, a, userPublicKey, time.Now()))
}

// Keys are behind every credential of the server.
func (s *Server) Keys() access.Keys { return s.keys }

// User makes somebody with a role, bound to sites if there are any.
func (s *Server) User(r wire.Role, sites ...string) nkeys.KeyPair {
	s.t.Helper()
	kp := UserKey(s.t)
	token, err := s.keys.User(string(r), r, sites, public(s.t, kp), time.Time{})
	s.must("make a user", err)
	s.Know(kp, token)
	return kp
}

// Know makes [Server.Connect] and [Server.Creds] use this JWT for a key.
func (s *Server) Know(kp nkeys.KeyPair, token string) {
	s.t.Helper()
	s.jwts[public(s.t, kp)] = token
}

// Creds writes the credentials file of a key.
func (s *Server) Creds(kp nkeys.KeyPair) string {
	s.t.Helper()
	key := public(s.t, kp)
	text, err := access.Creds(s.jwts[key], kp)
	s.must("write a credential", err)
	file := filepath.Join(s.dir, key+".creds")
	s.must("write a credential", os.WriteFile(file, text, 0o600))
	return file
}

// DeviceKey is the connection key of d.
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

// ConnectUnbound connects with [Server.Unbound].
func (s *Server) ConnectUnbound(opts ...nats.Option) *nats.Conn {
	s.t.Helper()
	return s.Connect(s.Unbound, opts...)
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
	own := []nats.Option{nats.UserJWT(func() (string, error) { return s.jwts[key], nil }, kp.Sign), nats.Timeout(patience)}
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
	token, err := s.keys.Issuer().Device(d, public(s.t, kp), time.Time{})
	s.must("make a device", err)
	s.Know(kp, token)
}

func (s *Server) configFile() string { return filepath.Join(s.dir, "nats.conf") }

func (s *Server) writeConfig() {
	s.t.Helper()
	text, err := s.config.Text()
	s.must("generate a configuration", err)
	s.must("write the configuration", os.WriteFile(s.configFile(), []byte(text), 0o600))
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
