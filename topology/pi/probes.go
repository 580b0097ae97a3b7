package pi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// Probes look at what the services of the machine, or of others, offer.
func (d *Device) Probes() topology.Prober { return prober{d.files} }

type prober struct{ files *files }

// dialer opens connections that nobody keeps.
var dialer = &net.Dialer{KeepAlive: -1}

// asker gets URLs. It is a transport and no client, so that there is nobody who would
// follow a redirect, keep a cookie or add a password.
var asker = &http.Transport{
	Proxy:                  nil, // not that of the environment either
	DialContext:            dialer.DialContext,
	TLSClientConfig:        &tls.Config{InsecureSkipVerify: true}, // a probe asks whether something works, not who it is, and tells it nothing
	DisableKeepAlives:      true,
	DisableCompression:     true,
	MaxResponseHeaderBytes: 64 << 10,
}

// Connect opens a connection and closes it.
func (p prober) Connect(ctx context.Context, address string) error {
	if err := topology.CheckProbeAddress(address); err != nil {
		return err
	}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return unanswered(ctx, "cannot connect to "+address, err)
	}
	_ = conn.Close()
	return nil
}

// Get asks a URL.
func (p prober) Get(ctx context.Context, url string) (int, error) {
	u, err := topology.ParseProbeURL(url)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return 0, topology.Faultf(topology.CodeInvalid, "cannot get %s: it is no URL", topology.ShowProbeURL(u))
	}
	req.Header.Set("User-Agent", "continuo-probe")
	res, err := asker.RoundTrip(req)
	if err != nil {
		return 0, unanswered(ctx, "cannot get "+topology.ShowProbeURL(u), err)
	}
	_ = res.Body.Close()
	return res.StatusCode, nil
}

// Modified returns when the file p was written last.
func (p prober) Modified(ctx context.Context, path string) (time.Time, error) {
	if err := checkPath(path); err != nil {
		return time.Time{}, err
	}
	if err := ctx.Err(); err != nil {
		return time.Time{}, topology.FaultOf(err)
	}
	n, err := p.files.node(path)
	if err == unix.ENOENT {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, p.files.tree.fault("read", path, err)
	}
	defer n.close()
	if err := p.files.mustBeRegular("read", path, n); err != nil {
		return time.Time{}, err
	}
	return time.Unix(n.stat.Mtim.Unix()), nil
}

// unanswered says why nobody was reached. What the machine itself lacks for looking says
// nothing about the other end.
func unanswered(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err() // else it depends on what the deadline interrupted
	}
	if timeout, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && timeout.Timeout() {
		return topology.Faultf(topology.CodeTimeout, "%s: no answer in time", what)
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		if name.IsNotFound {
			return topology.Faultf(topology.CodeUnreachable, "%s: there is no such host", what)
		}
		return topology.Faultf(topology.CodeUnavailable, "%s: no name server can be asked for the host: %s", what, words(name))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return topology.Faultf(topology.CodeUnknown, "%s: the connection was closed without an answer", what)
	}
	for _, c := range []struct {
		code   topology.Code
		errnos []error
	}{
		{topology.CodeRefused, []error{syscall.ECONNREFUSED}},
		{topology.CodeUnreachable, []error{syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.EHOSTDOWN}},
		{topology.CodeUnavailable, []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.EAFNOSUPPORT}},
	} {
		for _, e := range c.errnos {
			if errors.Is(err, e) {
				return topology.Faultf(c.code, "%s: %v", what, e)
			}
		}
	}
	f := topology.FaultOf(err)
	return topology.Faultf(f.Code, "%s: %s", what, words(err))
}

// words are those of the last error of a chain: the ones around it repeat addresses, and
// ports of ours that are others each time. What the other end sent may be among them.
func words(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	const enough = 200
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return text
}
