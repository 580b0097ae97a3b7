package wire

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nkeys"
)

// The accounts of a generated server configuration.
const (
	accountSystem  = "SYS"
	accountControl = "CTRL"
	accountFleet   = "FLEET"
)

const (
	maxServerPayload = 1 << 20  // bytes of one message, any user
	maxDevicePayload = 64 << 10 // bytes of one message from a device
	maxDeviceSubs    = 48       // 4 + followed classes + inbox, with room
)

// A ServerConfig says what [ServerConfig.Text] writes down. The configuration holds public keys only.
type ServerConfig struct {
	Name     string // server name; optional
	Listen   string // host:port
	StoreDir string // JetStream's directory

	ControlUsers []ControlUser
	Devices      []DeviceUser
	SystemUser   string // public user nkey of the system account; optional

	MaxFileStore   int64 // bytes; 0 means 1 GiB
	MaxMemoryStore int64 // bytes; 0 means 64 MiB

	TLS      *TLS          // nil means none: loopback, or a network that is protected otherwise
	LameDuck time.Duration // over how long a stopping server sends its devices away; 0 means the server's default (2 min)
}

// A ControlUser is a user of the control account.
type ControlUser struct {
	PublicKey string // user nkey, "U…"
	Roles     []Role
}

// A DeviceUser is the connection key of a device.
type DeviceUser struct {
	PublicKey string // user nkey, "U…"
	Device    Device
}

// TLS names PEM files on the server.
type TLS struct {
	Cert, Key string
	CA        string // of client certificates; optional
}

// Text is a complete nats-server configuration. Rewriting it with other users and sending the server SIGHUP adds and
// cuts devices while all others stay connected.
func (c ServerConfig) Text() (string, error) {
	if c.Listen == "" || c.StoreDir == "" {
		return "", fmt.Errorf("cannot write a server configuration: a listen address and a store directory are needed")
	}
	if err := c.checkUsers(); err != nil {
		return "", err
	}
	var w confWriter
	w.line("# Written by continuo. Changes by hand are lost when it is written again.")
	if c.Name != "" {
		w.line("server_name: %s", quote(c.Name))
	}
	w.line("listen: %s", quote(c.Listen))
	w.line("max_payload: %d", maxServerPayload)
	w.line(`max_connections: 60000`)
	w.line(`ping_interval: "2m"`)
	w.line(`write_deadline: "10s"`)
	if c.LameDuck > 0 {
		w.line("lame_duck_duration: %s", quote(c.LameDuck.String()))
	}
	w.line("authorization { timeout: 10 }")
	if c.TLS != nil {
		w.open("tls {")
		w.line("cert_file: %s", quote(c.TLS.Cert))
		w.line("key_file: %s", quote(c.TLS.Key))
		if c.TLS.CA != "" {
			w.line("ca_file: %s", quote(c.TLS.CA))
			w.line("verify: true")
		}
		w.line("timeout: 10")
		w.close("}")
	}
	w.open("jetstream {")
	w.line("store_dir: %s", quote(c.StoreDir))
	w.line("sync_interval: always # an acknowledged document is on disk")
	w.line("max_file_store: %d", orDefault(c.MaxFileStore, 1<<30))
	w.line("max_memory_store: %d", orDefault(c.MaxMemoryStore, 64<<20))
	w.line("request_queue_limit: 10000")
	w.line("limits { default_max_consumers: 200 }")
	w.close("}")
	w.line("system_account: %s", accountSystem)
	w.open("accounts {")
	if err := c.accounts(&w); err != nil {
		return "", err
	}
	w.close("}")
	return w.String(), nil
}

func (c ServerConfig) accounts(w *confWriter) error {
	w.open(accountSystem + " {")
	if c.SystemUser != "" {
		w.line("users: [ { nkey: %s } ]", c.SystemUser)
	}
	w.close("}")

	w.open(accountControl + " {")
	w.line("jetstream: enabled")
	w.open("exports: [")
	for _, m := range mappings() {
		w.line("{ %s: %s, accounts: [%s] }", m.verb(), quote(m.control), accountFleet)
	}
	w.close("]")
	w.open("users: [")
	for _, u := range c.ControlUsers {
		p, err := RolePermissions(u.Roles...)
		if err != nil {
			return err
		}
		w.user(u.PublicKey, p, "")
	}
	w.close("]")
	w.close("}")

	w.open(accountFleet + " { # no JetStream: a device has no API to turn against the others")
	w.line("limits { max_subs: %d, max_payload: %d }", maxDeviceSubs, maxDevicePayload)
	w.open("imports: [")
	for _, m := range mappings() {
		to := ""
		if m.device != m.control {
			to = ", to: " + quote(numberWildcards(m.device))
		}
		w.line("{ %s: { account: %s, subject: %s }%s }", m.verb(), accountControl, quote(m.control), to)
	}
	w.close("]")
	w.open("users: [")
	for _, u := range c.Devices {
		w.user(u.PublicKey, DevicePermissions(u.Device), `, allowed_connection_types: ["STANDARD"]`)
	}
	w.close("]")
	w.close("}")
	return nil
}

func (m mapping) verb() string {
	if m.stream {
		return "stream"
	}
	return "service"
}

// numberWildcards writes the n-th "*" as "$n", which is how the server ties the tokens of both sides of an import.
func numberWildcards(subject string) string {
	tokens, n := strings.Split(subject, "."), 0
	for i, t := range tokens {
		if t == "*" {
			n++
			tokens[i] = "$" + strconv.Itoa(n)
		}
	}
	return strings.Join(tokens, ".")
}

func (c ServerConfig) checkUsers() error {
	users := map[string]string{}
	add := func(key, who string) error {
		if !nkeys.IsValidPublicUserKey(key) {
			return fmt.Errorf("cannot make %s a user: %q is not a public user key (it starts with U)", who, key)
		}
		if other, ok := users[key]; ok {
			return fmt.Errorf("cannot make %s a user: %s has the same key; make a new one", who, other)
		}
		users[key] = who
		return nil
	}
	if c.SystemUser != "" {
		if err := add(c.SystemUser, "the system user"); err != nil {
			return err
		}
	}
	for _, u := range c.ControlUsers {
		if err := add(u.PublicKey, fmt.Sprintf("a control user %v", u.Roles)); err != nil {
			return err
		}
	}
	devices := map[Device]bool{}
	for _, u := range c.Devices {
		if err := u.Device.Check(); err != nil {
			return err
		}
		if devices[u.Device] {
			return fmt.Errorf("cannot make device %s a user: it is listed twice", u.Device)
		}
		devices[u.Device] = true
		if err := add(u.PublicKey, "device "+u.Device.String()); err != nil {
			return err
		}
	}
	return nil
}

func orDefault(n, def int64) int64 {
	if n > 0 {
		return n
	}
	return def
}

// confWriter writes the server's configuration language. Every text goes through quote: unquoted, a "$" would be a
// variable.
type confWriter struct {
	strings.Builder
	depth int
}

func (w *confWriter) line(format string, args ...any) {
	w.WriteString(strings.Repeat("  ", w.depth))
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

func (w *confWriter) open(s string)  { w.line("%s", s); w.depth++ }
func (w *confWriter) close(s string) { w.depth--; w.line("%s", s) }

func (w *confWriter) user(key string, p Permissions, more string) {
	w.line("{ nkey: %s, permissions: { publish: { allow: %s }, subscribe: { allow: %s } }%s }", key, quoteAll(p.Publish), quoteAll(p.Subscribe), more)
}

func quoteAll(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + `"`
}
