package localnats_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/internal/wire"
)

var pi1 = fleet.Device{Site: "main", ID: "pi-1"}

func start(t *testing.T, dir string) *localnats.Server {
	t.Helper()
	s, err := localnats.Start(localnats.Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// connect connects as the device of c.
func connect(t *testing.T, c localnats.AgentConfig) (*nats.Conn, error) {
	t.Helper()
	nc, err := nats.Connect(c.Servers[0], nats.UserCredentials(c.CredsFile), nats.NoReconnect(), nats.CustomInboxPrefix(wire.InboxPrefix(fleet.Device{Site: c.Site, ID: c.Device})))
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, err
}

// A server on an empty directory makes everything it needs; another start finds it again, with what was stored.
func TestStartAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "continuo")
	s := start(t, dir)
	r, err := s.Setup(t.Context())
	if err != nil || len(r.Created) != len(wire.Streams(1)) || len(r.Differences) > 0 {
		t.Fatalf("got %+v, %v", r, err)
	}
	c, err := s.AddDevice(pi1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, c); err != nil {
		t.Fatal(err)
	}
	issued := read(t, c.CredsFile)
	if _, err := localnats.Start(localnats.Options{Dir: dir, Listen: "127.0.0.1:0"}); err == nil || !strings.Contains(err.Error(), "another server is running there") {
		t.Errorf("a second server: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = start(t, dir)
	defer s.Close()
	// What is in memory only is made anew; what devices should be is not.
	if r, err = s.Setup(t.Context()); err != nil || !slices.Equal(r.Created, []string{wire.StreamAlive}) || len(r.Differences) > 0 {
		t.Errorf("the second time: %+v, %v", r, err)
	}
	again, err := localnats.Dir(dir).AddDevice(pi1)
	if err != nil || again.Operator != c.Operator || again.Control != c.Control {
		t.Errorf("the device has another key, or is told of others: %v", err)
	}
	if read(t, again.CredsFile) != issued {
		t.Error("the device has another credential")
	}
	if _, err := connect(t, again); err != nil {
		t.Error(err)
	}
	for _, file := range []string{"keys/operator.nk", "keys/control.nk", "keys/nats/operator.nk", "keys/nats/issuer-device.nk", "users/operator.creds", "users/control.creds", "users/system.creds", "devices/main.pi-1.nk", "devices/main.pi-1.creds", "nats.conf"} {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	conf, err := os.ReadFile(filepath.Join(dir, "nats.conf"))
	if err != nil || regexp.MustCompile(`\bS[A-Z][A-Z2-7]{40,}`).Match(conf) {
		t.Errorf("the configuration holds a seed, or is not there: %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A device that another command adds is known to the running server, and one that is removed is cut; nobody else is.
func TestDevicesComeAndGo(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	defer s.Close()
	if _, err := s.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, err := s.AddDevice(pi1)
	if err != nil {
		t.Fatal(err)
	}
	one, err := connect(t, first)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, fleet.ServeOptions{}) }()

	c, err := localnats.Dir(dir).AddDevice(fleet.Device{Site: "attic", ID: "pi-2"})
	if err != nil {
		t.Fatal(err)
	}
	two, err := connect(t, c)
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(t.TempDir(), "kept.creds")
	if err := os.WriteFile(kept, []byte(read(t, c.CredsFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{})
	two.SetClosedHandler(func(*nats.Conn) { close(cut) })
	if err := localnats.Dir(dir).RemoveDevice(t.Context(), fleet.Device{Site: "attic", ID: "pi-2"}); err != nil {
		t.Fatal(err)
	}
	<-cut
	if nc, err := nats.Connect(c.Servers[0], nats.UserCredentials(kept)); err == nil {
		nc.Close()
		t.Error("a credential that was revoked is good for a connection")
	}
	if !one.IsConnected() {
		t.Error("another device was cut as well")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestStartRefusals(t *testing.T) {
	tests := []struct {
		name string
		o    localnats.Options
		want string
	}{
		{"no directory", localnats.Options{}, "no directory is given"},
		{"open to others", localnats.Options{Dir: t.TempDir(), Listen: "0.0.0.0:0"}, "would not be encrypted"},
		{"no port", localnats.Options{Dir: t.TempDir(), Listen: "127.0.0.1"}, "missing port"},
		{"address taken", localnats.Options{Dir: t.TempDir(), Listen: taken(t)}, "is another server running there?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := localnats.Start(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := localnats.Dir(t.TempDir()).AddDevice(fleet.Device{Site: "main", ID: "*"}); err == nil {
		t.Error("a wildcard became a device")
	}
}

func taken(t *testing.T) string {
	s := start(t, t.TempDir())
	t.Cleanup(func() { s.Close() })
	return strings.TrimPrefix(s.URL(), "nats://")
}
