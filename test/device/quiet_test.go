//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// A device to which nothing happens does nothing: no process is started by the agent or for it, nothing is written to
// the disk, nobody can connect to it, and it holds one connection (H03, H40, X17).
func TestQuietDevice(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	s.run("pibox-image")
	s.control(fleet.ServeOptions{})
	s.run("systemctl", "start", agentUnit)
	scores := fourKinds("right\n")
	for i := len(scores); i < 100; i++ {
		scores = append(scores, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/etc/kiosk/f%d.conf", i), strings.Repeat("x", 1000)))
	}
	s.converged(s.publish(scores...))
	s.quiet()
	box.Until(t, patience, "podman's service has ended", func() error {
		out, err := s.Exec(t.Context(), "systemctl", "is-active", "podman.service")
		if err == nil {
			return fmt.Errorf("it is %s", out)
		}
		return nil
	})
	s.quiet()

	was, begun := s.usage(), time.Now()
	outage(t, 65*time.Second)
	now, took := s.usage(), time.Since(begun)

	if was.pid != now.pid {
		t.Fatalf("the agent is process %s, and was %s", now.pid, was.pid)
	}
	if now.childFaults != was.childFaults || now.children != "" {
		t.Errorf("the agent started processes: page faults of its children %d, before %d; children now: %q", now.childFaults, was.childFaults, now.children)
	}
	if now.jobs != was.jobs {
		t.Errorf("systemd queued %d jobs", now.jobs-was.jobs)
	}
	if now.written != was.written {
		t.Errorf("the agent wrote %d bytes to the disk", now.written-was.written)
	}
	if out := s.sh("ss -H -ltnup | grep continuo || :"); out != "" {
		t.Errorf("the agent listens:\n%s", out)
	}
	clients := s.clients()
	if len(clients) != 1 {
		t.Fatalf("the server has %d connections of it", len(clients))
	}
	minute := func(n int64) float64 { return float64(n) / took.Minutes() }
	t.Logf("number: quiet agent, 100 resources: %.1f ms CPU/min, %.0f wakeups/min, PSS %.1f MiB (%.1f anonymous, %.1f of the binary), %d subscriptions",
		minute(now.cpu-was.cpu)/1e6, minute(now.switches-was.switches), float64(now.pss)/1024, float64(now.anon)/1024, float64(now.pss-now.anon)/1024, clients[0].NumSubs)
}

// usage is what the agent has used so far.
type usage struct {
	pid, children     string
	cpu, switches     int64 // ns; voluntary and not
	childFaults, jobs int64
	written           int64 // bytes
	pss, anon         int64 // KiB
}

func (s *site) usage() usage {
	s.t.Helper()
	var u usage
	out := s.sh(`pid=$(systemctl show -P MainPID ` + agentUnit + `); cd /proc/$pid
		echo $pid
		cat task/*/schedstat | awk '{n += $1} END {printf "%d\n", n}'
		cat task/*/status | awk '/ctxt_switches/ {n += $2} END {print n}'
		sed 's/.*) //' stat | cut -d' ' -f9
		systemctl show -P NInstalledJobs
		awk '/^write_bytes/ {print $2}' io
		awk '/^Pss:/ {print $2}' smaps_rollup
		awk '/^Pss_Anon:/ {print $2}' smaps_rollup
		cat task/*/children | tr -d '\n'`)
	lines := strings.SplitN(out, "\n", 9)
	for i, p := range []*int64{&u.cpu, &u.switches, &u.childFaults, &u.jobs, &u.written, &u.pss, &u.anon} {
		if _, err := fmt.Sscan(lines[i+1], p); err != nil {
			s.t.Fatalf("cannot read %q: %v", out, err)
		}
	}
	u.pid = lines[0]
	if len(lines) > 8 {
		u.children = strings.TrimSpace(lines[8])
	}
	return u
}
