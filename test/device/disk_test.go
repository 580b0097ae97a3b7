//go:build device && linux

package device

import (
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// A full disk costs nothing: the old content stays, the agent goes on and says so, and all is made true as soon as there
// is space, without a restart (H13; case 43).
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{Size: "96M"})
	big := func(word string) string { return strings.Repeat(word+"\n", 1<<20/(len(word)+1)) }
	s.converged(s.publish(file("big", "/srv/big", big("old"))))
	sum := s.run("sha256sum", "/srv/big")
	pid := s.agentPID()

	// There is space for the books, and none for the file.
	s.sh("dd if=/dev/zero of=/fill bs=64k 2>/dev/null || :; truncate -s -640K /fill")
	g := s.publish(file("big", "/srv/big", big("new")))
	s.outcome(g, "big", interpret.Failed, "no_space")
	s.whole(sum)
	beats := s.in()
	box.Until(t, patience, "a heartbeat", func() error { return more(s.in(), beats, 1) })
	s.run("rm", "/fill")
	s.converged(g)

	// There is no space at all: not even what was published can be kept.
	sum = s.run("sha256sum", "/srv/big")
	s.sh("dd if=/dev/zero of=/fill bs=64k 2>/dev/null || :; dd if=/dev/zero of=/fill2 bs=512 2>/dev/null || :")
	g = s.publish(file("big", "/srv/big", big("newer")))
	st := s.until("it says that nothing can be kept", func(st fleet.DeviceState) error {
		for _, p := range st.Status.Problems {
			if p.Code == agent.CodeStore {
				return nil
			}
		}
		if sc, ok := st.Score(manifestName, "big"); ok && sc.Outcome == interpret.Failed {
			return nil
		}
		return fmt.Errorf("it reports %s, %v", st.Status.State, st.Status.Problems)
	})
	t.Logf("on a disk without any space: %s, %v", st.Status.State, st.Status.Problems)
	s.whole(sum)
	s.run("rm", "/fill", "/fill2")
	st = s.converged(g)
	if now := s.agentPID(); now != pid {
		t.Errorf("the agent is process %s, and was %s", now, pid)
	}
	t.Logf("and with space again: %s, %v", st.Status.State, st.Status.Problems)
}

// whole checks that the file holds what it held, and that no half of it lies about.
func (s *site) whole(sum string) {
	s.t.Helper()
	if now := s.run("sha256sum", "/srv/big"); now != sum {
		s.t.Errorf("the file is %s, and was %s", now, sum)
	}
	if left := s.temporary(); left != "" {
		s.t.Errorf("left behind: %s", left)
	}
}

// A disk that turns read-only, as a dying card does, is reported; the agent goes on, and after a boot with a disk that
// can be written all is made true (H13; case 44).
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.converged(s.publish(file("conf", "/etc/kiosk/app.conf", "old\n")))
	pid := s.agentPID()
	s.run("sync", "-f", "/")
	s.ReadOnly()
	g := s.publish(file("conf", "/etc/kiosk/app.conf", "new\n"))
	p := s.problem(agent.CodeStore)
	t.Logf("on a disk that is read-only: %+v", p)
	if now := s.agentPID(); now != pid {
		t.Errorf("the agent is process %s, and was %s", now, pid)
	}
	if got := s.run("cat", "/etc/kiosk/app.conf"); got != "old" {
		t.Errorf("the file holds %q", got)
	}
	s.Crash()
	s.Up()
	if st := s.converged(g); len(st.Status.Problems) != 0 {
		t.Logf("problems after the boot: %v", st.Status.Problems)
	}
	s.holds("new")
}
