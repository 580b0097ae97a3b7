package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// What a device says it is can be read back, whatever it says, and is nobody's status.
func TestInfo(t *testing.T) {
	r := newRig(t, pi1, pi10)
	r.device(pi1)
	late := time.After(patience)
	for {
		got, err := r.Info(t.Context(), pi1)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 1 {
			if i := got[0]; i.Device != pi1 || i.Info == nil || i.Info.Facts.Serial == "" || i.Info.Facts.Hostname != "raspberrypi" || i.StoredAt.IsZero() {
				t.Errorf("got %+v", i)
			}
			break
		}
		select {
		case <-late:
			t.Fatal("it never said what it is")
		case <-time.After(20 * time.Millisecond):
		}
	}
	if got, err := r.Info(t.Context(), pi10); err != nil || len(got) != 0 {
		t.Errorf("of a device that said nothing: %+v, %v", got, err)
	}
	nc := r.srv.ConnectDevice(pi10)
	for _, body := range []string{"\xdd\xff", "", strings.Repeat("[", 60_000), `{"apiVersion":"continuo/v1","kind":"Status"}`, `{"apiVersion":"continuo/v1","kind":"DeviceInfo","facts":{"cpus":"many"}}`} {
		if _, err := nc.Request(wire.InfoSubject(pi10), []byte(body), patience); err != nil {
			t.Fatal(err)
		}
		got, err := r.Info(t.Context())
		if err != nil || len(got) != 2 || got[0].Info == nil || got[1].Device != pi10 || got[1].Info != nil || got[1].Unreadable == "" {
			t.Errorf("%.20q: got %+v, %v", body, got, err)
		}
	}
	all, err := r.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Device == pi10 || s.Unreadable != "" {
			t.Errorf("a status was made of what it says it is: %+v", s)
		}
	}
}
