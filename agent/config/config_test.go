package config

import (
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func publicKey(t *testing.T) string {
	t.Helper()
	s, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := s.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return public
}

func good(t *testing.T) Config {
	t.Helper()
	return Config{APIVersion: score.APIVersion, Kind: Kind, Device: "pi-7", Servers: []string{"tls://nats.example.org:4222"},
		Credentials: Credentials{Type: CredentialsNkey, File: "/etc/continuo/device.seed"},
		Trust:       Trust{Documents: []string{publicKey(t)}, Control: []string{publicKey(t)}}}
}

// Every mistake is reported with its place, all of them at once, and none is forgiven: X19.
func TestValidate(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"good", func(*Config) {}, ""},
		{"version", func(c *Config) { c.APIVersion = "continuo/v2" }, `/apiVersion: apiVersion is "continuo/v2"`},
		{"kind", func(c *Config) { c.Kind = "Manifest" }, `/kind: kind is "Manifest", want "AgentConfig"`},
		{"device", func(c *Config) { c.Device = "pi.7" }, "/device: "},
		{"site", func(c *Config) { c.Site = "*" }, "/site: "},
		{"no server", func(c *Config) { c.Servers = nil }, "/servers: no server is given"},
		{"empty server", func(c *Config) { c.Servers = []string{" "} }, "/servers/0: the server is empty"},
		{"secret in a server", func(c *Config) { c.Servers = []string{"nats://a:b@h"} }, "/servers/0: a server must not hold a user or a password"},
		{"unknown credentials", func(c *Config) { c.Credentials.Type = "zitadel-v9" }, `/credentials/type: unknown credentials type "zitadel-v9"`},
		{"no credentials", func(c *Config) { c.Credentials = Credentials{} }, `/credentials/type: unknown credentials type ""`},
		{"credentials without a file", func(c *Config) { c.Credentials.File = "" }, "/credentials/file: credentials of type nkey need a file"},
		{"credentials by a relative path", func(c *Config) { c.Credentials.File = "seed" }, `/credentials/file: path "seed" must be absolute`},
		{"a file for nothing", func(c *Config) { c.Credentials.Type = CredentialsNone }, "/credentials/file: credentials of type none have no file"},
		{"secrets", func(c *Config) {
			c.Secrets = Secrets{EnvFiles: []string{"/etc/continuo/secrets.env", "/etc/kiosk.env"}, Credentials: "/run/credentials/x"}
		}, ""},
		{"secrets by a relative path", func(c *Config) { c.Secrets.EnvFiles = []string{"/a", "b.env"} }, `/secrets/envFiles/1: path "b.env" must be absolute`},
		{"secrets twice", func(c *Config) { c.Secrets.EnvFiles = []string{"/a", "/a"} }, `/secrets/envFiles/1: the file is listed twice`},
		{"secrets somewhere", func(c *Config) { c.Secrets.Credentials = "/run/../x" }, `/secrets/credentials: path "/run/../x" must be absolute and clean`},
		{"half a certificate", func(c *Config) { c.TLS.Cert = "/c.pem" }, "/tls: cert and key go together"},
		{"trusts nobody", func(c *Config) { c.Trust.Documents = nil }, "/trust/documents: no key is given"},
		{"no key", func(c *Config) { c.Trust.Documents = []string{"SAKEEPTHISSECRET"} }, "/trust/documents/0: it is not the public key of a signer, which begins with A"},
		{"key twice", func(c *Config) { c.Trust.Control = append(c.Trust.Control, c.Trust.Control[0]) }, "/trust/control/1: the key is listed twice"},
		{"relative state", func(c *Config) { c.State = "state" }, `/state: path "state" must be absolute`},
		{"relist of a nanosecond", func(c *Config) { c.Relist = 1 }, "/relist: relist must be at least 10s"},
		{"registry with a scheme", func(c *Config) { c.Registries.Plaintext = []string{"http://192.0.2.7:5000"} }, "/registries/plaintext/0: \"http://192.0.2.7:5000\" is not the host of a registry"},
		{"registry twice", func(c *Config) { c.Registries.Plaintext = []string{"hub:5000", "hub:5000"} }, "/registries/plaintext/1: the registry is listed twice"},
		{"ceiling", func(c *Config) { c.Ceiling.Paths = []string{"srv"} }, `/ceiling/paths/0: path "srv" must be absolute and clean`},
		{"several", func(c *Config) { c.Device, c.Servers = "", nil }, "\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good(t)
			tt.change(&c)
			var got []string
			for _, p := range c.Validate() {
				got = append(got, p.String())
			}
			all := strings.Join(got, "\n")
			if (tt.want == "") != (all == "") || !strings.Contains(all, tt.want) {
				t.Errorf("got %q, want %q", all, tt.want)
			}
			if strings.Contains(all, "SECRET") {
				t.Errorf("a secret is shown: %s", all)
			}
		})
	}
}

// A key is trusted for what it is listed under, and for nothing else.
func TestKeysAreForOnePurpose(t *testing.T) {
	signer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := signer.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	c := good(t)
	c.Trust.Documents = []string{public}
	frame, err := wire.Seal(wire.Statement{Kind: wire.KindDevice, Audience: "main.pi-7", Generation: 1, Media: wire.MediaAssignment}, []byte("{}"), signer)
	if err != nil {
		t.Fatal(err)
	}
	want := wire.Expect{Kind: wire.KindDevice, Audience: c.Identity().String()}
	documents, err := c.DocumentKeys()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Verify(frame, documents, want); err != nil {
		t.Error(err)
	}
	c.Trust.Control = []string{public}
	control, err := c.ControlKeys()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Verify(frame, control, want); err == nil {
		t.Error("a control key signs documents")
	}
}

func TestDefaults(t *testing.T) {
	c := good(t)
	if c.StateDir() != DefaultState || c.Identity().String() != "main.pi-7" {
		t.Errorf("got %s, %s", c.StateDir(), c.Identity())
	}
	c.State, c.Site = "/srv/state", "cabin"
	if c.StateDir() != "/srv/state" || c.Identity().String() != "cabin.pi-7" {
		t.Errorf("got %s, %s", c.StateDir(), c.Identity())
	}
}

// A ceiling is read as it is written: a list that is empty allows nothing, one that is
// left out everything, and what nobody knows is an error.
func TestCeiling(t *testing.T) { // G31, H67
	const document = `{"apiVersion":"continuo/v1","kind":"AgentConfig","device":"pi-7","servers":["tls://h"],"credentials":{"type":"none"},"trust":{"documents":[]},
		"ceiling":{"policy":{"preset":"reviewed","brake":{"maxRemovals":0}},"kinds":["file"],"paths":["/srv"],"images":[],"units":["app-*"],"verbs":["plan"],"adopt":[]}}`
	var c Config
	if err := score.Decode([]byte(document), &c); err != nil {
		t.Fatal(err)
	}
	want := authority.Ceiling{
		Policy: &score.Policy{Preset: score.Reviewed, Brake: &score.Brake{MaxRemovals: new(0)}}, Kinds: []score.Kind{score.KindFile}, Paths: []string{"/srv"},
		Images: []string{}, Units: []string{"app-*"}, Verbs: []interpret.Verb{interpret.VerbPlan}, Adopt: []string{},
	}
	if !reflect.DeepEqual(c.Ceiling, want) {
		t.Errorf("got %+v", c.Ceiling)
	}
	again, err := score.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Config
	if err := score.Decode(again, &back); err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("%v: written and read again it is %+v", err, back.Ceiling)
	}
	if err := score.Decode([]byte(`{"ceiling":{"path":["/srv"]}}`), &back); err == nil {
		t.Error("a list that nobody knows is taken for none")
	}
	none, err := score.Encode(good(t))
	if err != nil || strings.Contains(string(none), "ceiling") {
		t.Errorf("%v: %s", err, none)
	}
}
