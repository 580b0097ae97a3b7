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

// many is a manifest with all kinds in which everything differs between two versions.
func many(version string) []score.Score {
	out := []score.Score{
		service("app", "app.service", "[Unit]\nDescription=App "+version+"\n"+sleeper),
		{ID: "name", Spec: score.Hostname{Name: "kiosk-" + version}},
	}
	for i := range 20 {
		content := strings.Repeat(fmt.Sprintf("version %s, file %d\n", version, i), 200)
		out = append(out, file(score.ID(fmt.Sprintf("f%d", i)), fmt.Sprintf("/srv/many/d%d/f%d", i%4, i), content))
	}
	return out
}

// tree is the state that counts: content, mode and owner of what is managed, the units, the container and the name.
func (s *site) tree() string {
	s.t.Helper()
	return s.sh(`cd /; find srv etc/systemd/system etc/containers -type f -o -type l | sort | while read -r f; do
			stat -c '%n %F %a %U %G %N' "$f"; [ -h "$f" ] || sha256sum <"$f"
		done
		for u in app web; do systemctl show -P ActiveState,LoadState,UnitFileState,NeedDaemonReload,Description $u.service; done
		podman ps -a --format '{{.Names}} {{.State}} {{.Image}} {{.Command}}'
		cat /etc/hostname`)
}

// temporary lists the temporary files of the agent that are left anywhere.
func (s *site) temporary() string {
	s.t.Helper()
	return s.sh(`find / -xdev -name '.continuo-*' -not -path '/proc/*'`)
}

// A change that is killed at any point is finished by the next start, as if nothing had happened, and nothing is left
// behind (H57; case 27).
func TestKilledAtAnyPoint(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.run("pibox-image")
	s.PutFile("/etc/systemd/system/continuo-agent.service.d/fast.conf", []byte("[Service]\nRestartSec=50ms\n"), 0o644)
	s.run("systemctl", "daemon-reload")
	version := func(v string) []score.Score {
		return append(many(v), container("web", "web", "sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait # "+v))
	}
	s.converged(s.publish(version("a")...))
	want := map[string]string{"a": s.tree()}
	s.converged(s.publish(version("b")...))
	want["b"] = s.tree()

	for round := range 5 {
		v := []string{"a", "b"}[round%2]
		g := s.publish(version(v)...)
		s.sh(fmt.Sprintf(`i=0; while [ $i -lt 5 ]; do
			sleep 0.$(printf %%03d $((%d * 37 + i * 61)))
			pid=$(systemctl show -P MainPID %s)
			[ $pid = 0 ] || kill -9 $pid || : # it may have gone in between
			i=$((i + 1))
		done`, round, agentUnit))
		s.converged(g)
		s.quiet()
		if got := s.tree(); got != want[v] {
			t.Errorf("round %d: the state is not that of a run without kills; got:\n%s\nwant:\n%s", round, got, want[v])
		}
		if left := s.temporary(); left != "" {
			t.Errorf("round %d: left behind:\n%s", round, left)
		}
	}
	st := s.state()
	if len(st.Status.Problems) != 0 || len(st.Status.Orphans) != 0 {
		t.Errorf("it reports problems %v and orphans %v", st.Status.Problems, st.Status.Orphans)
	}
	t.Logf("number: the agent was killed %s times", s.run("systemctl", "show", "-P", "NRestarts", agentUnit))
}

// A power cut during a change loses nothing: at the next boot the device becomes what it accepted, without any network
// (H57, X77; 200 cuts are for later).
func TestPowerCutsDuringChanges(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.converged(s.publish(many("a")...))
	want := map[string]string{"a": s.tree()}
	s.converged(s.publish(many("b")...))
	want["b"] = s.tree()
	s.run("sync", "-f", "/")

	for round := range 10 {
		v := []string{"a", "b"}[round%2]
		g := s.publish(many(v)...)
		outage(t, time.Duration(round*40)*time.Millisecond)
		s.Crash()
		s.Up()
		s.until(fmt.Sprintf("round %d: generation %d", round, g), func(st fleet.DeviceState) error {
			if !st.Status.ConvergedAt(g) {
				return fmt.Errorf("it reports generation %d, %s, %v", st.Status.Generation, st.Status.State, st.Status.Problems)
			}
			return nil
		})
		s.quiet()
		if got := s.tree(); got != want[v] {
			t.Errorf("round %d: the state is not that of a run without a power cut; got:\n%s\nwant:\n%s", round, got, want[v])
		}
		if left := s.temporary(); left != "" {
			t.Errorf("round %d: left behind:\n%s", round, left)
		}
	}
	if st := s.state(); len(st.Status.Orphans) != 0 {
		t.Errorf("it reports orphans %v", st.Status.Orphans)
	}
	t.Logf("problems after 10 power cuts: %v", s.state().Status.Problems)
}
