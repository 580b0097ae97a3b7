package natslink

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

var _ agent.Link = (*Link)(nil)

// pendingLimit is how many bytes of pushed messages may wait for the intake; what comes beyond is dropped, and fetched.
const pendingLimit = 4 << 20

// A Link is one connection to a fleet.
type Link struct {
	o      Options
	opts   []nats.Option
	spread *spread
	h      agent.Handler // set by Run

	documents, operations *mailbox

	beat  chan struct{} // send a heartbeat now
	roots chan struct{} // look for another trust root, and then for documents
	check chan struct{} // look whether the last report is still stored

	mu       sync.Mutex
	nc       *nats.Conn    // nil while there is no connection
	online   chan struct{} // closed while there is one
	waiting  map[string]context.CancelCauseFunc
	denied   map[string]bool // subjects that the server did not allow
	hint     hint            // what the control side said last, as far as it was followed up
	called   call            // the same, of operations
	clock    told
	poll     time.Duration
	older    older
	missing  bool // no desired state was found where there was one
	blocked  bool
	conflict conflict
	locked   bool // the server did not accept the credential
	failing  bool // an attempt to connect has failed since there was a connection

	report  reporter
	sending sync.Mutex // one receipt at a time

	asking sync.Mutex // the requests for approval, one document at a time
	asked  []byte     // the last one; guarded by asking

	following sync.Mutex // the trust root, one step at a time
	looked    time.Time  // when the last look for one was over; guarded by following
}

// New returns a link that connects when it is run.
func New(o Options) (*Link, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	opts, err := o.connectOptions()
	if err != nil {
		return nil, err
	}
	one := func() chan struct{} { return make(chan struct{}, 1) }
	l := &Link{
		o: o, opts: opts, spread: newSpread(o),
		beat: one(), check: one(), roots: one(),
		online: make(chan struct{}), waiting: map[string]context.CancelCauseFunc{}, denied: map[string]bool{},
		poll: wire.PollBound.Default,
	}
	l.documents = newMailbox(wire.DeviceKey(o.Device), l.take, l.none)
	l.operations = newMailbox(wire.ApprovalKey(o.Device), l.takeOperation, nil)
	return l, nil
}

// Run is part of agent.Link.
func (l *Link) Run(ctx context.Context, h agent.Handler) {
	l.h = h
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { l.fetchLoop(ctx, l.documents) })
	wg.Go(func() { l.fetchLoop(ctx, l.operations) })
	wg.Go(func() { l.rootLoop(ctx) })
	wg.Go(func() { l.beatLoop(ctx) })
	wg.Go(func() { l.checkLoop(ctx) })
	wg.Go(func() { l.renewLoop(ctx) })
	for wait := l.spread.first(); sleep(ctx, wait); wait = l.spread.delay() {
		l.session(ctx)
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}

// session connects, and stays connected until ctx ends. The library reconnects by itself; only an answer that it takes
// for final ends a session before.
func (l *Link) session(ctx context.Context) {
	closed, ready := make(chan struct{}), make(chan struct{})
	opts := append(l.opts[:len(l.opts):len(l.opts)],
		nats.SetCustomDialer(dialer{ctx}),
		nats.ReconnectToServer(l.spread.next),
		nats.ConnectHandler(func(nc *nats.Conn) { <-ready; l.connected(nc) }),
		nats.ReconnectHandler(l.connected),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { l.disconnected() }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { l.notConnected(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { l.failed(err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
	)
	nc, err := nats.Connect(strings.Join(l.o.Servers, ","), opts...)
	if err != nil {
		close(ready)
		l.notConnected(err)
		return
	}
	// The subscriptions come before the first fetch, so that nothing is missed between the two.
	for _, box := range l.mailboxes() {
		sub, err := nc.Subscribe(wire.ConfigSubject(box.key), func(m *nats.Msg) { l.pushed(ctx, box, m) })
		if err == nil {
			err = sub.SetPendingLimits(-1, pendingLimit)
		}
		if err != nil {
			l.problem(CodeLink, fmt.Sprintf("cannot subscribe to documents: %v", err))
		}
	}
	if l.rooted() {
		if _, err := nc.Subscribe(wire.AllRoots, func(m *nats.Msg) {
			if l.announcedRoot(m) {
				signal(l.roots)
			}
		}); err != nil {
			l.problem(CodeLink, fmt.Sprintf("cannot subscribe to trust roots: %v", err))
		}
	}
	close(ready)
	select {
	case <-ctx.Done():
	case <-closed:
	}
	nc.Close()
	<-closed
	l.disconnected()
}

func (l *Link) connected(nc *nats.Conn) {
	l.spread.connected()
	l.mu.Lock()
	if l.nc == nil {
		close(l.online)
	}
	l.nc, l.hint, l.called, l.failing, l.locked = nc, hint{}, call{}, false, false
	l.mu.Unlock()
	l.notice(nil)
	l.h.Resolved(CodeLink)
	switch {
	case !l.o.tune.has(onConnect):
	case l.rooted():
		signal(l.roots) // and documents after that
	default:
		l.wantAll()
	}
	signal(l.beat)
	signal(l.check)
}

func (l *Link) disconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.nc != nil {
		l.nc, l.online = nil, make(chan struct{})
	}
	for _, cancel := range l.waiting {
		cancel(errOffline) // the answer went to a connection that is gone
	}
}

// conn waits for a connection.
func (l *Link) conn(ctx context.Context) (*nats.Conn, error) {
	for {
		l.mu.Lock()
		nc, online := l.nc, l.online
		l.mu.Unlock()
		if nc != nil {
			return nc, nil
		}
		select {
		case <-online:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (l *Link) problem(code interpret.Code, message string) { l.h.Refused(code, message) }

// notice says that there is a connection, or why there is none.
func (l *Link) notice(err error) {
	if l.o.Notice != nil {
		l.o.Notice(err)
	}
}

// notConnected hears why an attempt failed. A network that is down is worth a line in the log, once; an answer that will
// not change by itself is a problem.
func (l *Link) notConnected(err error) {
	l.mu.Lock()
	known := l.failing
	l.failing = true
	l.mu.Unlock()
	if !known {
		l.notice(err)
	}
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		l.problem(CodeLink, "the clock of this device is earlier than the certificate of the server; it connects when the clock is set")
	case errors.Is(err, nats.ErrSecureConnWanted):
		l.problem(CodeLink, "the server offers no encryption, and this device asks for it: it is another server, or somebody is on the way to it")
	case isCertificate(err):
		l.problem(CodeLink, fmt.Sprintf("the server cannot be trusted: %v", err))
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrNkeysNotSupported):
		l.mu.Lock()
		l.locked = true
		l.mu.Unlock()
		l.problem(CodeLink, fmt.Sprintf("the server does not accept the key of this device (%v): is it enrolled as %s?", err, l.o.Device))
	}
}

func isCertificate(err error) bool {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &unknown) || errors.As(err, &name) || errors.As(err, &invalid)
}

var violation = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// failed hears what the server says outside of any answer. Who waits for an answer that will not come is told.
func (l *Link) failed(err error) {
	switch m := violation.FindStringSubmatch(err.Error()); {
	case errors.Is(err, nats.ErrSlowConsumer):
		l.wantAll() // what was pushed may be lost
	case errors.Is(err, nats.ErrPermissionViolation) && m != nil:
		subject, verb := m[2], "publish to"
		if strings.EqualFold(m[1], "subscription") {
			verb = "subscribe to"
		}
		denied := fmt.Errorf("the server does not allow this device to %s %s", verb, subject)
		l.mu.Lock()
		cancel, known := l.waiting[subject], len(l.denied) > 0
		l.denied[subject] = true
		l.mu.Unlock()
		if cancel != nil {
			cancel(denied)
		}
		if !known { // one reason is enough: with a wrong key, nothing is allowed
			l.problem(CodeNotPermitted, fmt.Sprintf("%v: is the key in credentials.file that of another device? if it is that of %s, correct its permissions on the server", denied, l.o.Device))
		}
	default:
		l.notConnected(err)
	}
}

var errOffline = errors.New("not connected")

// request asks for one answer, and waits no longer than given. While it waits, nobody else may ask on the same subject.
func (l *Link) request(ctx context.Context, m *nats.Msg, within time.Duration) (*nats.Msg, error) {
	ctx, stop := context.WithTimeout(ctx, within)
	defer stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l.mu.Lock()
	nc := l.nc
	l.waiting[m.Subject] = cancel
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.waiting, m.Subject)
		l.mu.Unlock()
	}()
	if nc == nil {
		return nil, errOffline
	}
	answer, err := nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	l.mu.Lock()
	was := l.denied[m.Subject]
	delete(l.denied, m.Subject)
	none := len(l.denied) == 0
	l.mu.Unlock()
	if was && none {
		l.h.Resolved(CodeNotPermitted)
	}
	return answer, nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
