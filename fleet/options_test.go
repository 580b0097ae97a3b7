package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/internal/wire"
)

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	contexts := filepath.Join(dir, "nats", "context")
	if err := os.MkdirAll(contexts, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"context/home.json": `{"description":"x","url":"nats://home","creds":"~/home.creds","inbox_prefix":"_I","color_scheme":"red"}`,
		"context/work.json": `{"url":"tls://work","nkey":"file:///work.nk","ca":"/ca.pem"}`,
		"context/op.json":   `{"url":"nats://op","creds":"op://vault/item"}`,
		"context/bad.json":  `{`,
		"context.txt":       "home\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "nats", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		o    Options
		env  map[string]string
		want settings
		err  string
	}{
		{"selected context", Options{}, map[string]string{"XDG_CONFIG_HOME": dir, "HOME": "/home/pi"}, settings{url: "nats://home", creds: "/home/pi/home.creds", inboxPrefix: "_I"}, ""},
		{"named context", Options{Context: "work"}, map[string]string{"XDG_CONFIG_HOME": dir}, settings{url: "tls://work", nkey: "/work.nk", ca: "/ca.pem"}, ""},
		{"context of the environment", Options{}, map[string]string{"XDG_CONFIG_HOME": dir, "NATS_CONTEXT": "work"}, settings{url: "tls://work", nkey: "/work.nk", ca: "/ca.pem"}, ""},
		{"environment over context", Options{Context: "work"}, map[string]string{"XDG_CONFIG_HOME": dir, "NATS_URL": "nats://env", "NATS_CA": "/env.pem"}, settings{url: "nats://env", nkey: "/work.nk", ca: "/env.pem"}, ""},
		{"flag over environment", Options{Server: "nats://flag", Context: "work"}, map[string]string{"XDG_CONFIG_HOME": dir, "NATS_URL": "nats://env"}, settings{url: "nats://flag", nkey: "/work.nk", ca: "/ca.pem"}, ""},
		{"a named key wins over the context's", Options{NKey: "/mine.nk"}, map[string]string{"XDG_CONFIG_HOME": dir}, settings{url: "nats://home", nkey: "/mine.nk", inboxPrefix: "_I"}, ""},
		{"nothing", Options{}, map[string]string{"HOME": t.TempDir()}, settings{url: nats.DefaultURL}, ""},
		{"user and password", Options{User: "u", Password: "p"}, map[string]string{"HOME": t.TempDir()}, settings{url: nats.DefaultURL, user: "u", password: "p"}, ""},
		{"environment of the NATS CLI", Options{}, map[string]string{"HOME": t.TempDir(), "NATS_CREDS": "/c", "NATS_USER": "u", "NATS_PASSWORD": "p", "NATS_CERT": "/cert", "NATS_KEY": "/key", "NATS_INBOX_PREFIX": "_X"},
			settings{url: nats.DefaultURL, creds: "/c", user: "u", password: "p", cert: "/cert", key: "/key", inboxPrefix: "_X"}, ""},
		{"unknown context", Options{Context: "nowhere"}, map[string]string{"XDG_CONFIG_HOME": dir}, settings{}, `cannot read context "nowhere"`},
		{"context that is a path", Options{Context: "../x"}, map[string]string{"XDG_CONFIG_HOME": dir}, settings{}, "it is no name"},
		{"broken context", Options{Context: "bad"}, map[string]string{"XDG_CONFIG_HOME": dir}, settings{}, `cannot read context "bad"`},
		{"a vault", Options{Context: "op"}, map[string]string{"XDG_CONFIG_HOME": dir}, settings{}, "only files are supported"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Getenv = func(name string) string { return tt.env[name] }
			got, err := tt.o.resolve()
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}

func TestShownHidesSecrets(t *testing.T) {
	got := settings{url: "nats://user:secret@a:1, nats://token@b:2,nats://c"}.shown()
	if strings.Contains(got, "secret") || strings.Contains(got, "token") || !strings.Contains(got, "a:1") || !strings.Contains(got, "nats://c") {
		t.Errorf("got %s", got)
	}
}

func TestConnectErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "no.nk")
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"nobody there", Options{Server: "nats://127.0.0.1:1"}, "continuo up starts one"},
		{"no key file", Options{Server: "nats://127.0.0.1:1", NKey: file}, "cannot use the key in"},
		{"no credentials file", Options{Server: "nats://127.0.0.1:1", Creds: file}, "cannot connect to"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.o.Getenv, tt.o.ConfigDir = func(string) string { return "" }, t.TempDir()
			if _, err := Connect(t.Context(), tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	k, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	o1, c1, err1 := k.Trusted()
	o2, c2, err2 := again.Trusted()
	if err1 != nil || err2 != nil || o1 != o2 || c1 != c2 || o1 == c1 || !nkeys.IsValidPublicAccountKey(o1) {
		t.Errorf("got %s %s, then %s %s", o1, c1, o2, c2)
	}
	file := filepath.Join(dir, operatorFile)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others may read: %v", err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(dir); err == nil || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a damaged key: %v", err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "nonsense" {
		t.Error("a damaged key was replaced")
	}
	// What is no file is not read: a pipe would never end.
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(pipe); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a pipe: %v", err)
	}
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(huge); err == nil || !strings.Contains(err.Error(), "holds no seed") {
		t.Errorf("a file of a terabyte: %v", err)
	}
	// A key of one kind is not trusted for the other.
	set, err := ControlKeys(o1)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := wire.Seal(wire.Statement{Kind: wire.KindDevice, Audience: "main.x", Generation: 1, Media: "x"}, []byte("x"), k.Operator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Verify(frame, set, wire.Expect{Kind: wire.KindDevice, Audience: "main.x"}); err == nil {
		t.Error("a control key signed a document")
	}
}

// What a device writes is read without harm, whatever it is (cases 142).
func FuzzDecodeStatus(f *testing.F) {
	for _, s := range []string{
		`{"apiVersion":"continuo/v1","kind":"Status","phase":"idle","state":"converged","generation":3}`,
		`{"apiVersion":"continuo/v1","kind":"Status","phase":"idle","state":"converged","manifests":[{"name":"m","scores":[{"id":"a","kind":"file","outcome":"unchanged","observed":{"present":true}}]}]}`,
		"", "null", "[]", "\xdd\xff\xff\xff\xff", strings.Repeat("[", 20_000), `{"manifests":` + strings.Repeat(`[`, 20_000), `{"generation":-1}`, `{"kind":"Status","kind":"Status"}`, `{"` + strings.Repeat("x", 60_000) + `":}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		st, err := decodeStatus(b)
		if (st == nil) == (err == nil) {
			t.Fatalf("got %v, %v", st, err)
		}
		v := view{devices: map[Device]*DeviceState{}}
		d := Device{Site: "main", ID: "pi-1"}
		for _, stream := range []string{wire.StreamActual, wire.StreamAlive, wire.StreamDesired} {
			subject := map[string]string{wire.StreamActual: wire.ActualSubject(d), wire.StreamAlive: aliveSubject(wire.AliveKey(d)), wire.StreamDesired: wire.DesiredSubject(wire.DeviceKey(d))}[stream]
			v.take(message{stream: stream, subject: subject, data: b, generation: 1})
			v.take(message{stream: stream, subject: string(b), data: b})
		}
		if s := v.state(d); s.Verdict == "" || len(s.Unreadable) > 1010 {
			t.Fatalf("no verdict, or a long word about it: %+v", s)
		}
		if len(b) > maxStatus && err == nil {
			t.Fatal("too large and read")
		}
	})
}
