package access_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// Bounds a request that is answered; only failing tests reach it.
const patience = 30 * time.Second

func publicKey(t *testing.T, kp nkeys.KeyPair) string {
	t.Helper()
	key, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// parse lets the server read the text as a file.
func parse(t *testing.T, c access.ServerConfig) *server.Options {
	t.Helper()
	text, err := c.Text()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return opts
}

// config is a whole one, with keys that were made for it.
func config(t *testing.T) (access.ServerConfig, access.Keys) {
	t.Helper()
	k, err := access.OpenKeys(func(_ string, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, error) { return create() })
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := access.ServerConfig{Listen: "127.0.0.1:-1", StoreDir: filepath.Join(dir, "store"), JWTDir: filepath.Join(dir, "jwt"), System: k.PublicAccount(access.System)}
	if c.Operator, err = k.Operator(); err != nil {
		t.Fatal(err)
	}
	if c.Accounts, err = k.Accounts(func(string) string { return "" }); err != nil {
		t.Fatal(err)
	}
	return c, k
}

// What the server understood is what was meant.
func TestServerReadsTheConfiguration(t *testing.T) {
	c, _ := config(t)
	dir := filepath.Join(t.TempDir(), `a "quoted" $HOME \ directory`)
	c.Name, c.Listen, c.StoreDir, c.LameDuck, c.MaxFileStore = "hub-1", "127.0.0.1:4333", dir, time.Minute, 5<<20
	opts := parse(t, c)
	got := fmt.Sprintln(opts.ServerName, opts.Host, opts.Port, opts.MaxPayload, opts.SyncAlways, opts.AuthTimeout, opts.PingInterval, opts.WriteDeadline, opts.LameDuckDuration, opts.JetStreamMaxStore, len(opts.Users), len(opts.Nkeys), len(opts.TrustedOperators))
	if want := "hub-1 127.0.0.1 4333 1048576 true 10 2m0s 10s 1m0s 5242880 0 0 1\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if opts.StoreDir != dir || opts.SystemAccount != c.System {
		t.Errorf("store directory %q, system account %q", opts.StoreDir, opts.SystemAccount)
	}
	if opts.NoAuthUser != "" {
		t.Errorf("%q needs no key", opts.NoAuthUser)
	}
}

func TestServerConfigRefuses(t *testing.T) {
	tests := []struct {
		name   string
		change func(*access.ServerConfig)
		want   string
	}{
		{"no listen address", func(c *access.ServerConfig) { c.Listen = "" }, "listen address"},
		{"no store", func(c *access.ServerConfig) { c.StoreDir = "" }, "store directory"},
		{"no place for accounts", func(c *access.ServerConfig) { c.JWTDir = "" }, "one for accounts"},
		{"no operator", func(c *access.ServerConfig) { c.Operator = "" }, "an operator"},
		{"no system account", func(c *access.ServerConfig) { c.System = "x" }, "the system account is one of them"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := config(t)
			tt.change(&c)
			text, err := c.Text()
			if err == nil || text != "" || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key)
	kp := natstest.UserKey(t)
	c, keys := config(t)
	c.TLS = &access.TLS{Cert: cert, Key: key}
	opts := parse(t, c)
	token, err := keys.User("anna", wire.RoleViewer, nil, publicKey(t, kp), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	opts.NoLog, opts.NoSigs = true, true
	srv, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer srv.WaitForShutdown()
	defer srv.Shutdown()
	if !srv.ReadyForConnections(patience) {
		t.Fatal("no server")
	}
	nc, err := nats.Connect(srv.ClientURL(), nats.Secure(&tls.Config{RootCAs: pool}), nats.UserJWT(func() (string, error) { return token, nil }, kp.Sign))
	if err != nil {
		t.Fatal(err)
	}
	if !nc.TLSRequired() {
		t.Error("the server does not insist on TLS")
	}
	nc.Close()
	c.TLS = &access.TLS{Cert: "c", Key: "k", CA: "ca"}
	if text, err := c.Text(); err != nil || !strings.Contains(text, "verify: true") {
		t.Errorf("client certificates are not asked for: %v", err)
	}
}

func writeCertificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, b := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return pool
}
