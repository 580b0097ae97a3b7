package localnats

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
)

// selfSigned makes a certificate that nobody else vouches for.
func selfSigned(t *testing.T, names ...string) (*x509.Certificate, TLS) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := TLS{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for file, b := range map[string]*pem.Block{files.Cert: {Type: "CERTIFICATE", Bytes: der}, files.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, files
}

func TestWhere(t *testing.T) {
	cert, _ := selfSigned(t, "*.example.org", "nats.example.org")
	local, _ := selfSigned(t, "localhost")
	own := ownAddress() + ":1"
	tests := []struct {
		listen, host string
		cert         *x509.Certificate
		here, there  string
	}{
		{"127.0.0.1:1", "", nil, "127.0.0.1:1", "127.0.0.1:1"},
		{"127.0.0.1:1", "", local, "127.0.0.1:1", "localhost:1"},
		{"[::]:1", "", nil, "127.0.0.1:1", own},
		{"0.0.0.0:1", "", nil, "127.0.0.1:1", own},
		{"0.0.0.0:1", "pi.lan", nil, "127.0.0.1:1", "pi.lan:1"},
		{"[::]:1", "", cert, "127.0.0.1:1", "nats.example.org:1"},
		{"192.0.2.1:1", "", cert, "192.0.2.1:1", "nats.example.org:1"},
		{"192.0.2.1:1", "192.0.2.9", cert, "192.0.2.1:1", "192.0.2.9:1"},
		{"nats.example.org:1", "", cert, "nats.example.org:1", "nats.example.org:1"},
	}
	for _, tt := range tests {
		here, there, err := where(tt.listen, tt.host, tt.cert)
		if err != nil || here != tt.here || there != tt.there {
			t.Errorf("%s %s: got %s and %s, %v; want %s and %s", tt.listen, tt.host, here, there, err, tt.here, tt.there)
		}
	}
}

// A server with a certificate is usable from its own machine, whoever signed it and whatever it is for; and only this
// server is.
func TestServerWithCertificate(t *testing.T) {
	_, files := selfSigned(t, "nats.example.org")
	dir := t.TempDir()
	s, err := Start(Options{Dir: dir, Listen: "127.0.0.1:0", TLS: &files})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, err := s.AddDevice(fleet.Device{Site: "main", ID: "pi-1"})
	if err != nil || !strings.HasPrefix(c.Servers[0], "tls://nats.example.org:") {
		t.Errorf("got %v, %v", c.Servers, err)
	}
	stranger := Dir(dir).Operator()
	stranger.ServerCert = ""
	if f, err := fleet.Connect(t.Context(), stranger); err == nil || !strings.Contains(err.Error(), "for another name") {
		t.Errorf("a server of another name: %v, %v", f, err)
	}
	_, others := selfSigned(t, "nats.example.org")
	text, err := os.ReadFile(others.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, certName), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := fleet.Connect(t.Context(), Dir(dir).Operator()); err == nil || !strings.Contains(err.Error(), "another certificate") {
		t.Errorf("a server with another certificate: %v, %v", f, err)
	}
}
