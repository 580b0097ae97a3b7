//go:build device && linux

package device

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// cuts is how many power cuts there are; 0: as many as fit into a minute. A release takes 200:
// make device DEVICE_FLAGS='-run PowerCuts -cuts 200 -timeout 60m'.
var cuts = flag.Int("cuts", 0, "how often the power of the box is cut")

// changing is many with what only one of the versions has, and a container.
func changing(version string) []score.Score {
	out := append(many(version), file("only", "/srv/many/only-"+version, version+"\n"),
		container("web", "web", "sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait # "+version))
	if version == "b" {
		out = append(out, service("extra", "extra.service", sleeper))
	}
	return out
}

// seen is what the command on the device says of it, from the books on its disk and without any network.
func (s *site) seen() (st interpret.DeviceStatus, err error) {
	out, err := s.Exec(s.t.Context(), "sh", "-c", "continuo-agent status -o json || [ $? = 1 ]")
	if err == nil {
		err = json.Unmarshal([]byte(out), &st)
	}
	return st, err
}

// A power cut at any moment of a change loses nothing: at the next boot, without any network, the device becomes what it
// had accepted, wholly, and what it had begun is ended; its books are sound, and nothing is lost, doubled or left behind
// (H57, X77).
func TestPowerCuts(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.run("pibox-image")
	want := map[string]string{}
	accepted := uint64(0)
	took := time.Duration(0)
	for _, v := range []string{"a", "b", "a"} { // the last one tells how long a change takes
		start := time.Now()
		accepted = s.publish(changing(v)...)
		s.converged(accepted)
		took = time.Since(start)
		s.quiet()
		want[v] = s.tree()
	}
	s.run("sync", "-f", "/")

	const torn = "the last record is incomplete"
	during, behind, writing := 0, 0, 0
	var boots time.Duration
	start := time.Now()
	cut := 0
	for ; *cuts > 0 && cut < *cuts || *cuts == 0 && time.Since(start) < time.Minute; cut++ {
		v := []string{"b", "a"}[cut%2]
		g := s.publish(changing(v)...)
		f := rand.Float64()
		outage(t, time.Duration(f*f*float64(took))) // most of it happens early
		s.Crash()
		s.relay.hang(true)
		up := time.Now()
		s.Up()
		var st interpret.DeviceStatus
		box.Until(t, patience, fmt.Sprintf("cut %d: it is what it had accepted", cut), func() error {
			var err error
			if st, err = s.seen(); err == nil && (st.State != interpret.StateConverged || len(st.Orphans) > 0) {
				err = fmt.Errorf("it is %s: %+v, left %+v", st.State, st.Manifests, st.Orphans)
			}
			return err
		})
		boots += time.Since(up)
		if s.logged(`authority="begun:`) > 0 {
			during++
		}
		if s.logged(torn) > 0 {
			writing++
		}
		switch st.Generation {
		case g:
		case accepted:
			behind++
			v = other(v)
		default:
			t.Errorf("cut %d: it is at generation %d, and had accepted %d or %d", cut, st.Generation, accepted, g)
		}
		for _, p := range st.Problems { // of the books
			if !strings.Contains(p.Message, torn) {
				t.Errorf("cut %d: the books: %v", cut, st.Problems)
			}
		}
		s.settled(cut, want[v])
		s.relay.hang(false)
		s.converged(g)
		accepted = g
		if t.Failed() {
			break
		}
	}
	took = time.Since(start)
	for _, p := range s.state().Status.Problems {
		if p.Code != agent.CodeRecovered {
			t.Errorf("at the end: %v", p)
		}
	}
	if during == 0 {
		t.Error("no cut fell between the begin and the end of an action")
	}
	n := time.Duration(cut)
	t.Logf("number: %d power cuts, %d between the begin and the end of an action, %d before it was accepted, %d in a write of the journal; %.1f s from power to converged without a network, %.1f s for all of one",
		cut, during, behind, writing, (boots / n).Seconds(), (took / n).Seconds())
}

func other(version string) string { return map[string]string{"a": "b", "b": "a"}[version] }

// settled waits until the device is as want says, and finds what should not be there.
func (s *site) settled(cut int, want string) {
	s.t.Helper()
	box.Until(s.t, patience, fmt.Sprintf("cut %d: the state of a run without a cut", cut), func() error {
		if got := s.tree(); got != want {
			return fmt.Errorf("it is\n%s\nand not\n%s", got, want)
		}
		return nil
	})
	if left := s.temporary(); left != "" {
		s.t.Errorf("cut %d: left behind:\n%s", cut, left)
	}
	if failed := s.sh("systemctl --failed --plain --no-legend; systemctl show -P NRestarts " + agentUnit); failed != "0" {
		s.t.Errorf("cut %d: units that failed, and how often the agent was restarted:\n%s", cut, failed)
	}
	if twice := s.sh("podman ps -a --format '{{.Names}}' | sort | uniq -d; ls /etc/systemd/system | grep -c '^app.*service$'"); strings.TrimSpace(twice) != "1" {
		s.t.Errorf("cut %d: doubled:\n%s", cut, twice)
	}
}
