//go:build device && linux

package device

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// Files as people have them: filled in by the device, with a secret of its own, 64 MiB large, a directory for itself, a link
// and the hosts file; all with a real agent on a real disk, fed over a real connection (issue 4: files; G58, cases 28, 149).
func TestFilesOfAllKinds(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	const canary = "canary-9d41f0"
	s.PutFile("/etc/continuo/secrets.env", []byte("APP_KEY='"+canary+"'\n"), 0o600)
	s.sh("printf '127.0.0.1 localhost\\n# mine' >/etc/hosts; mkdir -p /etc/app.d; echo x >/etc/app.d/foreign")
	s.control(fleet.ServeOptions{})
	s.run("systemctl", "start", agentUnit)

	large := make([]byte, 64<<20)
	_, _ = rand.Read(large)
	sum := sha256.Sum256(large)
	ref, err := s.fleet.PutBlob(t.Context(), bytes.NewReader(large))
	s.must(err)
	g := s.publish(
		score.Score{ID: "env", Spec: score.File{Path: "/etc/app.env", Mode: 0o600, Template: &score.Template{
			Text: "KEY={{ secret \"APP_KEY\" | quoteShell }}\nHOST={{ .facts.hostname }}\nARCH={{ .facts.arch | upper }}\n"}}},
		score.Score{ID: "model", Spec: score.File{Path: "/srv/model.bin", Mode: 0o644, Blob: &ref}},
		score.Score{ID: "data", Spec: score.Directory{Path: "/srv/app/data", Mode: 0o2770, Owner: "daemon", Group: "daemon"}},
		score.Score{ID: "zone", Spec: score.Symlink{Path: "/etc/app-zone", Target: "/usr/share/zoneinfo/UTC"}},
		score.Score{ID: "hosts", Spec: score.Hosts{Entries: []score.HostEntry{{Address: "192.0.2.10", Names: []string{"broker"}}}}},
		score.Score{ID: "rights", Spec: score.File{Path: "/srv/app/data/once", Content: "first\n", Create: score.CreateOnce, Mode: 0o640}},
	)
	s.converged(g)
	got := s.sh("cat /etc/app.env; stat -c '%a %U' /srv/app/data /etc/app.env; readlink /etc/app-zone; tail -n 3 /etc/hosts; sha256sum </srv/model.bin")
	want := "KEY='" + canary + "'\nHOST=" + s.run("hostname") + "\nARCH=" + strings.ToUpper(s.run("uname", "-m")) +
		"\n2770 daemon\n600 root\n/usr/share/zoneinfo/UTC\n# continuo begin kiosk/hosts (written by continuo: edit the manifest, and not these lines)\n192.0.2.10\tbroker\n# continuo end\n" +
		hex.EncodeToString(sum[:]) + "  -"
	if got != want {
		t.Errorf("the device has\n%s\nwant\n%s", got, want)
	}
	if out := s.run("getent", "hosts", "broker"); !strings.Contains(out, "192.0.2.10") {
		t.Errorf("the name is %q", out)
	}
	if got := s.sh("head -n 2 /etc/hosts"); got != "127.0.0.1 localhost\n# mine" {
		t.Errorf("the lines of others are %q", got)
	}

	// What did not change is known without being read: 64 MiB once, when nobody has written for a while.
	read := func() int64 {
		before := s.readBytes()
		if r := s.ask(interpret.Operation{Verb: interpret.VerbPlan}); r.Plan == nil || r.Plan.Differs() {
			t.Errorf("the plan is %+v", r)
		}
		return s.readBytes() - before
	}
	s.sh("sleep 11") // longer than a write may take
	first, second := read(), read()
	t.Logf("number: a look at 64 MiB reads %d bytes the first time, and %d the second", first, second)
	if first < 64<<20 || first > 80<<20 || second > 8<<20 {
		t.Errorf("%d and then %d bytes were read", first, second)
	}

	// The secret is in its file, in the file that it comes from, and nowhere else. A digest of what holds it is nowhere.
	env := sha256.Sum256([]byte(s.sh("cat /etc/app.env") + "\n"))
	found := s.sh(fmt.Sprintf("export LC_ALL=C; find /etc /var/lib /var/log /run /tmp -xdev -type f -exec grep -lF -e %s -e %x {} + | sort; journalctl --no-pager | grep -cF -e %[1]s -e %[2]x || true", canary, env))
	if found != "/etc/app.env\n/etc/continuo/secrets.env\n0" {
		t.Errorf("the secret is in\n%s", found)
	}
	st := s.state()
	if text := fmt.Sprintf("%+v %s", st, encodedStatus(t, st)); strings.Contains(text, canary) || strings.Contains(text, hex.EncodeToString(env[:])) {
		t.Errorf("the secret is told: %s", text)
	}

	// A directory that has something foreign in it, and one that is to go and is not empty.
	g = s.publishAs("more",
		score.Score{ID: "own", Spec: score.Directory{Path: "/etc/app.d", Mode: 0o755, Exclusive: true}},
		score.Score{ID: "gone", Spec: score.File{Path: "/etc/none", State: score.Absent}},
	)
	s.until("what is foreign is told", func(st fleet.DeviceState) error {
		sc, _ := st.Score("more", "own")
		if sc.Outcome != interpret.Drifted || len(sc.Changes) != 1 || sc.Changes[0].Have != "foreign" {
			return fmt.Errorf("it is %s %s: %v", sc.Outcome, sc.Message, sc.Changes)
		}
		return nil
	})
	if got := s.sh("cat /etc/app.d/foreign"); got != "x" {
		t.Errorf("what is foreign is %q", got)
	}
	s.sh("rm /etc/app.d/foreign")
	s.run("systemctl", "restart", agentUnit) // nobody watches what is in a directory: it is seen when all is looked at
	s.converged(g)
	if left := s.temporary(); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

// readBytes is what the agent has read, as the kernel counts it.
func (s *site) readBytes() (n int64) {
	s.t.Helper()
	_, err := fmt.Sscan(s.sh("sed -n 's/^rchar: //p' /proc/"+s.agentPID()+"/io"), &n)
	s.must(err)
	return n
}

func encodedStatus(t *testing.T, st fleet.DeviceState) string {
	t.Helper()
	b, err := score.Encode(st.Status)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
