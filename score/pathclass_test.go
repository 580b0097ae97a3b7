package score_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func TestClassOfPath(t *testing.T) { // X52
	for class, paths := range map[score.PathClass]string{
		score.PathVersionable: "/etc/motd /etc/mosquitto/mosquitto.conf /etc/systemd/system/kiosk.service /etc/ssh/sshd_config /etc/ssh/ssh_host_ed25519_key.pub /home/pi/.ssh/authorized_keys " +
			"/boot/firmware/config.txt /usr/local/bin/kiosk /opt/app/app.yaml /srv/web/index.html /home/pi/.config/app/settings files/motd.txt kiosk.conf /etc/hosts /etc/containers/systemd/web.container",
		score.PathSecret: "/etc/ssh/ssh_host_ed25519_key /home/pi/.ssh/id_ed25519 /home/pi/.ssh/other /etc/continuo/secrets.env /etc/continuo/device.nk /etc/ssl/private/web.pem /etc/web/tls.key /etc/shadow /etc/wireguard/wg0.conf " +
			"/etc/NetworkManager/system-connections/home.nmconnection /etc/wpa_supplicant/wpa_supplicant.conf /srv/app/.env files/prod.env /home/pi/.netrc /etc/nginx/.htpasswd /home/pi/.aws/config /home/pi/.config/containers/auth.json files/credentials.json /opt/api_token",
		score.PathRuntime:     "/run/app.sock /var/log/syslog /var/lib/app/app.pid /etc/machine-id /etc/resolv.conf /tmp/x /opt/app/app.log /var/lib/continuo/ledger.0 /srv/app/db.lock",
		score.PathBackup:      "/etc/motd~ /etc/hosts.bak /etc/passwd- /etc/ssh/sshd_config.dpkg-old /etc/.motd.swp /var/backups/dpkg.status files/app.conf.orig /etc/tls.key.bak",
		score.PathCache:       "/var/cache/apt/pkgcache.bin /home/pi/.cache/x /opt/app/__pycache__/a.pyc app/node_modules/x/index.js",
		score.PathUnsupported: "/proc/cpuinfo /sys/class/leds/x /dev/sda /etc/passwd /etc/group /usr/bin/env /usr/lib/os-release /boot/firmware/kernel8.img /boot/firmware/bcm2711-rpi-4-b.dtb /lib/modules/x.ko",
		score.PathUnknown:     "/home/pi/notes /var/lib/app/data /mnt/disk/film.mkv files/large",
	} {
		for p := range strings.FieldsSeq(paths) {
			if got := score.ClassOfPath(p); got != class {
				t.Errorf("%s is %s, want %s", p, got, class)
			}
		}
	}
	if got := score.ClassOfPath("/etc/../home/pi/.ssh/id_rsa"); got != score.PathSecret {
		t.Errorf("around the corner it is %s", got)
	}
}
