package natslink

import (
	"bufio"
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
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// An authority signs certificates of servers.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // as a device has it
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, key: newKey(t), file: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// certify makes a certificate for 127.0.0.1, as change makes it another one.
func (a *authority) certify(change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a server"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func serveTLS(t *testing.T, config *tls.Config) *server.Server {
	t.Helper()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true, TLSTimeout: 10, TLSConfig: config})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		t.Fatal("no server")
	}
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	return srv
}

// A device talks to a server that proves to be the one of the configuration, and to no other; with a server that would
// rather not be encrypted it does not talk at all.
func TestOnlyTheRightServer(t *testing.T) {
	ours, others := newAuthority(t), newAuthority(t)
	old := &tls.Config{Certificates: []tls.Certificate{ours.certify(nil)}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	with := func(c tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{c}, MinVersion: tls.VersionTLS12}
	}
	tests := []struct {
		name, scheme, ca string
		config           *tls.Config
		problem, err     string // what the status and the log say; both empty = connected
	}{
		{"the right one", "tls", ours.file, with(ours.certify(nil)), "", ""},
		{"the right one, by the authority alone", "nats", ours.file, with(ours.certify(nil)), "", ""},
		{"of an unknown authority", "tls", ours.file, with(others.certify(nil)), "the server cannot be trusted: ", "unknown authority"},
		{"of an authority that the system does not know", "tls", "", with(ours.certify(nil)), "the server cannot be trusted: ", "unknown authority"},
		{"of an unknown authority, although nobody asked", "nats", "", with(ours.certify(nil)), "the server cannot be trusted: ", "unknown authority"},
		{"with another name", "tls", ours.file, with(ours.certify(func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"hub.example.org"} })),
			"the server cannot be trusted: ", "127.0.0.1"},
		{"expired", "tls", ours.file, with(ours.certify(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })),
			"the server cannot be trusted: ", "expired"},
		{"of a client", "tls", ours.file, with(ours.certify(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })),
			"the server cannot be trusted: ", "usage"},
		{"TLS 1.1", "tls", ours.file, old, "", "protocol version"},
		{"no encryption where it was asked for", "tls", ours.file, nil, "the server offers no encryption", "secure connection not available"},
		{"no encryption where an authority is named", "nats", ours.file, nil, "the server offers no encryption", "secure connection not available"},
		{"no encryption, and nothing but the scheme", "tls", "", nil, "the server offers no encryption", "secure connection not available"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv := serveTLS(t, tt.config)
			told := make(chan error, 100)
			o := Options{
				Trust:   new(Trust),
				Servers: []string{tt.scheme + "://" + srv.Addr().String()}, Device: pi1, Instance: "i", CA: tt.ca,
				Notice: func(err error) { told <- err }, tune: tuning{heartbeat: time.Hour},
			}
			r := &rig{t: t}
			l, h, _ := r.run(o)
			if tt.problem == "" && tt.err == "" {
				r.online(l)
				return
			}
			select {
			case err := <-told:
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("the log says %v, want %q", err, tt.err)
				}
			case <-time.After(patience):
				t.Fatal("nothing is said")
			}
			if tt.problem != "" {
				h.until(t, "told", func() bool { return strings.HasPrefix(h.problems[CodeLink], tt.problem) })
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.nc != nil {
				t.Error("the link has a connection")
			}
		})
	}
}

// What a server tells of other servers is not followed: it comes before the server has proved who it is, and without
// encryption. (A server of one's own for each name is what whoever is on the way can have.)
func TestServersThatAServerNames(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var lured atomic.Int32
	go accept(other, func(net.Conn) { lured.Add(1) })

	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	tries := make(chan bool, 100)
	known := false
	go accept(first, func(c net.Conn) {
		if tries <- true; known {
			return // hangs up: whoever is on the way keeps the device from the right server
		}
		known = true
		fmt.Fprintf(c, "INFO {\"server_id\":\"S\",\"version\":\"2.15.0\",\"proto\":1,\"headers\":true,\"max_payload\":1048576,\"connect_urls\":[%q]}\r\n", other.Addr())
		in := bufio.NewReader(c)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "PING") {
				fmt.Fprint(c, "PONG\r\n")
				return
			}
		}
	})
	r := &rig{t: t}
	r.run(Options{Servers: []string{"nats://" + first.Addr().String()}, Device: pi1, Instance: "i", Trust: new(Trust), tune: tuning{heartbeat: time.Hour}})
	for range 5 { // each round tries all servers that are known
		select {
		case <-tries:
		case <-time.After(patience):
			t.Fatal("it does not connect again")
		}
	}
	if n := lured.Load(); n != 0 {
		t.Errorf("it followed to the other server %d times", n)
	}
}

func accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		serve(c)
		c.Close()
	}
}
