package agent_test

import (
	"fmt"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// One thing has one owner, however two manifests spell it: as a file or as the unit that the file is of, as a container or as
// the unit that runs it, as a port of one address or of all. The one who comes later changes nothing, is told who has it, and
// nothing flaps (H53, cases 128).
func TestOneThingSpelledDifferently(t *testing.T) {
	web := func(name string, ports ...score.Port) score.Score {
		return score.Score{ID: "web", Spec: score.Container{Name: name, Image: "localhost/app:1", Ports: ports}}
	}
	bare := func(unit string) score.Score {
		return score.Score{ID: "bare", Spec: score.Service{Unit: unit, State: score.Stopped}}
	}
	host := func(name string) score.Score { return score.Score{ID: "host", Spec: score.Hostname{Name: name}} }
	for what, pair := range map[string][2]score.Score{
		"a file":                        {file("x", "/etc/x", "1"), file("y", "/etc/x", "2")},
		"a unit file":                   {service("s", "s.service"), file("f", "/etc/systemd/system/s.service", "[Service]\nExecStart=/bin/false\n")},
		"a unit":                        {service("s", "s.service"), bare("s.service")},
		"the unit of a container":       {web("web"), bare("web.service")},
		"the definition of a container": {web("web"), file("f", "/etc/containers/systemd/web.container", "x")},
		"a container":                   {web("web"), web("web", score.Port{Host: 81, Container: 80})},
		"a port":                        {web("one", score.Port{Host: 80, Container: 80}), web("two", score.Port{IP: "127.0.0.1", Host: 80, Container: 8080})},
		"the host name":                 {host("a"), host("b")},
	} {
		for _, swapped := range []bool{false, true} {
			first, second := pair[0], pair[1]
			if swapped {
				first, second = second, first
			}
			if first.ID == "bare" {
				continue // it is as it should be, and nobody's
			}
			r := newRig(t)
			r.apply(intent(1, manifest("b", first)))
			before := r.snapshot()
			rec := r.dev.Record()
			for range 3 {
				st := r.apply(intent(2, manifest("b", first), manifest("a", second)))
				s, _ := scoreOf(st, "a", second.ID)
				f, _ := scoreOf(st, "b", first.ID)
				if s.Outcome != interpret.Conflict || s.Code != interpret.CodeOwnedBy || s.Message == "" || f.Outcome == interpret.Conflict {
					t.Errorf("%s, swapped %v: %s: %s", what, swapped, outcomes(st), s.Message)
				}
			}
			if m := rec.Mutations(); len(m) > 0 || r.snapshot() != before {
				t.Errorf("%s, swapped %v: called %v", what, swapped, fmt.Sprint(m))
			}
		}
	}
}
