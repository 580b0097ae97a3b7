//go:build device && linux

package device

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// traces are the forms in which a secret would be found: itself, in base64 and hex, and its digest.
func traces(secret string) []string {
	sum := sha256.Sum256([]byte(secret))
	out := []string{secret, hex.EncodeToString([]byte(secret)), hex.EncodeToString(sum[:])}
	for _, pad := range []string{"", "x", "xx"} {
		b := base64.StdEncoding.EncodeToString([]byte(pad + secret))
		out = append(out, b[4:len(b)-4])
	}
	return out
}

// Secrets of a device, in a file and as credentials of the agent's unit, reach the file and the container that name them
// and no other place: no store, log, status, plan, receipt, unit file, definition, temporary file, command line or
// environment of the agent. One that is rotated reaches what uses it by itself, and nothing else is touched (G58, G59;
// cases "Secrets").
func TestSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	s.run("pibox-image")
	const first, second, sealed, plain = "canary-Rk7mQ2xW", "canary-Vn4tB9zE", "canary-Hd6yC1aU", "canary-Sg3pL8fJ"
	put := func(db string) {
		t.Helper()
		s.sh(fmt.Sprintf(`umask 077; printf "db='%s'\n" >/etc/continuo/new; mv /etc/continuo/new /etc/continuo/secrets.env`, db))
	}
	put(first)
	s.sh(`umask 077; mkdir -p /etc/credstore /etc/credstore.encrypted /etc/systemd/system/continuo-agent.service.d
		printf ` + plain + ` >/etc/credstore/token
		printf ` + sealed + ` | systemd-creds encrypt --with-key=host --name=tls - /etc/credstore.encrypted/tls
		cat >/etc/systemd/system/continuo-agent.service.d/secrets.conf <<EOF
[Service]
ExecStart=
ExecStart=/usr/local/bin/continuo-agent run --config /etc/continuo/agent.yaml --log-level debug
LoadCredential=token:/etc/credstore/token
LoadCredentialEncrypted=tls:/etc/credstore.encrypted/tls
EOF
		systemctl daemon-reload`)
	s.control(fleet.ServeOptions{})
	s.run("systemctl", "start", agentUnit)

	web := score.Container{Name: "web", Image: image, Command: []string{"sleep", "infinity"},
		Env:     map[string]score.Value{"DB_PASSWORD": score.FromSecret("db")},
		Secrets: []score.SecretFile{{Secret: "tls", Target: "/run/secrets/tls.key"}, {Secret: "token", Target: "/run/secrets/token"}}}
	other := score.Container{Name: "other", Image: image, Command: []string{"sleep", "infinity"}, Env: map[string]score.Value{"TZ": score.Text("UTC")},
		Secrets: []score.SecretFile{{Secret: "token", Target: "/run/secrets/token"}}}
	conf := score.File{Path: "/etc/kiosk/app.conf", Mode: 0o600, Template: &score.Template{Text: "password = {{ secret \"db\" }}\n"}}
	g := s.publish(score.Score{ID: "web", Spec: web}, score.Score{ID: "other", Spec: other}, score.Score{ID: "conf", Spec: conf},
		file("motd", "/etc/kiosk/motd", "Welcome.\n"))
	s.converged(g)
	const reach = `cat /etc/kiosk/app.conf; podman exec web sh -c 'echo $DB_PASSWORD; cat /run/secrets/tls.key; echo; cat /run/secrets/token'`
	if got, want := s.sh(reach), "password = "+first+"\n"+first+"\n"+sealed+"\n"+plain; got != want {
		t.Errorf("what uses them has\n%s\nwant\n%s", got, want)
	}
	if got := s.run("continuo-agent", "secrets"); strings.Contains(got, "canary") || !strings.Contains(got, "/run/credentials/continuo-agent.service/tls") {
		t.Errorf("continuo-agent secrets says\n%s", got)
	}

	// Rotated: what uses it follows, and the rest is as it was.
	const untouched = `podman inspect other --format '{{.Id}} {{.State.StartedAt}}'; stat -c '%i %y' /etc/kiosk/motd; systemctl show -P InvocationID other.service`
	before := s.sh(untouched)
	put(second)
	took := box.Until(t, patience, "the file and the container follow", func() error {
		got, err := s.Exec(t.Context(), "sh", "-c", reach)
		if err != nil || strings.Count(got, second) != 2 {
			return fmt.Errorf("they have\n%s (%v)", got, err)
		}
		return nil
	})
	t.Logf("number: a rotated secret is in what uses it after %s, of which the container had 10 s to end", took)
	if after := s.sh(untouched); after != before {
		t.Errorf("what does not use it was\n%s\nand is\n%s", before, after)
	}
	s.converged(g)
	s.rotated("web", "conf")

	// What every verb says, and what a person does to what holds a secret.
	var said bytes.Buffer
	say := func(v any) {
		t.Helper()
		s.must(json.NewEncoder(&said).Encode(v))
	}
	say(s.ask(interpret.Operation{Verb: interpret.VerbPlan}))
	s.sh("echo edited >>/etc/kiosk/app.conf")
	box.Until(t, patience, "the edit is undone", func() error {
		_, err := s.Exec(t.Context(), "sh", "-c", "! grep -q edited /etc/kiosk/app.conf")
		return err
	})
	say(s.state())
	said.WriteString(s.sh("continuo-agent status -o json; continuo-agent plan -o json; continuo-agent inventory; continuo-agent receipts -o json; continuo-agent secrets -o json"))

	// Others may read it: it is used no more, and said why.
	s.sh("chmod 0644 /etc/continuo/secrets.env; rm /etc/kiosk/app.conf")
	s.until("the file of secrets is refused", func(st fleet.DeviceState) error {
		sc, _ := st.Score(manifestName, "conf")
		if sc.Code != "secret_unavailable" || !strings.Contains(sc.Message, "its mode is 0644 and must be 0600") {
			return fmt.Errorf("it is %s %s: %s", sc.Outcome, sc.Code, sc.Message)
		}
		return nil
	})
	say(s.state())
	s.sh("chmod 0600 /etc/continuo/secrets.env")
	s.converged(g)

	var forms []string
	for _, c := range []string{first, second} { // the text that has it: its plain digest could be guessed from
		forms = append(forms, traces("password = " + c + "\n")[2])
	}
	for _, c := range []string{first, second, sealed, plain} {
		forms = append(forms, traces(c)...)
	}
	for _, f := range forms {
		if strings.Contains(said.String(), f) {
			t.Errorf("what the device says holds %s", f)
		}
	}
	s.PutFile("/dev/shm/forms", []byte(strings.Join(forms, "\n")+"\n"), 0o644)
	// Its owner put it into these, the score into the file, and podman and its runtime keep what containers use: for root alone.
	found := s.sh(`journalctl --sync
		grep -rlaFf /dev/shm/forms / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev 2>/dev/null | grep -vxF -e /etc/continuo/secrets.env -e /etc/kiosk/app.conf -e /etc/credstore/token |
			grep -v -e ^/var/lib/containers/ -e ^/run/containers/ -e ^/run/crun/ -e ^/run/credentials/continuo-agent.service/ || true
		! journalctl -o export --no-pager | grep -aqFf /dev/shm/forms || echo the journal
		! systemctl show '*' --all 2>/dev/null | grep -aqFf /dev/shm/forms || echo a unit
		! podman inspect web other | grep -aqFf /dev/shm/forms || echo an inspection of a container
		pid=$(systemctl show -P MainPID continuo-agent)
		grep -laFf /dev/shm/forms /proc/[0-9]*/cmdline /proc/$pid/environ /proc/1/environ 2>/dev/null || true
		awk '/Max core file size/ && $5 != 0 {print "the agent may dump core"}' /proc/$pid/limits
		setpriv --reuid=65534 --regid=65534 --clear-groups grep -rlaFf /dev/shm/forms / --exclude-dir=proc --exclude-dir=sys --exclude-dir=dev 2>/dev/null || true`)
	if found != "" {
		t.Errorf("a secret, or a digest of it, is in\n%s", found)
	}
}

// rotated checks what the fleet was told of a secret that got another value: the cause of what was done to the scores that
// use it is that, and no drift, and of contents nothing but keyed digests was told.
func (s *site) rotated(ids ...score.ID) {
	s.t.Helper()
	told := map[score.ID]bool{}
	box.Until(s.t, patience, "the fleet is told", func() error {
		all, err := s.fleet.History(s.t.Context(), s.id, 0)
		if err != nil {
			return err
		}
		for _, r := range all {
			for _, a := range r.Actions {
				if a.Cause == interpret.CauseDrift {
					s.t.Fatalf("%s was changed as drift: %+v", a.Score, a)
				}
				if a.Cause != interpret.CauseSecret {
					continue
				}
				if told[a.Score] = true; !strings.Contains(fmt.Sprint(a.Changes), interpret.Keyed) && a.Kind == score.KindFile || a.Diff != "" {
					s.t.Fatalf("what is told of %s is %+v", a.Score, a)
				}
			}
		}
		if len(told) != len(ids) {
			return fmt.Errorf("changed for a secret: %v, want %v; of %d receipts", told, ids, len(all))
		}
		return nil
	})
	for _, id := range ids {
		if !told[id] {
			s.t.Errorf("nothing is told of %s", id)
		}
	}
}

// A content that is too large for a document is stored by its digest, fetched before anything is touched, and goes on
// where it ended when the line or the agent breaks.
func TestLargeContent(t *testing.T) {
	t.Parallel()
	s := online(t, box.Options{})
	content := bytes.Repeat([]byte("0123456789abcdef"), 2<<20) // 32 MiB
	ref, err := s.fleet.PutBlob(t.Context(), bytes.NewReader(content))
	s.must(err)
	large := score.File{Path: "/srv/large", Mode: 0o644, Blob: &ref}
	s.connected()
	g := s.publish(score.Score{ID: "large", Spec: large}, file("motd", "/etc/kiosk/motd", "Welcome.\n"))
	s.run("systemctl", "kill", "-s", "KILL", agentUnit)
	s.converged(g)
	if got := s.sh("sha256sum </srv/large; ls /var/lib/continuo/blobs; stat -c %a /var/lib/continuo/blobs /var/lib/continuo/blobs/*"); got != ref.SHA256+"  -\n"+ref.SHA256+"\n700\n600" {
		t.Errorf("the device has\n%s", got)
	}
	// Without its fleet it puts right what somebody broke.
	s.Cut()
	s.sh("echo broken >/srv/large")
	box.Until(t, patience, "it is whole again", func() error {
		got, err := s.Exec(t.Context(), "sha256sum", "/srv/large")
		if err != nil || !strings.HasPrefix(got, ref.SHA256) {
			return fmt.Errorf("%s (%v)", got, err)
		}
		return nil
	})
	s.Heal()
	s.converged(g)
	// What nothing needs any more goes.
	g = s.publish(file("motd", "/etc/kiosk/motd", "Welcome.\n"))
	s.converged(g)
	box.Until(t, patience, "the content is gone", func() error {
		got, err := s.Exec(t.Context(), "ls", "/var/lib/continuo/blobs")
		if err != nil || got != "" {
			return fmt.Errorf("%s (%v)", got, err)
		}
		return nil
	})
}
