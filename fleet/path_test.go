package fleet_test

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	ifile "github.com/continuo-fleet/continuo/interpret/file"
)

// The whole way, with a real agent: write, push, execute, report, read (H38, H04, H07, H09, H11, H17, H33).
func TestFiveSteps(t *testing.T) {
	r := newRig(t, pi1, pi10)
	r.serve(fleet.ServeOptions{})
	one, ten := r.device(pi1), r.device(pi10)
	r.until(pi1, "reported", func(s fleet.DeviceState) bool { return s.Status != nil })
	begun := time.Now()

	published := r.publish(manifest("kiosk", "pi-1", file("conf", "/etc/kiosk.conf", "url\n")))
	t.Logf("1 written after %s", time.Since(begun))
	if len(published) != 1 || published[0].Generation != 1 || !published[0].Written || published[0].Manifests[0] != (fleet.ManifestChange{Name: "kiosk", Action: fleet.Added, Generation: 1}) {
		t.Errorf("got %+v", published)
	}
	for one.agent.Pulse().Generation != 1 {
		runtime.Gosched()
	}
	t.Logf("2 accepted by the device after %s", time.Since(begun))
	for content := ""; content != "url\n"; content, _ = one.Read("/etc/kiosk.conf") {
		runtime.Gosched()
	}
	t.Logf("3 executed after %s", time.Since(begun))
	s := r.wait(pi1, 1)
	t.Logf("4 reported after %s, by the clock of the store", s.ReportedAt.Sub(begun))
	t.Logf("5 read back after %s", time.Since(begun))
	if s.Verdict != fleet.Converged || s.Status.Generation != 1 || s.Status.Device != "pi-1" {
		t.Fatalf("got %+v", s)
	}
	r.until(pi1, "heard of", func(s fleet.DeviceState) bool { return s.Liveness == fleet.Live })
	if content, _ := one.Read("/etc/kiosk.conf"); content != "url\n" {
		t.Errorf("the device has %q", content)
	}
	sc, ok := s.Score("kiosk", "conf")
	if !ok || !sc.Converged() || sc.LastChangedGeneration != 1 { // a look after that is over may have found it unchanged
		t.Fatalf("got %+v", sc)
	}
	o, err := interpret.Read[ifile.Observed](sc)
	sum := sha256.Sum256([]byte("url\n"))
	if err != nil || !o.Present || o.SHA256 != hex.EncodeToString(sum[:]) || o.Mode != "0644" {
		t.Errorf("typed state %+v, %v", o, err)
	}
	// The other device, whose name begins alike, has seen nothing.
	if p := ten.agent.Pulse(); p.Generation != 0 || p.Problems != 0 {
		t.Errorf("pi-10 has %+v", p)
	}
}
