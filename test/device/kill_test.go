//go:build device && linux

package device

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
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

// killedAtWrites kills the agent at one of the first seven writes of its journal in each of its lives, in turn, until over says
// that it is where it should be. It tells how many lives that took.
func (s *site) killedAtWrites(over func(fleet.DeviceState) bool) (lives int) {
	s.t.Helper()
	w, err := fsnotify.NewWatcher()
	s.must(err)
	defer w.Close()
	s.must(w.Add(s.Root() + "/var/lib/continuo"))
	kill := s.Root() + "/sys/fs/cgroup/system.slice/" + agentUnit + "/cgroup.kill"
	quiet := time.NewTimer(time.Second)
	defer quiet.Stop()
	writes := 0
	for end := time.Now().Add(patience); time.Now().Before(end); {
		select {
		case e := <-w.Events:
			if !e.Has(fsnotify.Write) || !strings.HasPrefix(filepath.Base(e.Name), "journal.") {
				continue
			}
			// Begins come before anything is done: who always died of the first write would never do anything.
			if writes++; writes <= lives%7 || os.WriteFile(kill, []byte("1"), 0) != nil {
				continue
			}
			lives, writes = lives+1, 0
			for len(w.Events) > 0 {
				<-w.Events // what it wrote meanwhile
			}
			quiet.Reset(2 * time.Second)
		case err := <-w.Errors:
			s.t.Fatal(err)
		case <-quiet.C:
			if over(s.state()) {
				return lives
			}
			quiet.Reset(time.Second)
		}
	}
	s.t.Fatalf("it is not there after %d lives: %s", lives, show(s.state()))
	return lives
}

// The agent is killed at one of the next writes of its journal, in each of its lives again: through a change of everything,
// through a version that fails and the way back from it. It gets there all the same, and nothing is lost, doubled or left
// behind (H57, X59, X77).
func TestKilledAtWritesOfTheJournal(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.run("pibox-image")
	s.PutFile("/etc/systemd/system/continuo-agent.service.d/fast.conf", []byte("[Service]\nRestartSec=50ms\n"), 0o644)
	s.run("systemctl", "daemon-reload")
	want := map[string]string{}
	generation := uint64(0)
	for _, v := range []string{"b", "a"} {
		generation = s.publishUnder(rollsBack, changing(v)...)
		s.converged(generation)
		s.quiet()
		want[v] = s.tree()
	}
	equal := func(what, v string) {
		t.Helper()
		s.quiet()
		if got := s.tree(); got != want[v] {
			t.Errorf("%s: the state is not that of a run without kills; got:\n%s\nwant:\n%s", what, got, want[v])
		}
		if left := s.temporary(); left != "" {
			t.Errorf("%s: left behind:\n%s", what, left)
		}
	}

	g := s.publishUnder(rollsBack, changing("b")...)
	lives := s.killedAtWrites(func(st fleet.DeviceState) bool { return st.Status.ConvergedAt(g) })
	t.Logf("number: %d lives for a change of everything, each killed at a write of the journal", lives)
	if lives < 10 {
		t.Errorf("%d lives only", lives)
	}
	equal("a change", "b")

	bad := append(changing("a"), service("bad", "bad.service", "[Service]\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n"))
	g = s.publishUnder(rollsBack, bad...)
	lives = s.killedAtWrites(func(st fleet.DeviceState) bool {
		return st.Status.Generation == g && st.Status.State == interpret.StateRolledBack && len(st.Status.Orphans) == 0
	})
	t.Logf("number: %d lives for a version that fails and the way back", lives)
	equal("a rollback", "b")
}

var rollsBack = score.Policy{Preset: score.Converge, OnFailure: score.FailureRollBack}

// publishUnder is publish with a policy.
func (s *site) publishUnder(policy score.Policy, scores ...score.Score) uint64 {
	s.t.Helper()
	p, err := s.fleet.Publish(s.t.Context(), []score.Manifest{{
		APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: manifestName},
		Spec: score.ManifestSpec{Profile: "raspberry-pi", Target: score.Target{Device: s.id.ID}, Policy: policy, Scores: scores},
	}}, fleet.PublishOptions{Signer: s.keys.Operator})
	s.must(err)
	return p[0].Generation
}
