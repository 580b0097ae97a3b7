package natslink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// Options say who the device is, where its fleet is, and whom it trusts.
type Options struct {
	Servers []string // URLs; every one of them is tried
	Device  wire.Device

	// The key of the connection: at most one of them is set. None is for a server that asks for none.
	Seed      []byte // user nkey seed, "SU…"
	SeedFile  string // file with such a seed
	CredsFile string // credentials file
	// KeepCreds makes another credential durable in CredsFile, and in BackFile the one by which the device can only ask to be
	// let in again when it has expired. nil is for a credential that somebody else replaces.
	KeepCreds func(creds []byte, back string) error
	BackFile  string

	CA, Cert, Key string // PEM files for TLS; CA empty means the system's roots
	// Plaintext allows an unencrypted connection to another machine: for a network that is protected otherwise.
	// To the own machine it is always allowed.
	Plaintext bool

	Trust *Trust // whose signatures count

	Version, Build string // of the agent
	BootID         string // changes when the machine boots
	Instance       string // changes when the agent starts; tells two agents of one identity apart
	Serial         string // of the board; empty if it has none

	// Window is how long reconnects were spread over when the device was connected last, and KeepWindow makes
	// another one last over restarts. Window 0 is a device that was never connected; KeepWindow may be nil.
	Window     time.Duration
	KeepWindow func(time.Duration)
	// Notice hears nil when there is a connection, and why there is none when the first attempt after that failed; may
	// be nil.
	Notice func(error)

	// Clock tells the time when it can be trusted, and else the zero time: then no document is refused for its age, and
	// an operation waits until a control service has told the time. nil never tells.
	Clock func() time.Time

	// atOnce connects without waiting. Only a device that is alone may, one whose servers are all on its own machine: a
	// fleet that connects at once after its server restarted keeps that server down.
	atOnce bool

	tune tuning
}

// tuning is for tests: the control side decides about these.
type tuning struct {
	heartbeat, poll, timeout, watchdog time.Duration
	off                                trigger // triggers that are ignored
}

// A trigger is a reason to look for a document.
type trigger uint8

const (
	onPush trigger = 1 << iota
	onConnect
	onHeartbeat
	onPoll
)

func (t tuning) has(tr trigger) bool { return t.off&tr == 0 }

const (
	connectTimeout = 10 * time.Second // of an answer to anything small, too
	// beatTimeout is less than the shortest period: heartbeats keep their pace behind whatever else the line carries.
	beatTimeout = 9 * time.Second / 2
	// fetchTimeout lets the largest document come at 6 kB/s. To ask again while it is on its way puts the same once
	// more behind it, and again, and none of them is waited for to its end. It is less than the watchdog of the
	// shortest period.
	fetchTimeout = 45 * time.Second
)

// check completes o, or says what is missing.
func (o *Options) check() error {
	if err := o.Device.Check(); err != nil {
		return err
	}
	if len(o.Servers) == 0 {
		return fmt.Errorf("cannot link device %s: no server is given", o.Device)
	}
	if o.Trust == nil {
		return fmt.Errorf("cannot link device %s: it trusts nobody", o.Device)
	}
	if o.Instance == "" {
		return fmt.Errorf("cannot link device %s: no instance is given", o.Device)
	}
	encrypted, local := o.CA != "" || o.Cert != "", true
	for _, s := range o.Servers {
		u, err := parseServer(s)
		if err != nil {
			return err
		}
		encrypted = encrypted || u.Scheme == "tls" || u.Scheme == "wss"
		local = local && loopback(u.Hostname())
	}
	if !encrypted && !local && !o.Plaintext {
		return fmt.Errorf("cannot link device %s: a server of %v is another machine, and the connection would not be encrypted: use tls:// or name a CA (or allow plaintext on a network that is protected otherwise)", o.Device, o.Servers)
	}
	o.atOnce = local
	if o.tune.timeout == 0 {
		o.tune.timeout = connectTimeout
	}
	if o.Clock == nil {
		o.Clock = func() time.Time { return time.Time{} }
	}
	return nil
}

func parseServer(s string) (*url.URL, error) {
	if strings.Contains(s, "@") { // and it is not shown, here and below
		return nil, errors.New("cannot use a server whose URL holds a user or a password: give a seed file or a credentials file")
	}
	if strings.Contains(s, ",") {
		return nil, fmt.Errorf("cannot use server %q: it holds a comma; give each server by itself", s)
	}
	if !strings.Contains(s, "://") {
		s = "nats://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("cannot use server %q: %w", s, err)
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
	default:
		return nil, fmt.Errorf("cannot use server %q: the scheme is none of nats, tls, ws, wss", s)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("cannot use server %q: no host", s)
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// connectOptions are those that never change between connections. Each is a bug when it is left out: the library's
// defaults give up after two minutes, close for good after two refused logins, reconnect all at once, and send old
// statuses after new ones.
func (o *Options) connectOptions() ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name("continuo-agent " + o.Device.String()),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.IgnoreAuthErrorAbort(),
		nats.Timeout(connectTimeout),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(time.Minute),
		nats.CustomInboxPrefix(wire.InboxPrefix(o.Device)),
		// What a server tells of others comes before anything is encrypted: who is on the way could name a server of his
		// own, and its certificate would be good for its own name.
		nats.IgnoreDiscoveredServers(),
	}
	login, err := o.login()
	if err != nil {
		return nil, err
	}
	if login != nil {
		opts = append(opts, login)
	}
	secure, err := o.secure()
	if err != nil {
		return nil, err
	}
	return append(opts, secure...), nil
}

func (o *Options) login() (nats.Option, error) {
	given := 0
	for _, set := range []bool{len(o.Seed) > 0, o.SeedFile != "", o.CredsFile != ""} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, fmt.Errorf("cannot log in as %s: give one of seed, seed file and credentials file", o.Device)
	case len(o.Seed) > 0:
		kp, err := nkeys.FromSeed(o.Seed)
		if err != nil {
			return nil, fmt.Errorf("cannot log in as %s: the seed is not one (%w)", o.Device, err)
		}
		public, err := kp.PublicKey()
		if err != nil || !nkeys.IsValidPublicUserKey(public) {
			return nil, fmt.Errorf("cannot log in as %s: the seed is not a user's (it starts with SU)", o.Device)
		}
		return nats.Nkey(public, kp.Sign), nil
	case o.SeedFile != "":
		login, err := nats.NkeyOptionFromSeed(o.SeedFile)
		if err != nil {
			return nil, fmt.Errorf("cannot log in as %s with %s: %w", o.Device, o.SeedFile, err)
		}
		return login, nil
	case o.CredsFile != "":
		if _, err := os.Stat(o.CredsFile); err != nil {
			return nil, fmt.Errorf("cannot log in as %s: %w", o.Device, err)
		}
		return nats.UserCredentials(o.CredsFile), nil
	}
	return nil, nil
}

func (o *Options) secure() ([]nats.Option, error) {
	if o.CA == "" && o.Cert == "" && o.Key == "" {
		return nil, nil // tls:// alone uses the system's roots
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, fmt.Errorf("cannot read the CA of the servers: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot use %s as a CA: it holds no certificate", o.CA)
		}
	}
	if o.Cert != "" || o.Key != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, fmt.Errorf("cannot use the client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return []nats.Option{nats.Secure(config)}, nil
}

// Codes of what a link reports about itself.
const (
	CodeLink          = agent.CodeLink
	CodeNotPermitted  = agent.CodeNotPermitted
	CodeConflict      = agent.CodeDuplicate
	CodeShortened     = agent.CodeShortened
	CodeNoDesired     = "no_desired_state"        // nothing is stored for this device; the last known is kept
	CodeUnsupported   = "unsupported"             // the document is signed, and this build cannot read it
	CodeMalformed     = "malformed"               // the document is signed, and contradicts itself
	CodeUntrustedBeat = "untrusted_control"       // an answer to a heartbeat was refused
	CodeRoot          = "trust_root"              // the version of the trust root that follows was refused
	CodeControlPlane  = "control_plane_regressed" // the store of the fleet is older than what this device accepted
	CodeNoTime        = "no_time"                 // an operation waits until the time is known
)
