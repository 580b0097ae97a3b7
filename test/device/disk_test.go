//go:build device && linux

package device

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// A full disk costs nothing: the old content stays, the agent goes on and says so, and all is made true as soon as there
// is space, without a restart (H13; case 43).
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{Size: "96M"})
	big := func(word string) string { return strings.Repeat(word+"\n", 1<<20/(len(word)+1)) }
	s.run("mkdir", "/srv/small")
	s.run("mount", "-t", "tmpfs", "-o", "size=1536k", "tmpfs", "/srv/small")
	scores := func(word string) []score.Score {
		return []score.Score{file("big", "/srv/big", big(word)), file("small", "/srv/small/big", big(word))}
	}
	s.converged(s.publish(scores("old")...))
	sums := s.run("sha256sum", "/srv/big", "/srv/small/big")
	pid := s.agentPID()

	// One disk has no space for a second copy, and the others have.
	g := s.publish(scores("new")...)
	s.outcome(g, "small", interpret.Failed, "no_space")
	old := strings.Split(sums, "\n")[1]
	if now := s.run("sha256sum", "/srv/small/big"); now != old {
		t.Errorf("the file is %s, and was %s", now, old)
	}
	if left := s.run("ls", "-A", "/srv/small"); left != "big" {
		t.Errorf("on the full disk are %s", left)
	}
	s.run("mount", "-o", "remount,size=8m", "/srv/small")
	s.converged(g)

	// The disk of the device has no space at all: not even what was published can be kept.
	sums = s.run("sha256sum", "/srv/big", "/srv/small/big")
	s.sh("dd if=/dev/zero of=/fill bs=64k 2>/dev/null || :; dd if=/dev/zero of=/fill2 bs=512 2>/dev/null || :")
	g = s.publish(scores("newer")...)
	p := s.problem(agent.CodeStore)
	t.Logf("on a disk without any space: %s", p.Message)
	lines := s.logged("level=")
	beats := s.in()
	box.Until(t, patience, "two heartbeats", func() error { return more(s.in(), beats, 2) })
	if n := s.logged("level=") - lines; n > 40 {
		t.Errorf("it has logged %d lines meanwhile", n)
	}
	if now := s.run("sha256sum", "/srv/big", "/srv/small/big"); now != sums {
		t.Errorf("the files are\n%s\nand were\n%s", now, sums)
	}
	s.run("rm", "/fill", "/fill2")
	st := s.converged(g)
	if now := s.agentPID(); now != pid {
		t.Errorf("the agent is process %s, and was %s", now, pid)
	}
	if left := s.temporary(); left != "" {
		t.Errorf("left behind: %s", left)
	}
	t.Logf("and with space again: %s, %v", st.Status.State, st.Status.Problems)
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
