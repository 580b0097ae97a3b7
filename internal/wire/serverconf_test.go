package wire_test

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

	"github.com/continuo-fleet/continuo/internal/natstest"
	"github.com/continuo-fleet/continuo/internal/wire"
)

func publicKey(t *testing.T, kp nkeys.KeyPair) string {
	t.Helper()
	key, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// parse lets the server read the text as a file.
func parse(t *testing.T, c wire.ServerConfig) *server.Options {
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

// What the server understood is what was meant.
func TestServerReadsTheConfiguration(t *testing.T) {
	operator, device, system := publicKey(t, natstest.UserKey(t)), publicKey(t, natstest.UserKey(t)), publicKey(t, natstest.UserKey(t))
	dir := filepath.Join(t.TempDir(), `a "quoted" $HOME \ directory`)
	opts := parse(t, wire.ServerConfig{
		Name: "hub-1", Listen: "127.0.0.1:4333", StoreDir: dir, SystemUser: system, LameDuck: time.Minute, MaxFileStore: 5 << 20,
		ControlUsers: []wire.ControlUser{{PublicKey: operator, Roles: wire.Operator}},
		Devices:      []wire.DeviceUser{{PublicKey: device, Device: pi1}},
	})
	got := fmt.Sprintln(opts.ServerName, opts.Host, opts.Port, opts.MaxPayload, opts.SyncAlways, opts.AuthTimeout, opts.PingInterval, opts.WriteDeadline, opts.LameDuckDuration, opts.JetStreamMaxStore, opts.SystemAccount, len(opts.Users))
	if want := "hub-1 127.0.0.1 4333 1048576 true 10 2m0s 10s 1m0s 5242880 SYS 0\n"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if opts.StoreDir != dir {
		t.Errorf("store directory %q, want %q", opts.StoreDir, dir)
	}
	accounts := map[string]string{}
	for _, u := range opts.Nkeys {
		accounts[u.Nkey] = u.Account.Name
	}
	if len(accounts) != 3 || accounts[operator] != "CTRL" || accounts[device] != "FLEET" || accounts[system] != "SYS" {
		t.Errorf("accounts %v", accounts)
	}
	if opts.NoAuthUser != "" {
		t.Errorf("%q needs no key", opts.NoAuthUser)
	}
}

func TestServerConfigRefuses(t *testing.T) {
	a, b := publicKey(t, natstest.UserKey(t)), publicKey(t, natstest.UserKey(t))
	signer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	base := wire.ServerConfig{Listen: "127.0.0.1:4222", StoreDir: "/x"}
	tests := []struct {
		name   string
		change func(*wire.ServerConfig)
		want   string
	}{
		{"no listen address", func(c *wire.ServerConfig) { c.Listen = "" }, "listen address"},
		{"no store", func(c *wire.ServerConfig) { c.StoreDir = "" }, "store directory"},
		{"bad device", func(c *wire.ServerConfig) {
			c.Devices = []wire.DeviceUser{{PublicKey: a, Device: wire.Device{Site: "main", ID: ">"}}}
		}, `cannot use ">" as a device id`},
		{"device twice", func(c *wire.ServerConfig) {
			c.Devices = []wire.DeviceUser{{PublicKey: a, Device: pi1}, {PublicKey: b, Device: pi1}}
		}, "main.pi-1 a user: it is listed twice"},
		{"key twice", func(c *wire.ServerConfig) {
			c.Devices = []wire.DeviceUser{{PublicKey: a, Device: pi1}, {PublicKey: a, Device: pi10}}
		}, "device main.pi-1 has the same key"},
		{"signing key", func(c *wire.ServerConfig) {
			c.ControlUsers = []wire.ControlUser{{PublicKey: publicKey(t, signer), Roles: wire.Operator}}
		}, "not a public user key"},
		{"something else", func(c *wire.ServerConfig) { c.SystemUser = `x" }, { user: y` }, "not a public user key"},
		{"unknown role", func(c *wire.ServerConfig) {
			c.ControlUsers = []wire.ControlUser{{PublicKey: a, Roles: []wire.Role{"king"}}}
		}, `role "king"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := base
			tt.change(&c)
			text, err := c.Text()
			if err == nil || text != "" || !strings.HasPrefix(err.Error(), "cannot ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// The lines that join the accounts are a contract too: their subjects are in devices' firmware.
func TestImportLines(t *testing.T) {
	text, err := wire.ServerConfig{Listen: "127.0.0.1:4222", StoreDir: "/x"}.Text()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{ stream: { account: CTRL, subject: "cfg.>" } }`,
		`{ service: { account: CTRL, subject: "$JS.API.DIRECT.GET.KV_desired.$KV.desired.d.*.*" }, to: "get.d.$1.$2" }`,
		`{ service: { account: CTRL, subject: "$JS.API.DIRECT.GET.KV_desired.$KV.desired.c.*" }, to: "get.c.$1" }`,
		`{ service: { account: CTRL, subject: "$JS.API.DIRECT.GET.KV_desired.$KV.desired.a.*.*" }, to: "get.a.$1.$2" }`,
		`{ service: { account: CTRL, subject: "$JS.API.DIRECT.GET.KV_desired.$KV.desired.t.root.*" }, to: "get.t.root.$1" }`,
		`{ service: { account: CTRL, subject: "actual.*.*" }, to: "st.$1.$2" }`,
		`{ service: { account: CTRL, subject: "$JS.API.DIRECT.GET.ACTUAL.actual.*.*" }, to: "getst.$1.$2" }`,
		`{ service: { account: CTRL, subject: "hb.*.*" } }`,
		`{ service: { account: CTRL, subject: "ev.*.*" } }`,
		`{ service: { account: CTRL, subject: "renew.*.*" } }`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	fleet := text[strings.Index(text, "FLEET {"):]
	if strings.Contains(fleet, "jetstream") {
		t.Error("the account of devices has JetStream")
	}
}

// A large fleet is a file that a server still reads at once.
func TestConfigurationOfThousand(t *testing.T) {
	c := wire.ServerConfig{Listen: "127.0.0.1:4222", StoreDir: "/x"}
	for i := range 1000 {
		key, err := nkeys.Encode(nkeys.PrefixByteUser, fmt.Appendf(nil, "%032d", i))
		if err != nil {
			t.Fatal(err)
		}
		c.Devices = append(c.Devices, wire.DeviceUser{PublicKey: string(key), Device: wire.Device{Site: "main", ID: fmt.Sprint("pi-", i)}})
	}
	text, err := c.Text()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(text))
	if n := len(parse(t, c).Nkeys); n != 1000 {
		t.Errorf("%d users", n)
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	pool := writeCertificate(t, cert, key)
	kp := natstest.UserKey(t)
	opts := parse(t, wire.ServerConfig{
		Listen: "127.0.0.1:-1", StoreDir: filepath.Join(dir, "store"), TLS: &wire.TLS{Cert: cert, Key: key},
		ControlUsers: []wire.ControlUser{{PublicKey: publicKey(t, kp), Roles: wire.Operator}},
	})
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
	nc, err := nats.Connect(srv.ClientURL(), nats.Secure(&tls.Config{RootCAs: pool}), nats.Nkey(publicKey(t, kp), kp.Sign))
	if err != nil {
		t.Fatal(err)
	}
	if !nc.TLSRequired() {
		t.Error("the server does not insist on TLS")
	}
	nc.Close()
	if text, err := (wire.ServerConfig{Listen: "x:1", StoreDir: "/x", TLS: &wire.TLS{Cert: "c", Key: "k", CA: "ca"}}).Text(); err != nil || !strings.Contains(text, "verify: true") {
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
