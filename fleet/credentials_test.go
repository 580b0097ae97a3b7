package fleet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/natstest"
)

// X89: whatever goes wrong with a credential, it is in no error.
func TestErrorsHoldNoCredential(t *testing.T) {
	const password = "hunter2"
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := user.Seed()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const jwt = "eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ"
	creds := func(jwt, seed string) string {
		return "-----" + "BEGIN NATS USER JWT-----\n" + jwt + "\n------END NATS USER JWT------\n\n-----" + "BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n"
	}
	server, secure := natstest.Start(t).URL, natstest.StartTLS(t, nil).URL
	const away = "nats://127.0.0.1:1"
	tests := map[string]Options{
		"user and password, nobody there":       {Server: away, User: "u", Password: password},
		"user and password, not known":          {Server: server, User: "u", Password: password},
		"user and password, not trusted":        {Server: secure, User: "u", Password: password},
		"token, nobody there":                   {Server: away, Token: password},
		"token, not known":                      {Server: server, Token: password},
		"in the URL, nobody there":              {Server: "nats://u:" + password + "@127.0.0.1:1"},
		"in the URL, not known":                 {Server: strings.Replace(server, "nats://", "nats://u:"+password+"@", 1)},
		"token in the URL, not known":           {Server: strings.Replace(server, "nats://", "nats://"+password+"@", 1)},
		"in one of several URLs":                {Server: away + ", nats://u:" + password + "@127.0.0.1:2"},
		"in what is no URL":                     {Server: "nats://u:" + password + "@[::1"},
		"in what is no URL either":              {Server: "nats://u:" + password + "@127.0.0.1:port"},
		"in a URL that holds an odd byte":       {Server: "nats://u:" + password + "%zz@127.0.0.1:1"},
		"in a URL without a scheme":             {Server: "u:" + password + "@127.0.0.1:1"},
		"in a URL of another protocol":          {Server: "http://u:" + password + "@127.0.0.1:1"},
		"seed, not known":                       {Server: server, NKey: file("seed", string(seed))},
		"seed that is cut off":                  {Server: server, NKey: file("cut", string(seed)[:40])},
		"seed with a letter that was changed":   {Server: server, NKey: file("changed", string(seed)[:20]+"A"+string(seed)[21:])},
		"seed where a path belongs":             {Server: server, NKey: string(seed)},
		"seed where credentials belong":         {Server: server, Creds: file("seed.creds", string(seed))},
		"credentials, not known":                {Server: server, Creds: file("user.creds", creds(jwt, string(seed)))},
		"credentials with a seed that is none":  {Server: server, Creds: file("broken.creds", creds(jwt, string(seed)[:40]))},
		"credentials where a seed belongs":      {Server: server, NKey: file("user2.creds", creds(jwt, string(seed)))},
		"context with a password, nobody there": {Context: "away", ConfigDir: dir},
		"context that is no JSON":               {Context: "broken", ConfigDir: dir},
		"context with a password that is none":  {Context: "typed", ConfigDir: dir},
		"context with a seed that is none":      {Context: "seed", ConfigDir: dir},
		"key of a certificate that is none":     {Server: secure, Cert: file("cert.pem", "cert"), Key: file("key.pem", string(seed))},
	}
	file("context/away.json", `{"url":"`+away+`","user":"u","password":"`+password+`"}`)
	file("context/broken.json", `{"url":"`+away+`","password":"`+password+`"`+password)
	file("context/typed.json", `{"url":"`+away+`","password":{"is":"`+password+`"}}`)
	file("context/seed.json", `{"url":"`+server+`","user_jwt":"`+jwt+`","user_seed":"`+string(seed)[:40]+`"}`)
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			o.Getenv = func(string) string { return "" }
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			f, err := Connect(ctx, o)
			if err == nil {
				f.Close()
				t.Fatal("it connected")
			}
			for _, secret := range []string{password, string(seed)[2:20], jwt} {
				if strings.Contains(err.Error(), secret) && o.NKey != string(seed) || strings.Contains(err.Error(), string(seed)) {
					t.Errorf("it is shown: %v", err)
				}
			}
		})
	}
	for name, content := range map[string]string{"cut off": string(seed)[:40], "changed": string(seed)[:20] + string(rune('A'+(seed[20]-'A'+1)%2)) + string(seed)[21:], "twice": string(seed) + string(seed)} {
		if _, err := LoadKey(file("signer", content)); err == nil || strings.Contains(err.Error(), string(seed)[2:20]) {
			t.Errorf("a signing key that is %s: %v", name, err)
		}
	}
}

// What a server says of other servers is not followed: it is said before anything is encrypted.
func TestServersAreThoseThatWereNamed(t *testing.T) {
	opts, err := settings{}.connectOptions()
	if err != nil {
		t.Fatal(err)
	}
	var n nats.Options
	for _, o := range opts {
		if err := o(&n); err != nil {
			t.Fatal(err)
		}
	}
	if !n.IgnoreDiscoveredServers {
		t.Error("it goes where a server says")
	}
}
