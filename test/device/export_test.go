//go:build device && linux

package device

import (
	"path"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/test/device/box"
)

// handMade is what people put on a device: a tree, a service with all that belongs to it, and a container.
const handMade = `
mkdir -p /etc/kiosk/sub /srv/web /etc/systemd/system/kiosk.service.d
echo 'url = https://example.org' >/etc/kiosk/kiosk.conf
ln -s ../kiosk.conf /etc/kiosk/sub/current; chown daemon:daemon /etc/kiosk/sub; chmod 2775 /etc/kiosk/sub
echo COLOUR=green >/etc/default/kiosk
printf '#!/bin/sh\nexec sleep infinity\n' >/usr/local/bin/kiosk; chmod 755 /usr/local/bin/kiosk
cat >/etc/systemd/system/kiosk.service <<END
[Unit]
Description=Kiosk

[Service]
ExecStart=/usr/local/bin/kiosk
EnvironmentFile=-/etc/default/kiosk
EnvironmentFile=-/etc/default/kiosk-that-is-not-there

[Install]
WantedBy=multi-user.target
END
printf '[Service]\nNice=5\n' >/etc/systemd/system/kiosk.service.d/nice.conf
echo hello >/srv/web/index.html
mkdir -p /etc/containers/systemd
cat >/etc/containers/systemd/web.container <<END
[Container]
Image=` + image + `
Exec=sleep infinity
Volume=/srv/web:/data:ro

[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload; systemctl enable --now kiosk.service; systemctl start web.service`

// What people made on a device by hand is exported as a manifest, which the device finds itself to be: nothing is to be
// done for it (G34, G36, X52, X54).
func TestExport(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	s.run("pibox-image")
	s.sh(handMade)
	for _, format := range []string{"yaml", "json"} {
		out := s.sh("continuo-agent export /etc/kiosk kiosk.service container:web -o " + format + " >/tmp/live; cat /tmp/live")
		for _, want := range []string{"/etc/default/kiosk", "/usr/local/bin/kiosk", "nice.conf", "/srv/web/index.html", "web.container", "kiosk.service", "web.service", "enabled", "running"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s is not in it:\n%s", want, out)
			}
		}
		if plan := s.sh("continuo-agent plan -f /tmp/live 2>&1 || echo it differs"); strings.Contains(plan, "it differs") {
			t.Errorf("%s: it is not what is there: %s\n%s", format, plan, out)
		}
	}
	for what, want := range map[string]string{"/etc/shadow": "(class)", "/usr/bin/env": "(class)", "no.service": "(missing)"} {
		if out := s.sh("continuo-agent export " + what + " 2>&1 && echo it was written || true"); !strings.Contains(out, want) || strings.Contains(out, "it was written") {
			t.Errorf("%s: %s", what, out)
		}
	}
}

// While somebody swaps a directory for a link and rewrites what is in it, nothing is exported that was not there, and nothing
// partial (X53).
func TestExportBesideAHostileProcess(t *testing.T) {
	t.Parallel()
	s := newSite(t, box.Options{})
	s.sh(`
		mkdir /srv/race /srv/other
		for f in a b c; do echo inside >/srv/race/$f.conf; echo elsewhere >/srv/other/$f.conf; done
		echo 'while [ ! -e /run/enough ]; do mv -T /srv/race /srv/aside; ln -s /srv/other /srv/race; rm /srv/race; mv -T /srv/aside /srv/race; echo INSIDE >/srv/race/a.conf; echo inside >/srv/race/a.conf; done' >/run/hostile
		systemd-run --quiet --unit=hostile sh /run/hostile`)
	out := s.sh("for i in $(seq 60); do continuo-agent export /srv/race -o json 2>/dev/null || true; echo ----; done; touch /run/enough")
	whole := 0
	for doc := range strings.SplitSeq(out, "----") {
		if doc = strings.TrimSpace(doc); doc == "" {
			continue // refused
		}
		whole++
		var m score.Manifest
		s.must(score.Decode([]byte(doc), &m))
		dir, text := "/srv/race", "inside\n"
		if _, is := m.Spec.Scores[len(m.Spec.Scores)-1].Spec.(score.Symlink); is { // it was a link then, and where it led to came with it
			dir, text = "/srv/other", "elsewhere\n"
		}
		files := 0
		for _, sc := range m.Spec.Scores {
			f, is := sc.Spec.(score.File)
			if !is {
				continue
			}
			files++
			begun := f.Path == "/srv/race/a.conf" && (f.Content == "" || f.Content == "INSIDE\n")
			if path.Dir(f.Path) != dir || f.Content != text && !begun {
				t.Errorf("%s holds %q", f.Path, f.Content)
			}
		}
		if files != 3 {
			t.Errorf("%d files were exported: %s", files, doc)
		}
	}
	if whole == 0 || whole == 60 {
		t.Errorf("%d of 60 were whole: nobody raced", whole)
	}
	t.Logf("%d of 60 exports were whole beside a hostile hand, the others were refused", whole)
}
