// Package localnats runs the NATS server of a fleet that lives on one machine: for a laptop, a demo, or a handful of
// devices at home. Everything it needs is in one directory: keys, configuration, store.
//
// It is no part of the fleet library, because that library is for machines that talk to a server and link none. A
// larger fleet runs nats-server by itself, with a configuration of the same form.
package localnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/continuo-fleet/continuo/fleet"
)

// DefaultListen is where the server listens: only this machine reaches it.
const DefaultListen = "127.0.0.1:4222"

const patience = 30 * time.Second

// Options say where the server lives.
type Options struct {
	Dir    string // its directory; made when it is not there
	Listen string // host:port; empty means DefaultListen
	TLS    *TLS   // needed for anything but loopback, unless Plaintext

	// Host is the name or address under which devices reach the server. Empty means one in the certificate, else the
	// address it listens on, or that of this machine if it listens on all.
	Host string

	// Plaintext lets devices of other machines connect without encryption: for a network that is protected otherwise.
	Plaintext bool
	// Notice hears what goes wrong while the server runs; may be nil.
	Notice func(error)
}

// TLS names PEM files of the server.
type TLS struct{ Cert, Key string }

// A Server is a running server.
type Server struct {
	o    Options
	dir  Dir
	keys fleet.Keys
	lock *os.File
	srv  *server.Server
	url  string
}

// Start runs a server until Close. A second one on the same directory is refused.
func Start(o Options) (_ *Server, err error) {
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	if o.Notice == nil {
		o.Notice = func(error) {}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, fmt.Errorf("cannot find the directory of the server: %w", err)
	}
	// The server itself would only log that the address is taken. This also chooses a port for port 0.
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w: is another server running there?", o.Listen, err)
	}
	o.Listen = l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", o.Listen, err)
	}
	s := &Server{o: o, dir: Dir(o.Dir)}
	if s.lock, err = s.dir.lock(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.lock.Close()
		}
	}()
	if err = s.dir.sweep(); err != nil {
		return nil, err
	}
	if s.keys, err = s.dir.Keys(); err != nil {
		return nil, err
	}
	if _, err = s.dir.Trust(); err != nil {
		return nil, err
	}
	if err = s.configure(); err != nil {
		return nil, err
	}
	opts, err := server.ProcessConfigFile(s.dir.config())
	if err != nil {
		return nil, fmt.Errorf("cannot use the generated server configuration: %w", err)
	}
	opts.NoSigs, opts.NoLog = true, true
	if s.srv, err = server.NewServer(opts); err != nil {
		return nil, fmt.Errorf("cannot start the server: %w", err)
	}
	s.srv.Start()
	if !s.srv.ReadyForConnections(patience) {
		s.srv.Shutdown()
		return nil, fmt.Errorf("cannot start the server on %s: it is not ready after %s", o.Listen, patience)
	}
	if err = s.tellWhere(); err != nil {
		s.srv.Shutdown()
		return nil, err
	}
	return s, nil
}

func (o Options) check() error {
	if o.Dir == "" {
		return errors.New("cannot start the server: no directory is given")
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %q: %w", o.Listen, err)
	}
	ip := net.ParseIP(host)
	if local := host == "localhost" || ip != nil && ip.IsLoopback(); !local && o.TLS == nil && !o.Plaintext {
		return fmt.Errorf("cannot listen on %s: other machines reach it, and the connections would not be encrypted: give a certificate and its key (--server-cert, --server-key), or allow that on a network that is protected otherwise (--plaintext)", o.Listen)
	}
	return nil
}

// Setup creates the streams that are missing, and puts what is missing of the trust root into the store.
func (s *Server) Setup(ctx context.Context) (fleet.SetupResult, error) {
	f, err := fleet.Connect(ctx, s.Operator())
	if err != nil {
		return fleet.SetupResult{}, err
	}
	defer f.Close()
	res, err := f.Setup(ctx, 1)
	if err != nil {
		return res, err
	}
	chain, err := s.dir.Trust()
	if err != nil {
		return res, err
	}
	return res, f.KeepRoots(ctx, chain)
}

// Serve runs the control service until ctx ends.
func (s *Server) Serve(ctx context.Context, o fleet.ServeOptions) error {
	f, err := fleet.Connect(ctx, s.dir.Control())
	if err != nil {
		return err
	}
	defer f.Close()
	chain, err := s.dir.Trust()
	if err != nil {
		return err
	}
	o.Signer, o.Root = s.keys.Control, chain.Last()
	if o.Admission, err = s.dir.admission(); err != nil {
		return err
	}
	return f.Serve(ctx, o)
}

// AddDevice gives what the agent of a device needs. A device that is known already keeps its credential.
func (s *Server) AddDevice(d fleet.Device) (AgentConfig, error) { return s.dir.AddDevice(d) }

// URL of the server.
func (s *Server) URL() string { return s.url }

// Keys are the signing keys of the fleet.
func (s *Server) Keys() fleet.Keys { return s.keys }

// Operator is how the operator connects.
func (s *Server) Operator() fleet.Options { return s.dir.Operator() }

// Close stops the server. What it stores is on disk.
func (s *Server) Close() error {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
	return s.lock.Close()
}
