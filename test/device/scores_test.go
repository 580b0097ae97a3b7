//go:build device && linux

package device

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	iservice "github.com/continuo-fleet/continuo/interpret/service"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// Without podman, or with one that has no Quadlet, containers are unsupported, with the reason, and everything else goes
// on (X29).
func TestWithoutPodman(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	s.sh(`systemctl stop podman.socket podman.service
		mv /usr/bin/podman /usr/bin/podman.gone
		mv /usr/lib/systemd/system-generators/podman-system-generator /usr/lib/podman-system-generator
		rm -f /run/podman/podman.sock
		systemctl daemon-reload`)
	s.control(fleet.ServeOptions{})
	s.run("systemctl", "start", agentUnit)
	g := s.publish(fourKinds("right\n")...)
	sc := s.outcome(g, "web", interpret.Unsupported, "unavailable")
	if !strings.Contains(sc.Message, "podman") {
		t.Errorf("the reason is %q", sc.Message)
	}
	st := s.state()
	for _, id := range []score.ID{"conf", "app", "name"} {
		if sc, _ := st.Score(manifestName, id); !sc.Converged() {
			t.Errorf("%s is %s: %s", id, sc.Outcome, sc.Message)
		}
	}
	if st.Status.State != interpret.StateUnsupported || st.Verdict != fleet.Unsupported {
		t.Errorf("the device is %s, the verdict %s", st.Status.State, st.Verdict)
	}
	s.drifts("right")

	// An older podman has no Quadlet, and says what it is.
	s.sh(`mv /usr/bin/podman.gone /usr/bin/podman; systemctl start podman.socket; systemctl restart ` + agentUnit)
	s.until("the reason names the version", func(st fleet.DeviceState) error {
		sc, _ := st.Score(manifestName, "web")
		if sc.Outcome != interpret.Unsupported || !strings.Contains(sc.Message, "needs podman 4.4 or newer; this device has 5.") {
			return fmt.Errorf("it is %s: %s", sc.Outcome, sc.Message)
		}
		return nil
	})
}

// What is in the way of a file is reported and left alone, at once; the other files are written (cases 24, 28, 33, 41).
func TestObstaclesOfFiles(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.sh(`mkdir -p /srv/o; cd /srv/o
		echo old >under; echo old >bound; mount --bind under bound
		mkfifo pipe; ln -s under link; mkdir folder
		echo theirs >theirs; chmod 0640 theirs`)
	at := func(id score.ID) score.Score { return file(id, "/srv/o/"+string(id), "new\n") }
	stranger := at("stranger")
	f := stranger.Spec.(score.File)
	f.Owner = "nobody-here"
	stranger.Spec = f
	g := s.publish(at("bound"), at("pipe"), at("link"), at("folder"), at("theirs"), at("good"), stranger,
		file("system", "/usr/lib/kiosk.conf", "new\n"))
	st := s.until("the good file is written", func(st fleet.DeviceState) error {
		if sc, ok := st.Score(manifestName, "good"); !ok || !sc.Converged() || st.Status.Generation < g {
			return fmt.Errorf("it is %s", st.Status.State)
		}
		return nil
	})
	for id, want := range map[score.ID]interpret.Code{
		"pipe": "not_regular", "link": "symlink", "folder": "not_regular", "stranger": "no_account", "system": "read_only",
	} {
		if sc, _ := st.Score(manifestName, id); sc.Outcome != interpret.Failed || sc.Code != want {
			t.Errorf("%s is %s %s (%s), want failed %s", id, sc.Outcome, sc.Code, sc.Message, want)
		}
	}
	for _, id := range []score.ID{"bound", "theirs"} { // a person has to say what becomes of what was there
		if sc, _ := st.Score(manifestName, id); sc.Outcome != interpret.Conflict || sc.Code != "foreign" {
			t.Errorf("%s is %s %s (%s), want a conflict", id, sc.Outcome, sc.Code, sc.Message)
		}
	}
	for _, a := range s.confirm().Actions {
		if a.Score == "bound" && (a.Outcome != interpret.Failed || a.Code != "mount_point") || a.Score == "theirs" && (a.Outcome != interpret.Changed || a.Backup == "") {
			t.Errorf("confirmed, and %s is %s %s (%s), its backup %q", a.Score, a.Outcome, a.Code, a.Message, a.Backup)
		}
	}
	if got := s.sh("cat /srv/o/theirs; stat -c %a /srv/o/theirs; cat $(grep -rlx theirs /var/lib/continuo/backups)"); got != "new\n644\ntheirs" {
		t.Errorf("the foreign file, and its copy:\n%s", got)
	}
	if got := s.sh("cd /srv/o; cat under bound; stat -c %F pipe link folder"); got != "old\nold\nfifo\nsymbolic link\ndirectory" {
		t.Errorf("what was in the way is now:\n%s", got)
	}
	if left := s.temporary(); left != "" {
		t.Errorf("left behind: %s", left)
	}
	s.sh("umount /srv/o/bound; rm /srv/o/pipe") // and when it is out of the way
	s.ask(interpret.Operation{Verb: interpret.VerbAdopt, Manifest: manifestName, Scores: []score.ID{"bound"}})
	for _, id := range []score.ID{"bound", "pipe"} {
		s.until(string(id)+" is written", func(st fleet.DeviceState) error {
			if sc, _ := st.Score(manifestName, id); !sc.Converged() {
				return fmt.Errorf("it is %s: %s", sc.Outcome, sc.Message)
			}
			return nil
		})
	}
}

// Services that do not do as they are told, and people who do not either (cases 35, 50, 51, 54, 55, 57, 59).
func TestUnwillingServices(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.sh(`for u in masked runtime persistent; do printf '` + strings.ReplaceAll(sleeper, "\n", `\n`) + `' >/usr/lib/systemd/system/$u.service; done
		printf '[Service]\nTimeoutStartSec=infinity\nExecStartPre=/bin/sleep infinity\nExecStart=/bin/sleep infinity\n' >/usr/lib/systemd/system/slow.service
		systemctl daemon-reload
		systemctl mask -q masked.service
		systemctl enable -q --runtime runtime.service persistent.service
		systemctl start --no-block slow.service`)
	is := func(id string, s score.Service) score.Score {
		s.Unit = id + ".service"
		return score.Score{ID: score.ID(id), Spec: s}
	}
	const install = "[Install]\nWantedBy=multi-user.target\n"
	looping := "[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=1\n" + install
	limited := "[Unit]\nStartLimitBurst=3\nStartLimitIntervalSec=1h\n[Service]\nExecStart=%s\nRestart=always\nRestartSec=20ms\n" + install
	scores := func(limit string) []score.Score {
		return []score.Score{
			is("masked", score.Service{Enabled: new(true), State: score.Running}),
			is("runtime", score.Service{Enabled: new(false)}),
			is("persistent", score.Service{Enabled: new(true)}),
			is("slow", score.Service{State: score.Stopped}),
			service("looping", "looping.service", looping),
			service("limited", "limited.service", fmt.Sprintf(limited, limit)),
			service("broken", "broken.service", "[Service]\nExecStart=not/absolute\n"+install),
			file("dropin", "/etc/systemd/system/app.service.d/10.conf", "[Service]\nEnvironment=NEW=yes\n"),
			is("app", score.Service{UnitFile: sleeper, State: score.Running, RestartOn: []score.ID{"dropin"}}),
		}
	}
	g := s.publish(scores("/bin/false")...)
	s.outcome(g, "masked", interpret.Conflict, "masked")
	s.outcome(g, "looping", interpret.Failed, "exited")
	s.outcome(g, "broken", interpret.Failed, "definition")
	s.until("the loop is counted", func(st fleet.DeviceState) error {
		if u := read[iservice.Observed](t, st, "looping"); u.Restarts < 2 {
			return fmt.Errorf("%d restarts, %s", u.Restarts, u.Sub)
		}
		return nil
	})
	s.outcome(g, "limited", interpret.Failed, "start_limit")
	started := s.run("systemctl", "show", "-P", "InvocationID", "limited.service")
	st := s.state()
	for _, id := range []score.ID{"runtime", "persistent", "slow", "dropin", "app"} {
		if sc, _ := st.Score(manifestName, id); !sc.Converged() {
			t.Errorf("%s is %s: %s", id, sc.Outcome, sc.Message)
		}
	}
	if got := s.sh("systemctl show -P Environment app.service; systemctl is-enabled runtime persistent masked || :; systemctl is-active slow || :"); got !=
		"NEW=yes\ndisabled\nenabled\nmasked\ninactive" {
		t.Errorf("systemd says:\n%s", got)
	}
	if now := s.run("systemctl", "show", "-P", "InvocationID", "limited.service"); now != started {
		t.Error("a unit at its limit was started again although nothing is new")
	}

	s.run("systemctl", "unmask", "-q", "masked.service")
	g = s.publish(scores("/bin/sleep infinity")...)
	for _, id := range []score.ID{"limited", "masked"} {
		s.until(string(id)+" runs", func(st fleet.DeviceState) error {
			if sc, _ := st.Score(manifestName, id); !sc.Converged() || st.Status.Generation < g {
				return fmt.Errorf("it is %s: %s", sc.Outcome, sc.Message)
			}
			return nil
		})
	}

	// As after a power cut: the unit is empty, which systemd takes for masked.
	s.sh(`systemctl stop continuo-agent app; truncate -s 0 /etc/systemd/system/app.service; systemctl daemon-reload
		systemctl start continuo-agent; systemctl is-active app; [ -s /etc/systemd/system/app.service ]`)
}

// What was made by somebody else is not touched, and what is ours is found again without books (cases 83, 85, 96).
func TestForeignAndForgottenContainers(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	s.sh(`pibox-image
		podman run -d -q --name theirs localhost/busybox:1 sleep infinity
		podman run -d -q --name stranger localhost/busybox:1 sleep infinity
		podman create -q --name never localhost/busybox:1
		mkdir -p /etc/containers/systemd
		printf '[Container]\nImage=localhost/busybox:1\nExec=sleep infinity\n' >/etc/containers/systemd/hand.container
		systemctl daemon-reload
		mkdir -p /mnt/ssd/data /srv
		echo seen >/mnt/ssd/data/x
		ln -s /mnt/ssd /srv/link
		ln -s ../var/lib/continuo /srv/peek`)
	// podman follows links on the device: one that leads elsewhere is as good as a directory, one that leads to the agent is not.
	through := func(id score.ID, source string) score.Score {
		sc := container(id, string(id))
		c := sc.Spec.(score.Container)
		c.Volumes = []score.Volume{{Source: source, Target: "/data", ReadOnly: true}}
		sc.Spec = c
		return sc
	}
	foreign := func() string {
		return s.run("podman", "inspect", "theirs", "stranger", "never", "--format", "{{.Id}} {{.State.Status}} {{.State.StartedAt}}")
	}
	theirs := foreign()
	hand := s.run("cat", "/etc/containers/systemd/hand.container")
	g := s.publish(container("theirs", "theirs"), container("hand", "hand"), container("web", "web"),
		through("linked", "/srv/link/data"), through("peek", "/srv/peek"),
		file("quadlet", "/etc/containers/systemd/odd.container", "[Container]\nImage=localhost/busybox:1\nNoSuchKey=1\n"),
		score.Score{ID: "odd", After: []score.ID{"quadlet"}, Spec: score.Service{Unit: "odd.service", State: score.Running}})
	s.outcome(g, "theirs", interpret.Conflict, "foreign")
	s.outcome(g, "hand", interpret.Conflict, "foreign")
	if sc := s.outcome(g, "peek", interpret.Refused, interpret.CodeInvalid); !strings.Contains(sc.Message, "/srv/peek leads to /var/lib/continuo") {
		t.Errorf("peek: %s", sc.Message)
	}
	if got := s.sh("podman exec linked cat /data/x; podman ps -aq --filter name=peek; ls /etc/containers/systemd | grep peek || true"); got != "seen" {
		t.Errorf("through links is seen:\n%s", got)
	}
	odd := s.outcome(g, "odd", interpret.Failed, "invalid")
	t.Logf("a definition with a key that podman does not know: %s", odd.Message)
	st := s.state()
	if sc, _ := st.Score(manifestName, "web"); !sc.Converged() {
		t.Errorf("web is %s: %s", sc.Outcome, sc.Message)
	}
	if now := foreign(); now != theirs {
		t.Errorf("the foreign containers are %s, and were %s", now, theirs)
	}
	if now := s.run("cat", "/etc/containers/systemd/hand.container"); now != hand {
		t.Errorf("the foreign definition is now\n%s", now)
	}

	web := s.run("podman", "inspect", "web", "--format", "{{.Id}} {{.State.StartedAt}}")
	instance := st.Status.Agent.Instance
	s.sh("systemctl stop continuo-agent; rm -r /var/lib/continuo/*; systemctl start continuo-agent")
	s.until("the agent without books found it", func(st fleet.DeviceState) error {
		sc, _ := st.Score(manifestName, "web")
		if st.Status.Agent.Instance == instance || sc.Outcome != interpret.Unchanged {
			return fmt.Errorf("it is %s: %s", sc.Outcome, sc.Message)
		}
		return nil
	})
	if now := s.run("podman", "inspect", "web", "--format", "{{.Id}} {{.State.StartedAt}}"); now != web {
		t.Errorf("the container is %s, and was %s", now, web)
	}
	// Those that no manifest names are told of, and not touched.
	s.until("what nobody manages is told", func(st fleet.DeviceState) error {
		if !slices.Equal(st.Status.Unmanaged, []score.Resource{"container:never", "container:stranger"}) {
			return fmt.Errorf("it tells of %v", st.Status.Unmanaged)
		}
		return nil
	})
	if now := foreign(); now != theirs {
		t.Errorf("the foreign containers are %s, and were %s", now, theirs)
	}
	if out, _ := s.Exec(t.Context(), "continuo-agent", "status"); !strings.Contains(out, "not managed here, and left alone: container never, container stranger;") {
		t.Errorf("on the device:\n%s", out)
	}
}
