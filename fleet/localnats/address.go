package localnats

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strings"
)

// tellWhere notes where the server is: for commands on this machine, and for devices.
func (s *Server) tellWhere() error {
	scheme := "nats://"
	var cert *x509.Certificate
	if s.o.TLS != nil {
		scheme = "tls://"
		text, err := os.ReadFile(s.o.TLS.Cert)
		if err != nil {
			return fmt.Errorf("cannot read the certificate of the server: %w", err)
		}
		if block, _ := pem.Decode(text); block != nil {
			cert, _ = x509.ParseCertificate(block.Bytes) // the server that runs with it has said that it is one
		}
		if err := s.dir.write(certName, string(text)); err != nil {
			return err
		}
	}
	here, there, err := where(s.o.Listen, s.o.Host, cert)
	if err != nil {
		return err
	}
	s.url = scheme + here
	if err := s.dir.write("reach", scheme+there+"\n"); err != nil {
		return err
	}
	return s.dir.write("url", s.url+"\n")
}

// where gives the address of a server for this machine and for devices. host is how devices reach it, if that is known,
// and cert its certificate, if it has one.
func where(listen, host string, cert *x509.Certificate) (here, there string, err error) {
	at, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", "", fmt.Errorf("cannot tell where the server is: %w", err)
	}
	local := at
	if net.ParseIP(at).IsUnspecified() {
		local, at = "127.0.0.1", ownAddress()
	}
	switch {
	case host != "":
		at = host
	case cert != nil && cert.VerifyHostname(at) != nil:
		// Devices would not accept it under its address.
		for _, name := range cert.DNSNames {
			if !strings.HasPrefix(name, "*") {
				at = name
				break
			}
		}
	}
	return net.JoinHostPort(local, port), net.JoinHostPort(at, port), nil
}

// ownAddress is one under which other machines may reach this one.
func ownAddress() string {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return "127.0.0.1"
	}
	return name
}
