package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// Somebody is given a credential, does with it what his role may and nothing else, and loses it at once.
func TestUser(t *testing.T) { // X46, G62, G65
	b := newBench(t)
	if code, out, errs := b.run("user", "list"); code != 0 || out != "nobody was given a credential\n" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	b.up()
	url, err := os.ReadFile(filepath.Join(b.dir, "data/url"))
	if err != nil {
		t.Fatal(err)
	}
	server := strings.TrimSpace(string(url))
	manifest := b.write("m.yaml", good)
	creds := map[string]string{}
	for name, args := range map[string][]string{"vera": {"--role", "viewer"}, "paul": {"--role", "publisher", "--site", "main", "--for", "1h"}, "olaf": {"--role", "publisher", "--site", "office"}} {
		creds[name] = filepath.Join(b.dir, name+".creds")
		code, out, errs := b.run(append([]string{"user", "add", name, "--out", creds[name]}, args...)...)
		if code != 0 || !strings.Contains(out, name+" is a "+args[1]) {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		if st, err := os.Stat(creds[name]); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st, err)
		}
	}
	as := func(name string, args ...string) (int, string) {
		code, out, errs := b.run(append(args, "--server", server, "--creds", creds[name])...)
		return code, out + errs
	}
	for _, name := range []string{"vera", "olaf"} { // a publisher of another site
		if code, said := as(name, "publish", manifest, "--confirm"); code == 0 || !strings.Contains(said, "not allowed by the server") {
			t.Errorf("%s published: exit %d: %s", name, code, said)
		}
	}
	if code, said := as("vera", "status"); code != 0 || !strings.Contains(said, "no device is known") {
		t.Errorf("a viewer: exit %d: %s", code, said)
	}
	if code, said := as("paul", "publish", manifest, "--confirm"); code != 0 {
		t.Errorf("a publisher of this site: exit %d: %s", code, said)
	}
	code, out, errs := b.run("user", "list")
	if code != 0 || !strings.Contains(out, "vera  viewer     all     without an end\n") || !strings.Contains(out, "paul  publisher  main    20") || strings.Contains(out, "SU") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	nc, err := nats.Connect(server, nats.UserCredentials(creds["vera"]), nats.NoReconnect(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(cut) })
	if code, out, errs := b.run("user", "remove", "vera"); code != 0 || out != "the credential of vera is revoked\n" {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	select {
	case <-cut:
	case <-time.After(time.Minute):
		t.Error("whose credential was revoked is connected")
	}
	if nc, err := nats.Connect(server, nats.UserCredentials(creds["vera"])); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("got %v", err)
	}
	if code, out, _ := b.run("user", "list", "-o", "json"); code != 0 || strings.Contains(out, "vera") || !strings.Contains(out, `"role": "publisher"`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestUserRefusals(t *testing.T) {
	b := newBench(t)
	if code, _, errs := b.run("user", "add", "vera", "--role", "viewer"); code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	tests := []struct {
		args string
		code int
		want string
	}{
		{"user add", 2, "one NAME is needed"},
		{"user add Vera --role viewer", 2, `cannot use "Vera" as a user`},
		{"user add anna", 2, "--role is missing: one of viewer, "},
		{"user add anna --role king", 2, `cannot give role "king": no such role; roles are viewer, `},
		{"user add anna --role viewer --site main", 2, "has nothing of a site"},
		{"user add anna --role publisher --site *", 2, `cannot use "*" as a site`},
		{"user add anna --role viewer --for -1h", 2, "--for is -1h0m0s"},
		{"user add vera --role viewer", 1, "there is one of this name"},
		{"user add operator --role viewer --out " + b.write("there", ""), 1, "file exists"},
		{"user remove nobody", 1, "there is none of this name; continuo user list"},
		{"user remove ../keys", 2, "as a user"},
	}
	for _, tt := range tests {
		if code, out, errs := b.run(strings.Fields(tt.args)...); code != tt.code || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: exit %d: %s%s", tt.args, code, out, errs)
		}
	}
	if code, out, errs := b.run("user", "list"); code != 0 || !strings.Contains(out, "vera") || strings.Contains(out, "operator") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
