//go:build device && linux

package device

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	icontainer "github.com/continuo-fleet/continuo/interpret/container"
	ifile "github.com/continuo-fleet/continuo/interpret/file"
	ihostname "github.com/continuo-fleet/continuo/interpret/hostname"
	iservice "github.com/continuo-fleet/continuo/interpret/service"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// fourKinds is one score of each kind; the service is restarted when the file changes.
func fourKinds(content string) []score.Score {
	return []score.Score{
		file("conf", "/etc/kiosk/app.conf", content),
		{ID: "app", Spec: score.Service{
			Unit: "app.service", UnitFile: sleeper, Enabled: new(true), State: score.Running, RestartOn: []score.ID{"conf"},
		}},
		container("web", "web"),
		{ID: "name", Spec: score.Hostname{Name: "kiosk-7"}},
	}
}

// fingerprint is everything that must not change when nothing is to be done: inodes and times of files, invocations of
// units, the container, and how often systemd was told to load its configuration.
func (s *site) fingerprint() string {
	s.t.Helper()
	return s.sh(`stat -c '%n inode %i mtime %y ctime %z mode %a' /etc/kiosk/app.conf /etc/systemd/system/app.service \
			/etc/systemd/system/multi-user.target.wants/app.service /etc/containers/systemd/web.container /etc/hostname
		systemctl show -p Id,InvocationID,MainPID,NRestarts,StateChangeTimestampMonotonic app.service web.service
		podman inspect web --format 'container {{.Id}} started {{.State.StartedAt}}'
		echo reloads $(journalctl -b _PID=1 -o cat --no-pager | grep -c '^Reloading' || true)`)
}

// jobs counts every job that systemd ever queued, but for the starts of hostnamed, which ends when nobody has asked it
// for 30 s and is there again when somebody does.
func (s *site) jobs() string {
	s.t.Helper()
	return s.sh(`journalctl --sync
		starts=$(journalctl -b -q -o cat --no-pager _PID=1 UNIT=systemd-hostnamed.service JOB_TYPE=start JOB_RESULT=done | wc -l)
		echo $(($(systemctl show -P NInstalledJobs) - starts))`)
}

// The whole way: published outside, made true inside by the agent as its service, and read back, typed. What is true
// already is not touched again (H04, H07, H08, H11, H51, H58 to H60; cases 47, 69).
func TestFourKindsConverge(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.run("pibox-image")
	g := s.publish(fourKinds("url=https://example.org\n")...)
	st := s.converged(g)
	for _, m := range st.Status.Manifests {
		for _, sc := range m.Scores {
			// Where podman is slow to say that the image is here, the container comes a pass later than the rest.
			if sc.LastChangedGeneration != g || sc.Cause != interpret.CauseIntent || sc.Authority != "standing:converge" {
				t.Errorf("%s is %s, last changed in generation %d for %s by %s, want %d, intent and the standing authority",
					sc.ID, sc.Outcome, sc.LastChangedGeneration, sc.Cause, sc.Authority, g)
			}
		}
	}
	if st.Verdict != fleet.Converged || st.Liveness != fleet.Live {
		t.Errorf("the verdict is %s (%s), the device is %s", st.Verdict, st.Reason, st.Liveness)
	}
	s.typed(st)

	t.Run("second pass", func(t *testing.T) { s.untouched(t) })
	t.Run("failures are counted", func(t *testing.T) { s.counts(t) })
}

// typed compares the reported state with what the usual tools say.
func (s *site) typed(st fleet.DeviceState) {
	s.t.Helper()
	t := s.t
	f := read[ifile.Observed](t, st, "conf")
	sum, _, _ := strings.Cut(s.run("sha256sum", "/etc/kiosk/app.conf"), " ")
	size := s.run("stat", "-c", "%s %04a %U %G", "/etc/kiosk/app.conf")
	if got := fmt.Sprintf("%d %s %s %s", f.Size, f.Mode, f.Owner, f.Group); !f.Present || f.SHA256 != sum || got != size {
		t.Errorf("the file is reported as %+v, sha256sum says %s, stat says %s", f, sum, size)
	}
	u := read[iservice.Observed](t, st, "app")
	if got := fmt.Sprintf("%s\n%s\n%s\n%s\n%d\n%d\n%s\n%s", u.Load, u.Active, u.Sub, u.Enabled, u.MainPID, u.Restarts, u.Result, u.Invocation); got !=
		s.run("sh", "-c", "for p in LoadState ActiveState SubState UnitFileState MainPID NRestarts Result InvocationID; do systemctl show -P $p app.service; done") {
		t.Errorf("the unit is reported as %+v", u)
	}
	c := read[icontainer.Observed](t, st, "web")
	if got, want := fmt.Sprintf("%s %s %d", c.State, c.ID, c.ExitCode),
		s.run("podman", "inspect", "web", "--format", "{{.State.Status}} {{.Id}} {{.State.ExitCode}}"); got != want || c.Since.IsZero() || c.Restarts != 0 {
		t.Errorf("the container is reported as %q in %+v, podman says %q", got, c, want)
	}
	if id := s.run("podman", "inspect", "web", "--format", "sha256:{{.Image}}"); c.Digest != id { // no registry gave it a digest
		t.Errorf("the image is reported as %s, podman says %s", c.Digest, id)
	}
	if h := read[ihostname.Observed](t, st, "name"); h.Static != "kiosk-7" || s.run("hostnamectl", "hostname") != "kiosk-7" {
		t.Errorf("the host name is reported as %+v", h)
	}
}

// untouched makes the agent look twice more, for a new generation and after its restart.
func (s *site) untouched(t *testing.T) {
	print, jobs := s.fingerprint(), s.jobs()
	g := s.publish(append(fourKinds("url=https://example.org\n"), file("more", "/etc/kiosk/more.conf", "x\n"))...)
	st := s.converged(g)
	if after := s.jobs(); after != jobs {
		t.Errorf("systemd has queued %s jobs, %s before", after, jobs)
	}
	unchanged := func(st fleet.DeviceState) {
		t.Helper()
		for _, id := range []score.ID{"conf", "app", "web", "name"} {
			if sc, _ := st.Score(manifestName, id); sc.Outcome != interpret.Unchanged || sc.LastChangedGeneration != 1 {
				t.Errorf("%s is %s (%s), last changed in generation %d", sc.ID, sc.Outcome, sc.Message, sc.LastChangedGeneration)
			}
		}
		if now := s.fingerprint(); now != print {
			t.Errorf("something was touched; before:\n%s\nafter:\n%s", print, now)
		}
	}
	unchanged(st)

	instance := st.Status.Agent.Instance
	s.run("systemctl", "restart", agentUnit)
	unchanged(s.until("a report of the new agent", func(st fleet.DeviceState) error {
		if st.Status.Agent.Instance == instance || !st.Status.ConvergedAt(g) {
			return fmt.Errorf("it is %s", st.Status.State)
		}
		return nil
	}))
}

// counts kills the process of the container twice, and has a unit that fails.
func (s *site) counts(t *testing.T) {
	for i := range 2 {
		s.sh(`kill -9 $(podman inspect web --format '{{.State.Pid}}')`)
		box.Until(t, patience, "the container is up again", func() error {
			out, err := s.Exec(t.Context(), "sh", "-c", "echo $(systemctl is-active web) $(systemctl show -P NRestarts web)")
			if want := fmt.Sprintf("active %d", i+1); out != want {
				return fmt.Errorf("it is %q (%v), want %q", out, err, want)
			}
			return nil
		})
		s.quiet()
	}
	s.until("two restarts of the container", func(st fleet.DeviceState) error {
		if c := read[icontainer.Observed](t, st, "web"); c.Restarts != 2 || c.State != "running" {
			return fmt.Errorf("it is %s after %d restarts", c.State, c.Restarts)
		}
		return nil
	})

	g := s.publish(append(fourKinds("url=https://example.org\n"),
		service("bad", "bad.service", "[Service]\nExecStart=/bin/sh -c 'exit 7'\n[Install]\nWantedBy=multi-user.target\n"))...)
	s.outcome(g, "bad", interpret.Failed, "exited")
	st := s.state()
	if u := read[iservice.Observed](t, st, "bad"); u.Active != "failed" || u.Result != "exit-code" || u.ExitCode != 7 {
		t.Errorf("the failing unit is reported as %+v", u)
	}
	if st.Status.State != interpret.StatePartial {
		t.Errorf("the device is %s, want partial", st.Status.State)
	}
}

// A container's image comes from a registry, by tag and by digest; when the registry is away, the old container stays
// (cases 77, 79, 80).
func TestImagesArePulled(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	registry := box.Registry(t)
	s.sh("pibox-image; podman push -q localhost/busybox:1 " + registry + "/pulled:1; podman rmi -a -f")
	web := container("web", "web")
	with := func(image string) score.Score {
		c := web.Spec.(score.Container)
		c.Image = image
		return score.Score{ID: "web", Spec: c}
	}
	st := s.converged(s.publish(with(registry + "/pulled:1")))
	first := read[icontainer.Observed](t, st, "web")
	if !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(first.Digest) {
		t.Errorf("the digest is %q", first.Digest)
	}
	st = s.converged(s.publish(with(registry + "/pulled@" + first.Digest)))
	second := read[icontainer.Observed](t, st, "web")
	if second.Digest != first.Digest {
		t.Errorf("the digest is %s, want %s", second.Digest, first.Digest)
	}
	g := s.publish(with(registry + "/missing:1"))
	s.outcome(g, "web", interpret.Failed, "image_unavailable")
	g = s.publish(with("hub.pibox:1/pulled:2"))
	s.outcome(g, "web", interpret.Failed, "image_unavailable")
	if id := s.run("podman", "inspect", "web", "--format", "{{.Id}} {{.State.Status}}"); id != second.ID+" running" {
		t.Errorf("the container is %s, and %s ran before", id, second.ID)
	}
}
