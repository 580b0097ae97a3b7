package fleet

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/nats-io/nats.go"
)

// Options say how to connect. What is empty here comes from the environment (NATS_URL, NATS_CREDS, …), then from the
// context of the NATS CLI: the one named here, by NATS_CONTEXT, or by `nats context select`.
type Options struct {
	Server      string // one or several URLs, separated by commas
	Context     string // name of a context
	Creds       string // credentials file
	NKey        string // file with an nkey seed
	User        string // user, or a token when there is no password
	Password    string
	Token       string
	Cert        string // PEM file of the client certificate
	Key         string // PEM file of its key
	CA          string // PEM file of the server's CA
	InboxPrefix string

	// ServerCert is a PEM file with the certificate that the server must have, whatever its name and whoever signed it:
	// for a server whose certificate is at hand. No other is accepted then, and CA counts for nothing.
	ServerCert string

	// Getenv is os.Getenv when nil.
	Getenv func(string) string
	// ConfigDir is the directory of the NATS CLI. Empty means $XDG_CONFIG_HOME/nats, or ~/.config/nats.
	ConfigDir string
}

// settings are options after everything was looked up.
type settings struct {
	url, creds, nkey, user, password, token, cert, key, ca, inboxPrefix, jwt, seed, serverCert string
}

// natsContext is the part of a context file that is used.
type natsContext struct {
	URL         string `json:"url"`
	Creds       string `json:"creds"`
	NKey        string `json:"nkey"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	Cert        string `json:"cert"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	InboxPrefix string `json:"inbox_prefix"`
	UserJWT     string `json:"user_jwt"`
	UserSeed    string `json:"user_seed"`
}

func (o Options) resolve() (settings, error) {
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	c, err := o.context(getenv)
	if err != nil {
		return settings{}, err
	}
	s := settings{
		url:         cmp.Or(o.Server, getenv("NATS_URL"), c.URL, nats.DefaultURL),
		creds:       cmp.Or(o.Creds, getenv("NATS_CREDS"), c.Creds),
		nkey:        cmp.Or(o.NKey, getenv("NATS_NKEY"), c.NKey),
		user:        cmp.Or(o.User, getenv("NATS_USER"), c.User),
		password:    cmp.Or(o.Password, getenv("NATS_PASSWORD"), c.Password),
		token:       cmp.Or(o.Token, getenv("NATS_TOKEN"), c.Token),
		cert:        cmp.Or(o.Cert, getenv("NATS_CERT"), c.Cert),
		key:         cmp.Or(o.Key, getenv("NATS_KEY"), c.Key),
		ca:          cmp.Or(o.CA, getenv("NATS_CA"), c.CA),
		inboxPrefix: cmp.Or(o.InboxPrefix, getenv("NATS_INBOX_PREFIX"), c.InboxPrefix),
		jwt:         c.UserJWT, seed: c.UserSeed, serverCert: o.ServerCert,
	}
	// A key that was named here is meant, whatever else a context holds.
	switch {
	case o.NKey != "":
		s.creds, s.user, s.token, s.jwt = "", "", "", ""
	case o.Creds != "":
		s.nkey, s.user, s.token, s.jwt = "", "", "", ""
	}
	for _, path := range []*string{&s.creds, &s.nkey, &s.cert, &s.key, &s.ca} {
		if *path, err = filePath(*path, getenv); err != nil {
			return settings{}, err
		}
	}
	return s, nil
}

// context reads the chosen context. Having none at all is fine.
func (o Options) context(getenv func(string) string) (natsContext, error) {
	dir := o.ConfigDir
	if dir == "" {
		dir = filepath.Join(cmp.Or(getenv("XDG_CONFIG_HOME"), filepath.Join(getenv("HOME"), ".config")), "nats")
	}
	name := cmp.Or(o.Context, getenv("NATS_CONTEXT"))
	if name == "" {
		selected, err := os.ReadFile(filepath.Join(dir, "context.txt"))
		if errors.Is(err, fs.ErrNotExist) {
			return natsContext{}, nil
		}
		if err != nil {
			return natsContext{}, fmt.Errorf("cannot read which context is selected: %w", err)
		}
		if name = strings.TrimSpace(string(selected)); name == "" {
			return natsContext{}, nil
		}
	}
	if name != filepath.Base(name) || name == "." || name == ".." {
		return natsContext{}, fmt.Errorf("cannot use context %q: it is no name", name)
	}
	b, err := os.ReadFile(filepath.Join(dir, "context", name+".json"))
	if err != nil {
		return natsContext{}, fmt.Errorf("cannot read context %q (nats context ls lists them): %w", name, err)
	}
	var c natsContext
	if err := json.Unmarshal(b, &c); err != nil {
		return natsContext{}, fmt.Errorf("cannot read context %q: %w", name, err)
	}
	return c, nil
}

// filePath takes what the NATS CLI takes: a path, with ~, or as a file URL.
func filePath(p string, getenv func(string) string) (string, error) {
	p = strings.TrimPrefix(p, "file://")
	if seed.MatchString(p) {
		return "", errSeed
	}
	if scheme, _, ok := strings.Cut(p, "://"); ok {
		return "", fmt.Errorf("cannot use %s:// for credentials: only files are supported here", scheme)
	}
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		return filepath.Join(getenv("HOME"), rest), nil
	}
	return p, nil
}

func (s settings) connectOptions() ([]nats.Option, error) {
	// What a server tells of others comes before anything is encrypted, so that whoever is on the way could lead to his own.
	opts := []nats.Option{nats.IgnoreDiscoveredServers()}
	switch {
	case s.creds != "":
		opts = append(opts, nats.UserCredentials(s.creds))
	case s.nkey != "":
		login, err := nats.NkeyOptionFromSeed(s.nkey)
		if err != nil {
			return nil, fmt.Errorf("cannot use the key in %s: %w", s.nkey, err)
		}
		opts = append(opts, login)
	case s.jwt != "" && s.seed != "":
		opts = append(opts, nats.UserJWTAndSeed(s.jwt, s.seed))
	case s.token != "":
		opts = append(opts, nats.Token(s.token))
	case s.user != "" && s.password == "":
		opts = append(opts, nats.Token(s.user))
	case s.user != "":
		opts = append(opts, nats.UserInfo(s.user, s.password))
	}
	switch {
	case s.serverCert != "":
		only, err := onlyCert(s.serverCert)
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.Secure(only))
	case s.ca != "":
		opts = append(opts, nats.RootCAs(s.ca))
	}
	if s.cert != "" || s.key != "" {
		opts = append(opts, nats.ClientCert(s.cert, s.key))
	}
	if s.inboxPrefix != "" {
		opts = append(opts, nats.CustomInboxPrefix(s.inboxPrefix))
	}
	return opts, nil
}

// ready looks everything up that a connection needs.
func (o Options) ready() (settings, []nats.Option, error) {
	s, err := o.resolve()
	if err != nil {
		return s, nil, err
	}
	opts, err := s.connectOptions()
	return s, opts, err
}

// Dial is a bare connection, as [Connect] makes one, for what a [Fleet] does not do.
func (o Options) Dial() (*nats.Conn, error) {
	s, opts, err := o.ready()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(s.url, append(opts, nats.Name("continuo"), nats.Timeout(patience))...)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w (%s)", s.shown(), err, advice(err))
	}
	return nc, nil
}

// onlyCert accepts a server that proves to have the first certificate in a PEM file, and no other.
func onlyCert(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of the server: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("cannot read the certificate of the server: there is none in %s", file)
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, // instead: the very certificate
		VerifyConnection: func(c tls.ConnectionState) error {
			if len(c.PeerCertificates) == 0 || !bytes.Equal(c.PeerCertificates[0].Raw, block.Bytes) {
				return fmt.Errorf("the server has another certificate than the one in %s", file)
			}
			return nil
		},
	}, nil
}

// shown is the URL for people: without a user, a password or a token in it, also if it is no URL.
func (s settings) shown() string {
	pieces := strings.Split(s.url, "://")
	for i, p := range pieces {
		if at := strings.LastIndex(p, "@"); at >= 0 {
			pieces[i] = "xxxxx" + p[at:]
		}
	}
	return strings.Join(pieces, "://")
}

// seed is what somebody may give in the place of a file that holds it.
var seed = regexp.MustCompile(`^S[A-Z][A-Z2-7]{30,}$`)

// errSeed does not say which.
var errSeed = errors.New("cannot use a seed by itself: name a file that holds it, and think of a new one, as commands are seen by others")
