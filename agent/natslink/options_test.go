package natslink

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

func TestOptions(t *testing.T) { // X20, cases 115
	seed, err := natstest.UserKey(t).Seed()
	if err != nil {
		t.Fatal(err)
	}
	wrong, err := newSigner(t).Seed()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nothing")
	const content = "whatever such a file holds"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		change func(*Options)
		want   string // "" = good
	}{
		{"loopback", func(*Options) {}, ""},
		{"no scheme", func(o *Options) { o.Servers = []string{"127.0.0.1:4222"} }, ""},
		{"tls", func(o *Options) { o.Servers = []string{"tls://hub.example.org"} }, ""},
		{"plaintext allowed", func(o *Options) { o.Servers, o.Plaintext = []string{"nats://198.51.100.1"}, true }, ""},
		{"seed", func(o *Options) { o.Seed = seed }, ""},
		{"plaintext", func(o *Options) { o.Servers = []string{"nats://127.0.0.1", "nats://198.51.100.1"} }, "would not be encrypted"},
		{"IPv6 loopback", func(o *Options) { o.Servers = []string{"nats://[::1]:4222"} }, ""},
		{"localhost", func(o *Options) { o.Servers = []string{"ws://localhost:8080"} }, ""},
		{"another machine, and encryption for all", func(o *Options) { o.Servers = []string{"tls://hub.example.org", "nats://198.51.100.1"} }, ""},
		{"no scheme, another machine", func(o *Options) { o.Servers = []string{"198.51.100.1:4222"} }, "would not be encrypted"},
		{"IPv6", func(o *Options) { o.Servers = []string{"nats://[2001:db8::1]:4222"} }, "would not be encrypted"},
		{"IPv4 in IPv6", func(o *Options) { o.Servers = []string{"nats://[::ffff:198.51.100.1]:4222"} }, "would not be encrypted"},
		{"every address", func(o *Options) { o.Servers = []string{"nats://0.0.0.0:4222"} }, "would not be encrypted"},
		{"websocket", func(o *Options) { o.Servers = []string{"ws://198.51.100.1:8080"} }, "would not be encrypted"},
		{"a name that begins like ours", func(o *Options) { o.Servers = []string{"nats://localhost.example.org:4222"} }, "would not be encrypted"},
		{"a name that begins like an address", func(o *Options) { o.Servers = []string{"nats://127.0.0.1.example.org:4222"} }, "would not be encrypted"},
		{"a name as a user", func(o *Options) { o.Servers = []string{"nats://127.0.0.1@hub.example.org:4222"} }, "holds a user or a password"},
		{"a password", func(o *Options) { o.Servers = []string{"nats://u:hunter2@127.0.0.1:4222"} }, "holds a user or a password"},
		{"a password, and no URL", func(o *Options) { o.Servers = []string{"nats://u:hunter2@[::1"} }, "holds a user or a password"},
		{"no server", func(o *Options) { o.Servers = nil }, "no server is given"},
		{"joined servers", func(o *Options) { o.Servers = []string{"nats://127.0.0.1,nats://127.0.0.2"} }, "give each server by itself"},
		{"odd scheme", func(o *Options) { o.Servers = []string{"http://127.0.0.1"} }, "the scheme is none of"},
		{"no host", func(o *Options) { o.Servers = []string{"nats://:4222"} }, "no host"},
		{"no URL", func(o *Options) { o.Servers = []string{"nats://[::1"} }, "cannot use server"},
		{"wildcard", func(o *Options) { o.Device.ID = "*" }, "as a device id"},
		{"MAC", func(o *Options) { o.Device.ID = "b8:27:eb:01:02:03" }, "as a device id"},
		{"no device", func(o *Options) { o.Device = wire.Device{} }, "as a site"},
		{"no instance", func(o *Options) { o.Instance = "" }, "no instance"},
		{"two keys", func(o *Options) { o.Seed, o.SeedFile = seed, "x" }, "give one of"},
		{"no seed", func(o *Options) { o.Seed = []byte("SUXX") }, "the seed is not one"},
		{"seed of another kind", func(o *Options) { o.Seed = wrong }, "not a user's"},
		{"seed file missing", func(o *Options) { o.SeedFile = file + ".nk" }, "no such file"},
		{"seed file", func(o *Options) { o.SeedFile = file }, "cannot log in as main.pi-1"},
		{"credentials file missing", func(o *Options) { o.CredsFile = file + ".creds" }, "no such file"},
		{"CA missing", func(o *Options) { o.CA = file + ".pem" }, "no such file"},
		{"CA", func(o *Options) { o.CA = file }, "holds no certificate"},
		{"certificate", func(o *Options) { o.Cert, o.Key = file, file }, "cannot use the client certificate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Servers: []string{"nats://127.0.0.1:4222"}, Device: pi1, Instance: "i", Trust: new(Trust)}
			tt.change(&o)
			l, err := New(o)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if tt.want == "" && l.o.atOnce != !strings.Contains(o.Servers[0], "hub") && !o.Plaintext {
				t.Errorf("at once: %v", l.o.atOnce)
			}
			for _, secret := range []string{string(seed), string(wrong), "SUXX", "hunter2", content} { // X89
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("what is secret is in the message: %v", err)
				}
			}
		})
	}
}

// The settings without which a fleet does not come back.
func TestConnectOptions(t *testing.T) {
	l, err := New(Options{Servers: []string{"nats://127.0.0.1:4222"}, Device: pi1, Instance: "i", Trust: new(Trust)})
	if err != nil {
		t.Fatal(err)
	}
	var n nats.Options
	for _, o := range l.opts {
		if err := o(&n); err != nil {
			t.Fatal(err)
		}
	}
	if n.MaxReconnect != -1 || !n.RetryOnFailedConnect || !n.IgnoreAuthErrorAbort || n.ReconnectBufSize != -1 || n.Timeout != 10*time.Second || n.InboxPrefix != "_INBOX.main.pi-1" {
		t.Errorf("got %+v", n)
	}
}

// A device whose clock is behind waits for it, says so, and connects without a restart (case 121). Here it is the
// certificate that is exchanged, because nobody can set the clock of a test.
func TestCertificateNotYetValid(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certify := func(from time.Time) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hub"}, NotBefore: from, NotAfter: from.Add(48 * time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
		if err != nil {
			t.Fatal(err)
		}
		k, err := x509.MarshalPKCS8PrivateKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		for path, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: k}} {
			if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := func(port int) *server.Server {
		opts := &server.Options{Host: "127.0.0.1", Port: port, NoSigs: true, NoLog: true, TLSTimeout: 10}
		config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: cert, KeyFile: key})
		if err != nil {
			t.Fatal(err)
		}
		opts.TLSConfig = config
		srv, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		srv.Start()
		if !srv.ReadyForConnections(patience) {
			t.Fatal("no server")
		}
		return srv
	}
	certify(time.Now().Add(24 * time.Hour))
	srv := run(-1)
	port := srv.Addr().(*net.TCPAddr).Port
	ca := filepath.Join(dir, "ca.pem")
	b, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Servers: []string{srv.ClientURL()}, Device: pi1, Instance: "i", Trust: new(Trust), CA: ca, tune: tuning{heartbeat: time.Hour}}
	o.Servers[0] = strings.Replace(o.Servers[0], "nats://", "tls://", 1)
	// Both certificates are trusted; only their time differs.
	certify(time.Now().Add(-time.Hour))
	valid, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca, append(b, valid...), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t}
	l, h, _ := r.run(o)
	h.until(t, "early", func() bool { return strings.Contains(h.problems[CodeLink], "clock of this device is earlier") })
	srv.Shutdown()
	srv.WaitForShutdown()
	srv = run(port)
	defer srv.Shutdown()
	r.online(l)
	h.hasNot(t, CodeLink)
}
