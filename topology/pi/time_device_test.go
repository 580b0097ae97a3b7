//go:build device

package pi

import (
	"os"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/conform"
)

// timeAdmin is somebody with a terminal.
type timeAdmin struct{}

func (timeAdmin) Edit() error {
	f, err := os.OpenFile(timesyncFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("PollIntervalMaxSec=60\n")
	return err
}

func (timeAdmin) Delete() error { return os.Remove(timesyncFile) }

func (timeAdmin) Restarts() (string, error) {
	return do("systemctl", "show", "-P", "InvocationID", timesyncUnit)
}

// timesyncd lets systemd-timesyncd run in a box: without the right to set the clock, which is that of the machine around it.
func timesyncd(t *testing.T) {
	box(t)
	const dir = "/etc/systemd/system/systemd-timesyncd.service.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/box.conf", []byte("[Unit]\nConditionVirtualization=\nConditionCapability=\n[Service]\nAmbientCapabilities=\nCapabilityBoundingSet=\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	sh(t, "systemctl daemon-reload; systemctl start "+timesyncUnit)
	t.Cleanup(func() {
		sh(t, "systemctl stop "+timesyncUnit+"; rm -r "+dir+"; systemctl daemon-reload")
	})
}

func TestConformTime(t *testing.T) {
	timesyncd(t)
	conform.Time(t, func(t *testing.T) conform.TimeBench {
		d := device(t)
		return conform.TimeBench{Time: d.Time(), Events: d.Events(), Hands: timeAdmin{}}
	})
	if out := sh(t, "timedatectl show -P Timezone"); out == "" {
		t.Error("timedatectl knows no time zone")
	}
}

// A device whose clock another program keeps says so, and has a time zone all the same; other files that name servers show.
func TestTimeOfOthers(t *testing.T) {
	timesyncd(t)
	d := device(t).Time()
	choice := topology.TimeServers{Servers: []string{"192.0.2.123"}, Mark: "m/time"}
	if err := d.SetTimeServers(t.Context(), choice); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sh(t, "rm -rf /etc/systemd/timesyncd.conf.d") })
	const before, after = "/etc/systemd/timesyncd.conf.d/10-site.conf", "/etc/systemd/timesyncd.conf.d/99-site.conf"
	for path, want := range map[string]string{before: "192.0.2.123", after: "192.0.2.123 198.51.100.9"} {
		if err := os.WriteFile(path, []byte("[Time]\nNTP=198.51.100.9\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		sh(t, "systemctl restart "+timesyncUnit)
		if st, err := d.Time(t.Context()); err != nil || strings.Join(st.Servers, " ") != want || st.Altered || !st.Written {
			t.Errorf("with %s: %+v, %v", path, st, err)
		}
		sh(t, "rm "+path)
	}
	if err := d.RemoveTimeServers(t.Context()); err != nil {
		t.Fatal(err)
	}
	sh(t, "systemctl mask --now "+timesyncUnit)
	t.Cleanup(func() { sh(t, "systemctl unmask "+timesyncUnit) })
	st, err := d.Time(t.Context())
	if err != nil || st.Timezone == "" || !strings.Contains(st.Lacks, "systemctl unmask") || st.Active {
		t.Errorf("masked: %+v, %v", st, err)
	}
	wantCode(t, d.SetTimeServers(t.Context(), choice), topology.CodeUnavailable)
	wantCode(t, d.SetTimeSync(t.Context(), true), topology.CodeUnavailable)
	if err := d.SetTimezone(t.Context(), st.Timezone); err != nil {
		t.Error(err)
	}
}
