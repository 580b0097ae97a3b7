package fleet

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// patience is how long one request to the server may take when the caller's context says nothing shorter.
const patience = 10 * time.Second

// A Fleet is a connection to the servers of a fleet.
type Fleet struct {
	nc *nats.Conn
	js jetstream.JetStream

	mu        sync.Mutex
	violation error // the last thing that the server did not allow
	waiting   map[*context.CancelFunc]struct{}
	renewed   map[chan struct{}]struct{} // who wants to know of reconnects
}

// Connect connects as the options, the environment and the context of the NATS CLI say, in this order.
func Connect(ctx context.Context, o Options) (*Fleet, error) {
	s, opts, err := o.ready()
	if err != nil {
		return nil, err
	}
	f := &Fleet{renewed: map[chan struct{}]struct{}{}, waiting: map[*context.CancelFunc]struct{}{}}
	opts = append(opts,
		nats.Name("continuo"),
		nats.MaxReconnects(-1),
		nats.Timeout(patience),
		nats.ReconnectWait(250*time.Millisecond),
		nats.ReconnectHandler(func(*nats.Conn) { f.reconnected() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { f.failed(err) }),
	)
	type result struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		nc, err := nats.Connect(s.url, opts...)
		done <- result{nc, err}
	}()
	select {
	case <-ctx.Done():
		go func() {
			if r := <-done; r.nc != nil {
				r.nc.Close()
			}
		}()
		return nil, fmt.Errorf("cannot connect to %s: %w", s.shown(), ctx.Err())
	case r := <-done:
		if _, bad := errors.AsType[*url.Error](r.err); bad { // which holds what was given
			return nil, fmt.Errorf("cannot connect to %s: it is not the URL of a server, such as tls://nats.example.org:4222", s.shown())
		}
		if r.err != nil {
			return nil, fmt.Errorf("cannot connect to %s: %w (%s)", s.shown(), r.err, advice(r.err))
		}
		f.nc = r.nc
	}
	if f.js, err = jetstream.New(f.nc); err != nil {
		f.nc.Close()
		return nil, fmt.Errorf("cannot use JetStream: %w", err)
	}
	return f, nil
}

func advice(err error) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &host):
		return "its certificate is for another name: name the server as its certificate does"
	case errors.As(err, &unknown):
		return "--tlsca names the file of who signed its certificate"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate must be renewed, or the clock of this machine is wrong"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrNkeysNotSupported):
		return "the server does not know these credentials: choose others with --creds, --nkey or --context"
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout):
		return "is the server running? continuo up starts one; --server, NATS_URL and --context choose another"
	case errors.Is(err, os.ErrNotExist):
		return "a file that the connection needs is not there"
	}
	return "choose a server with --server, NATS_URL or --context"
}

// Close ends the connection.
func (f *Fleet) Close() { f.nc.Close() }

// failed hears what the server does not allow. It does not answer such a request, so who waits is told here.
func (f *Fleet) failed(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.violation = err
	for cancel := range f.waiting {
		(*cancel)()
	}
}

// explain says why nothing was heard, if it is because the server did not allow it.
func (f *Fleet) explain(err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrTimeout)
	if !silent || f.violation == nil {
		return err
	}
	err = fmt.Errorf("not allowed by the server: %w", f.violation)
	f.violation = nil
	return err
}

// within bounds one request: it ends when the server does not allow something, too.
func (f *Fleet) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	answered := f.awaits(cancel)
	return ctx, func() {
		cancel()
		answered()
	}
}

// awaits has cancel called when the server does not allow something, until the answer is here.
func (f *Fleet) awaits(cancel context.CancelFunc) (answered func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.violation = nil
	f.waiting[&cancel] = struct{}{}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.waiting, &cancel)
	}
}

// onReconnect gives a channel that hears of reconnects, until stop is called.
func (f *Fleet) onReconnect() (c <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed[ch] = struct{}{}
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.renewed, ch)
	}
}

func (f *Fleet) reconnected() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ch := range f.renewed {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
