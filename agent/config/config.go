// Package config is the configuration of one device: who it is, where its fleet is, and
// whom it trusts. It opens no connection and knows nothing of the agent that it is for;
// credentials are named by file here, and never held.
package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// DefaultFile is where a device has its configuration.
const DefaultFile = "/etc/continuo/agent.yaml"

// DefaultState is where a device has its books.
const DefaultState = "/var/lib/continuo"

// Kind of the document.
const Kind = "AgentConfig"

// A Config is the configuration of one device.
type Config struct {
	// Version of this document's language: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: AgentConfig.
	Kind string `json:"kind"`
	// Device is the id of this device.
	Device string `json:"device"`
	// Site the device belongs to. If it is left out, the one site of its fleet.
	Site string `json:"site,omitempty"`
	// Servers are the NATS servers, each a URL. All of them are tried.
	Servers []string `json:"servers"`
	// Credentials of the connection.
	Credentials Credentials `json:"credentials"`
	// TLS of the connection.
	TLS TLS `json:"tls,omitzero"`
	// Trust says whose signatures count.
	Trust Trust `json:"trust"`
	// State is the directory of the agent's books. If it is left out, /var/lib/continuo.
	State string `json:"state,omitempty"`
	// Root is a directory that all paths of scores and of secrets are below, for trying things out. With it, what
	// is not a file is unavailable.
	Root string `json:"root,omitempty"`
	// Relist is the time between full passes when nothing happens. If it is left out, 5 minutes.
	Relist score.Duration `json:"relist,omitzero"`
	// Registries is how this device asks the registries of images.
	Registries Registries `json:"registries,omitzero"`
	// Ceiling is what may be done to this device at all, whoever signed for it. If it is left out, everything.
	Ceiling authority.Ceiling `json:"ceiling,omitzero"`
	// Secrets says where the owner of the device keeps the values that scores name.
	Secrets Secrets `json:"secrets,omitzero"`
}

// Credentials of the connection.
type Credentials struct {
	// Type is nkey (a file with a user seed), creds (a NATS credentials file) or none (the server asks for none).
	Type string `json:"type"`
	// File that holds the credential. Only its owner may read it.
	File string `json:"file,omitempty"`
}

// Types of credentials.
const (
	CredentialsNkey  = "nkey"
	CredentialsCreds = "creds"
	CredentialsNone  = "none"
)

// TLS of the connection.
type TLS struct {
	// CA is a PEM file with the certificates that the servers' are checked with. If it is left out, the system's.
	CA string `json:"ca,omitempty"`
	// Cert is a PEM file with the device's own certificate, if the servers ask for one.
	Cert string `json:"cert,omitempty"`
	// Key is a PEM file with the key of Cert.
	Key string `json:"key,omitempty"`
	// Plaintext allows a connection without encryption to another machine. Set it only on a network that is
	// protected by other means.
	Plaintext bool `json:"plaintext,omitempty"`
}

// Trust says whose signatures count: those of a trust root, or of keys that are written down here.
type Trust struct {
	// Root is a file with the trust root of the fleet, as continuo keys writes it. The fleet can replace keys by it. With it,
	// no keys are written down here.
	Root string `json:"root,omitempty"`
	// Documents are the public keys that may sign what this device has to make true.
	Documents []string `json:"documents,omitzero"`
	// Control are the public keys of control services, which answer heartbeats.
	Control []string `json:"control,omitempty"`
}

// Secrets are where the values are that scores name. They are read when they are needed, so that what is rotated counts
// at once. What a later place has counts before an earlier one: the files in their order, then the credentials.
type Secrets struct {
	// EnvFiles are files with lines NAME=value, each root's own, a regular file, 0600. If it is left out,
	// /etc/continuo/secrets.env, if that is there.
	EnvFiles []string `json:"envFiles,omitempty"`
	// Credentials is a directory with one file for each secret. If it is left out, the one that systemd gave the agent for
	// LoadCredential= and LoadCredentialEncrypted= in its unit.
	Credentials string `json:"credentials,omitempty"`
}

func (s Secrets) check(r *score.Report) {
	for i, p := range s.EnvFiles {
		checkPath(r.At("envFiles", i), p)
		if slices.Index(s.EnvFiles, p) != i {
			r.At("envFiles", i).Errorf("the file is listed twice")
		}
	}
	if s.Credentials != "" {
		checkPath(r.At("credentials"), s.Credentials)
	}
}

func checkPath(r *score.Report, path string) {
	if !filepath.IsAbs(path) || path != filepath.Clean(path) {
		r.Errorf("path %q must be absolute and clean", path)
	}
}

// shortestRelist keeps a mistyped unit from making a device busy for ever.
const shortestRelist = 10 * time.Second

// Validate reports everything that is wrong with c, beyond the shape of the document.
func (c Config) Validate() []score.Problem {
	r := score.NewReport()
	if c.APIVersion != score.APIVersion {
		r.At("apiVersion").Errorf("apiVersion is %q, this version reads %q", c.APIVersion, score.APIVersion)
	}
	if c.Kind != Kind {
		r.At("kind").Errorf("kind is %q, want %q", c.Kind, Kind)
	}
	if err := wire.CheckName("device", c.Device); err != nil {
		r.At("device").Errorf("%s", err)
	}
	if c.Site != "" {
		if err := wire.CheckName("site", c.Site); err != nil {
			r.At("site").Errorf("%s", err)
		}
	}
	if len(c.Servers) == 0 {
		r.At("servers").Errorf("no server is given: name at least one, such as tls://nats.example.org:4222")
	}
	for i, s := range c.Servers {
		if strings.TrimSpace(s) == "" {
			r.At("servers", i).Errorf("the server is empty")
		}
		if strings.Contains(s, "@") {
			r.At("servers", i).Errorf("a server must not hold a user or a password: name a file under credentials")
		}
	}
	c.Credentials.check(r.At("credentials"))
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		r.At("tls").Errorf("cert and key go together")
	}
	c.Trust.check(r.At("trust"))
	for field, path := range map[string]string{"state": c.State, "root": c.Root} {
		if path != "" && !filepath.IsAbs(path) {
			r.At(field).Errorf("path %q must be absolute", path)
		}
	}
	if c.Relist != 0 && time.Duration(c.Relist) < shortestRelist {
		r.At("relist").Errorf("relist must be at least %s", shortestRelist)
	}
	c.Registries.check(r.At("registries"))
	c.Ceiling.Check(r.At("ceiling"))
	c.Secrets.check(r.At("secrets"))
	return r.Problems()
}

func (c Credentials) check(r *score.Report) {
	switch c.Type {
	case CredentialsNkey, CredentialsCreds:
		if c.File == "" {
			r.At("file").Errorf("credentials of type %s need a file", c.Type)
		} else if !filepath.IsAbs(c.File) {
			r.At("file").Errorf("path %q must be absolute", c.File)
		}
	case CredentialsNone:
		if c.File != "" {
			r.At("file").Errorf("credentials of type none have no file")
		}
	default:
		r.At("type").Errorf("unknown credentials type %q: it is %s, %s or %s, and nothing else is used in its place",
			c.Type, CredentialsNkey, CredentialsCreds, CredentialsNone)
	}
}

func (t Trust) check(r *score.Report) {
	switch {
	case t.Root == "" && len(t.Documents) == 0:
		r.At("documents").Errorf("no key is given: a device that trusts nobody can be told nothing; give root, or documents")
	case t.Root != "" && len(t.Documents)+len(t.Control) > 0:
		r.Errorf("the trust root says whose signatures count: root, and documents and control, do not go together")
	case t.Root != "":
		checkPath(r.At("root"), t.Root)
	}
	checkKeys(r.At("documents"), t.Documents)
	checkKeys(r.At("control"), t.Control)
}

func checkKeys(r *score.Report, keys []string) {
	for i, k := range keys {
		if _, err := wire.Trust(wire.KindDevice, k); err != nil {
			r.At(i).Errorf("it is not the public key of a signer, which begins with A or with ssh-ed25519")
		} else if slices.Index(keys, k) != i {
			r.At(i).Errorf("the key is listed twice")
		}
	}
}

// Identity names the device in its fleet.
func (c Config) Identity() wire.Device {
	return wire.Device{Site: cmp.Or(c.Site, wire.DefaultSite), ID: c.Device}
}

// DocumentKeys are trusted for what this device has to make true.
func (c Config) DocumentKeys() (wire.KeySet, error) {
	return wire.Trust(wire.KindDevice, c.Trust.Documents...)
}

// ApprovalKeys are trusted for what a person asks of this device. Where keys are written down they have no roles: they are
// those of its documents.
func (c Config) ApprovalKeys() (wire.KeySet, error) {
	return wire.Trust(wire.KindApproval, c.Trust.Documents...)
}

// ControlKeys are trusted for answers to heartbeats.
func (c Config) ControlKeys() (wire.KeySet, error) {
	return wire.Trust(wire.KindHeartbeat, c.Trust.Control...)
}

// StateDir is State, or its default.
func (c Config) StateDir() string { return cmp.Or(c.State, DefaultState) }
