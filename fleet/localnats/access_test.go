package localnats

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// What is revoked while no server runs is refused by the next one.
func TestRevokedWhileNothingRuns(t *testing.T) {
	dir := Dir(t.TempDir())
	d := fleet.Device{Site: "main", ID: "pi-1"}
	s, err := Start(Options{Dir: string(dir), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := dir.AddDevice(d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(c.CredsFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := dir.RemoveDevice(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := dir.RemoveDevice(t.Context(), d); err == nil {
		t.Error("it was removed twice")
	}
	kept := filepath.Join(t.TempDir(), "kept.creds")
	if err := os.WriteFile(kept, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = Start(Options{Dir: string(dir), Listen: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if nc, err := nats.Connect(s.URL(), nats.UserCredentials(kept)); !errors.Is(err, nats.ErrAuthorization) {
		nc.Close()
		t.Errorf("got %v", err)
	}
	// It can be known again, with a key of its own.
	if c, err = dir.AddDevice(d); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.URL(), nats.UserCredentials(c.CredsFile))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// A directory from before there were JWTs goes on with the same keys and everything that it stored, and its owner is told
// what to bring to the devices.
func TestOldDirectory(t *testing.T) {
	dir := Dir(t.TempDir())
	kp, err := fleet.EnsureKey(dir.user("operator"), nkeys.CreateUser)
	if err != nil {
		t.Fatal(err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	device, err := fleet.EnsureKey(filepath.Join(string(dir), "devices", "main.pi-1.nk"), nkeys.CreateUser)
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "nats.conf")
	text := "listen: \"127.0.0.1:-1\"\njetstream { store_dir: \"" + filepath.Join(string(dir), "store") + "\" }\naccounts { CTRL { jetstream: enabled, users: [ { nkey: " + public + " } ] } }\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	opts.NoSigs, opts.NoLog = true, true
	old, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	old.Start()
	if !old.ReadyForConnections(patience) {
		t.Fatal("no server")
	}
	f, err := fleet.Connect(t.Context(), fleet.Options{Server: old.ClientURL(), NKey: dir.user("operator"), Getenv: noEnv, ConfigDir: string(dir)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Setup(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	write := func(o fleet.Options) (seq uint64) {
		t.Helper()
		nc, err := o.Dial()
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(t.Context(), wire.DesiredSubject(wire.DeviceKey(wire.Device{Site: "main", ID: "pi-1"})), []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	if seq := write(fleet.Options{Server: old.ClientURL(), NKey: dir.user("operator"), Getenv: noEnv, ConfigDir: string(dir)}); seq != 1 {
		t.Fatalf("stored as %d", seq)
	}
	old.Shutdown()
	old.WaitForShutdown()

	var said []string
	o := Options{Dir: string(dir), Listen: "127.0.0.1:0", Notice: func(err error) { said = append(said, err.Error()) }}
	for range 2 {
		s, err := Start(o)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Setup(t.Context()); err != nil || len(r.Differences) > 0 {
			t.Errorf("%+v, %v", r, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "of 1 devices the new credential is beside the old one") {
		t.Errorf("told %q", said)
	}
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if seq := write(s.Operator()); seq < 2 { // the trust root is stored as well
		t.Errorf("stored as %d: what was there is gone", seq)
	}
	c, err := dir.AddDevice(fleet.Device{Site: "main", ID: "pi-1"})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := dir.Access()
	if err != nil {
		t.Fatal(err)
	}
	creds, err := os.ReadFile(c.CredsFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := keys.Read(creds); err != nil || got.Name != "main.pi-1" {
		t.Errorf("got %+v, %v", got, err)
	} else if want, err := device.PublicKey(); err != nil || got.User != want {
		t.Errorf("the device has another key: %v", err)
	}
}
