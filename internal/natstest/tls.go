package natstest

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
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/internal/access"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// StartTLS is [Start] with encrypted connections and without streams: the server has a certificate for hosts and for its own address,
// from the authority in [Server.CA].
func StartTLS(t testing.TB, hosts []string, devices ...wire.Device) *Server {
	t.Helper()
	return start(t, append([]string{"127.0.0.1"}, hosts...), devices)
}

// encrypt makes an authority and a certificate of it. The key of the authority is forgotten.
func (s *Server) encrypt(hosts []string) {
	s.t.Helper()
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
			BasicConstraintsValid: true,
		}
	}
	ca, own := template("natstest authority"), template("natstest server")
	ca.IsCA, ca.KeyUsage = true, x509.KeyUsageCertSign
	own.KeyUsage, own.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			own.IPAddresses = append(own.IPAddresses, ip)
		} else {
			own.DNSNames = append(own.DNSNames, h)
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must("make a key", err)
	ownKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must("make a key", err)
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	s.must("make an authority", err)
	ownDER, err := x509.CreateCertificate(rand.Reader, own, ca, &ownKey.PublicKey, caKey)
	s.must("make a certificate", err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(ownKey)
	s.must("encode a key", err)
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(s.dir, name)
		s.must("write "+name, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	s.CA = write("ca.pem", "CERTIFICATE", caDER)
	s.config.TLS = &access.TLS{Cert: write("server.pem", "CERTIFICATE", ownDER), Key: write("server.key", "PRIVATE KEY", keyDER)}
	s.URL = "tls://" + s.config.Listen
}
