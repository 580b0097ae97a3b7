//go:build device && linux

package device

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// TestExamples: what the examples ask for, those that are written in Go too, is had on real devices by the agent; what a
// box cannot have is told to the owner in a word. The second pass touches nothing. When an operator lets all of it be
// removed, nothing of it is left but what is listed here (X31, H33, cases 161).
func TestExamples(t *testing.T) {
	t.Parallel()
	serveRegistry(t, box.Registry(t))
	standin, err := os.ReadFile(box.Build(t, "./test/device/standin"))
	if err != nil {
		t.Fatal(err)
	}
	for i, manifests := range apart(examples(t)) {
		t.Run(fmt.Sprintf("device %d", i+1), func(t *testing.T) {
			t.Parallel()
			e := exampleDevice{site: newSite(t, box.Options{NICs: 2}), manifests: manifests}
			e.lacks()
			e.prepare(standin)
			e.control(fleet.ServeOptions{})
			e.run("systemctl", "start", agentUnit)
			e.connected()
			before, begun := e.world(), time.Now()
			e.play()
			played := time.Since(begun)
			e.again()
			e.end(before)
			t.Logf("number: %d examples were made true in %.1f s, and all of it took %.1f s", len(manifests), played.Seconds(), time.Since(begun).Seconds())
		})
	}
}

// An exampleDevice is a device on which some of the examples are played.
type exampleDevice struct {
	*site
	manifests []score.Manifest
	told      map[string]told // of scores that cannot be had in a box, by manifest and score
}

// told is what an owner is told of a score.
type told struct {
	outcome interpret.Outcome
	code    interpret.Code
	text    string
}

func (want told) is(sc interpret.ScoreStatus) bool {
	same := sc.Outcome == want.outcome || sc.Outcome.Converged() && want.outcome.Converged()
	return same && !sc.Converged() && sc.Code == want.code && strings.Contains(sc.Message, want.text)
}

// play makes all of it true.
func (e *exampleDevice) play() {
	e.t.Helper()
	g := e.put(e.manifests)
	st := e.settled(g, interpret.Conflict)
	foreign := false
	e.each(st, func(_ string, sc interpret.ScoreStatus) { foreign = foreign || sc.Code == "foreign" })
	if foreign { // /etc/motd is there on every device: an operator says that it may go
		e.confirm()
	}
	st = e.settled(g)
	for id, want := range e.told {
		manifest, id, _ := strings.Cut(id, "/")
		if sc, ok := st.Score(manifest, score.ID(id)); ok && !want.is(sc) {
			e.t.Errorf("%s/%s is %s %s (%s), and was not to be had in a box", manifest, id, sc.Outcome, sc.Code, sc.Message)
		}
	}
}

// again has an agent that was just started look at all of it.
func (e *exampleDevice) again() {
	e.t.Helper()
	instance, reloads := e.state().Status.Agent.Instance, e.reloads()
	cursor := e.sh("journalctl --sync; touch /run/before; journalctl -b -q -n 1 -o json | jq -r .__CURSOR")
	e.run("systemctl", "restart", agentUnit)
	st := e.until("a pass of the next agent", func(st fleet.DeviceState) error {
		if st.Status.Agent.Instance == instance || st.Status.Phase != interpret.PhaseIdle {
			return fmt.Errorf("it is %s", st.Status.Phase)
		}
		return nil
	})
	e.each(st, func(id string, sc interpret.ScoreStatus) {
		if _, is := e.told[id]; !is && sc.Outcome != interpret.Unchanged {
			e.t.Errorf("in the second pass %s is %s %s (%s) %+v", id, sc.Outcome, sc.Code, sc.Message, sc.Changes)
		}
	})
	// Its own books, and those of the journal and of NetworkManager, are no part of what was asked for.
	if out := e.sh(`find / -xdev -newer /run/before -not -type d -not -path '/proc/*' -not -path '/sys/*' -not -path '/run/*' \
			-not -path '/var/log/journal/*' -not -path '/var/lib/continuo/*' -not -path '/var/lib/NetworkManager/*'`); out != "" {
		e.t.Errorf("the second pass wrote\n%s", out)
	}
	// Services that end when nobody asks them start when somebody does.
	if out := e.sh(`journalctl --sync; journalctl -b -q -o json _PID=1 --after-cursor='` + cursor + `' | jq -r 'select(.JOB_TYPE) | .JOB_TYPE + " " + .UNIT' |
			grep -v -e ' continuo-agent\.service' -e ' podman\.service' -e ' systemd-[a-z]*d\.service' -e ' NetworkManager-dispatcher\.service' || :`); out != "" {
		e.t.Errorf("in the second pass systemd was told to\n%s", out)
	}
	if n := e.reloads() - reloads; n != 0 {
		e.t.Errorf("in the second pass systemd loaded its configuration %d times", n)
	}
}

// left is what may be another way afterwards than it was before.
var left = regexp.MustCompile(`^(` + strings.Join([]string{
	`file /etc/(motd|localtime) .*`,                   // which were there, were adopted, and go with their scores; the agent has copies
	`name .*|zone .*|file /etc/hostname .*`,           // a device has always one
	`ntp .*`,                                          // who keeps the time without ours is the machine's own matter
	`file /etc/modprobe\.d/continuo-country\.conf .*`, // without a country a radio is off
	`volume (app|notes)-data`,                         // podman made it for a container, and no score owns it
	`dir (/home/pi/\.config|/etc/containers/networks|/etc/systemd/timesyncd\.conf\.d)( |/).*`, // on the way to what was there
	`table inet netavark`, // podman's own
}, "|") + `)$`)

// end has all of it removed, and compares the device with what it was.
func (e *exampleDevice) end(before string) {
	e.t.Helper()
	var ending []score.Manifest
	way := map[string]bool{} // to what was written: directories that came with it stay
	for _, m := range e.manifests {
		m = m.Clone()
		m.Spec.Policy = score.Policy{Preset: score.Guarded}
		for i, s := range m.Spec.Scores {
			m.Spec.Scores[i].Decommission = s.Spec.Kind() != score.KindTool // which is only looked at
			if f, ok := s.Spec.(score.File); ok {
				for p := f.Path; strings.Count(p, "/") > 1; {
					p = p[:strings.LastIndexByte(p, '/')]
					way[p] = true
				}
			}
		}
		ending = append(ending, m)
	}
	for _, m := range e.manifests {
		for _, s := range m.Spec.Scores {
			if d, ok := s.Spec.(score.Directory); ok {
				delete(way, d.Path)
			}
		}
	}
	g := e.put(ending)
	e.settled(g, interpret.Pending, interpret.Waiting) // for a signature
	plan := e.ask(interpret.Operation{Verb: interpret.VerbPlan}).Plan
	op := interpret.Operation{Verb: interpret.VerbApprove, Plan: plan.ID}
	for _, a := range plan.Actions {
		op.Approvals = append(op.Approvals, interpret.Approval{Manifest: a.Manifest, Score: a.Score, Action: a.Action, Effect: a.Effect, Resources: a.Resources, SpecDigest: a.SpecDigest})
	}
	if r := e.ask(op); r.Result != interpret.ResultDone {
		e.t.Errorf("the removal is %s %s: %s", r.Result, r.Code, r.Message)
	}
	e.settled(g)
	for _, m := range e.manifests {
		_, err := e.fleet.Remove(e.t.Context(), e.id, m.Metadata.Name, fleet.PublishOptions{Signer: e.keys.Operator})
		e.must(err)
	}
	e.until("nothing is asked for any more", func(st fleet.DeviceState) error {
		if len(st.Status.Manifests)+len(st.Status.Orphans) > 0 || st.Status.Phase != interpret.PhaseIdle {
			return fmt.Errorf("%d manifests, orphans %+v", len(st.Status.Manifests), st.Status.Orphans)
		}
		return nil
	})
	box.Until(e.t, patience, "images that nothing uses are gone", func() error {
		if out := e.sh("podman images --format '{{.Repository}}' | grep -e registry.example.org -e localhost/continuo || :"); out != "" {
			return errors.New(out)
		}
		return nil
	})

	was, is := strings.Split(before, "\n"), strings.Split(e.world(), "\n")
	for _, line := range was {
		if !slices.Contains(is, line) && !left.MatchString(line) {
			e.t.Errorf("it was there before, and is not there any more: %s", line)
		}
	}
	for _, line := range is {
		path, _, _ := strings.Cut(strings.TrimPrefix(line, "dir "), " ")
		if !slices.Contains(was, line) && !left.MatchString(line) && !(strings.HasPrefix(line, "dir ") && way[path]) {
			e.t.Errorf("it is left behind: %s", line)
		}
	}
}

func (e *exampleDevice) put(manifests []score.Manifest) uint64 {
	e.t.Helper()
	p, err := e.fleet.Publish(e.t.Context(), manifests, fleet.PublishOptions{Signer: e.keys.Operator})
	e.must(err)
	return p[0].Generation
}

func (e *exampleDevice) each(st fleet.DeviceState, do func(id string, sc interpret.ScoreStatus)) {
	for _, m := range st.Status.Manifests {
		for _, sc := range m.Scores {
			do(m.Name+"/"+string(sc.ID), sc)
		}
	}
}

// settled waits until all that can be had is there, but for what has one of the outcomes.
func (e *exampleDevice) settled(g uint64, or ...interpret.Outcome) fleet.DeviceState {
	e.t.Helper()
	return e.until("all of it is there", func(st fleet.DeviceState) error {
		if st.Status.Generation < g || st.Status.Phase != interpret.PhaseIdle {
			return fmt.Errorf("generation %d, %s", st.Status.Generation, st.Status.Phase)
		}
		var not []error
		e.each(st, func(id string, sc interpret.ScoreStatus) {
			want, is := e.told[id]
			if !sc.Converged() && !slices.Contains(or, sc.Outcome) && (!is || !want.is(sc)) {
				not = append(not, fmt.Errorf("%s is %s %s: %s %+v", id, sc.Outcome, sc.Code, sc.Message, sc.Changes))
			}
		})
		return errors.Join(not...)
	})
}

// world is what the device has and the agent does not have for itself, a line for each thing.
func (e *exampleDevice) world() string {
	e.t.Helper()
	return e.sh(`find /etc /srv /home /root /opt /usr /var -xdev \( -path /var/lib/continuo -o -path /var/log -o -path /var/lib/containers -o -path /var/cache \
				-o -path /var/tmp -o -path /var/lib/NetworkManager -o -path '/var/lib/systemd/tim*' \) -prune \
			-o -type d -printf 'dir %p %m %u %g\n' -o -printf 'file %p %y %m %u %g %l\n' | sort
		find /etc /srv /home -xdev -type f -exec sha256sum {} + | sort -k2 | awk '{print "file", $2, $1}'
		podman ps -a --format 'container {{.Names}}'
		podman volume ls --format 'volume {{.Name}}'
		podman network ls --format 'network {{.Name}}'
		podman secret ls --format 'secret {{.Name}}'
		podman images --format 'image {{.Repository}}:{{.Tag}}' | sort
		nft list tables
		nmcli -g NAME connection show | grep -v '^Wired connection' | sort
		echo name $(hostnamectl hostname)
		timedatectl show | sed -n 's/^Timezone=/zone /p; s/^NTP=/ntp /p'
		systemctl list-unit-files --no-legend --plain | awk '{print "unit", $1, $2}' | grep -v timesyncd
		systemctl list-units --no-legend --plain --state=active,failed | awk '{print "active", $1}' |
			grep -v -e '\.scope' -e '\.mount' -e '\.device' -e netavark -e podman -e systemd-hostnamed -e systemd-timedated -e timesyncd -e NetworkManager-dispatcher -e time-sync | sort
		echo eth1 $(ip -br address show dev eth1 | grep -o '192\.0\.2\.[0-9/]*')`)
}
