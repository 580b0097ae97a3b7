package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// A ServerConfig says what [ServerConfig.Text] writes down. It holds no secret.
type ServerConfig struct {
	Name     string // server name; optional
	Listen   string // host:port
	StoreDir string // JetStream's directory

	Operator string            // its JWT
	Accounts map[string]string // their JWTs, by their public keys
	System   string            // public key of the system account
	JWTDir   string            // where the server keeps the accounts, as they were changed since

	MaxFileStore   int64 // bytes; 0 means 1 GiB
	MaxMemoryStore int64 // bytes; 0 means 64 MiB

	TLS      *TLS          // nil means none: loopback, or a network that is protected otherwise
	LameDuck time.Duration // over how long a stopping server sends its devices away; 0 means the server's default (2 min)
}

// TLS names PEM files on the server.
type TLS struct {
	Cert, Key string
	CA        string // of client certificates; optional
}

// Text is a complete nats-server configuration. It knows no users: whoever has a credential of one of the accounts is one.
func (c ServerConfig) Text() (string, error) {
	switch {
	case c.Listen == "" || c.StoreDir == "" || c.JWTDir == "":
		return "", fmt.Errorf("cannot write a server configuration: a listen address, a store directory and one for accounts are needed")
	case c.Operator == "" || c.Accounts[c.System] == "":
		return "", fmt.Errorf("cannot write a server configuration: an operator and accounts are needed, and the system account is one of them")
	}
	var w confWriter
	w.line("# Written by continuo. Changes by hand are lost when it is written again.")
	if c.Name != "" {
		w.line("server_name: %s", quote(c.Name))
	}
	w.line("listen: %s", quote(c.Listen))
	w.line("max_payload: %d", wire.MaxMessage)
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
	w.line("operator: %s", quote(c.Operator))
	w.line("system_account: %s", quote(c.System))
	w.line(`resolver { type: full, dir: %s, allow_delete: false, interval: "2m", timeout: "1.9s" }`, quote(c.JWTDir))
	w.open("resolver_preload {")
	for _, key := range slices.Sorted(maps.Keys(c.Accounts)) {
		w.line("%s: %s", key, quote(c.Accounts[key]))
	}
	w.close("}")
	return w.String(), nil
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

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + `"`
}
