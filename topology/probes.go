package topology

import (
	"cmp"
	"context"
	"net"
	"net/url"
	"strconv"
	"time"
)

// HasProbes is implemented by topologies that can look at what their services offer.
type HasProbes interface{ Probes() Prober }

// A Prober finds out whether something answers. It executes nothing and changes nothing,
// and a call takes as long as its context lets it, no longer: give it a deadline.
type Prober interface {
	// Connect opens a connection to a TCP address, host:port, and closes it again without
	// a word. Nobody there is CodeRefused, no way there CodeUnreachable, and no answer in
	// time CodeTimeout. CodeUnavailable says that the device itself could not look.
	Connect(ctx context.Context, address string) error

	// Get asks an http or https URL and returns the status of the answer, whatever it is.
	// Redirects are not followed, certificates are not checked, no proxy is used, the body
	// is not read, and the connection is not kept. Codes are those of Connect.
	Get(ctx context.Context, url string) (status int, err error)

	// Modified returns when the content of a regular file was written last, on the
	// device's clock, without reading it: the zero time if there is no file. Links are
	// not followed, and anything but a regular file is a fault, as with File.
	Modified(ctx context.Context, path string) (time.Time, error)
}

// CheckProbeAddress refuses what is no TCP address, CodeInvalid. It looks nothing up.
func CheckProbeAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return Faultf(CodeInvalid, "cannot connect to %q: want host:port", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return Faultf(CodeInvalid, "cannot connect to %q: want a port from 1 to 65535", address)
	}
	return nil
}

// ParseProbeURL reads a URL that a probe may ask, and refuses any other, CodeInvalid.
// One that holds credentials is refused: a probe is no place for a secret.
func ParseProbeURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil: // its words hold the text
		return nil, Faultf(CodeInvalid, "cannot get the URL: it is none")
	case u.User != nil:
		return nil, Faultf(CodeInvalid, "cannot get %s: probes send no credentials, and its URL holds some", ShowProbeURL(u))
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, Faultf(CodeInvalid, "cannot get %s: want http://host… or https://host…", ShowProbeURL(u))
	}
	if err := CheckProbeAddress(net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "80"))); err != nil {
		return nil, err
	}
	return u, nil
}

// ShowProbeURL is u as people may see it: without credentials and without the query,
// which may be one.
func ShowProbeURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
