package score

import (
	"path"
	"strings"
)

// A PathClass says what kind of file is at a path, as far as its name tells: whether it can be a part of what a fleet
// keeps in its repository.
type PathClass string

// Classes of paths.
const (
	PathVersionable PathClass = "versionable" // a configuration: it is kept in a repository, and taken over from a device
	PathSecret      PathClass = "secret"      // it holds keys or passwords: it stays where it is
	PathRuntime     PathClass = "runtime"     // a program writes it while it runs: a socket, a log, a state
	PathBackup      PathClass = "backup"      // a copy that an editor or a package manager left
	PathCache       PathClass = "cache"       // it is made again when it is gone
	PathUnsupported PathClass = "unsupported" // the kernel's, a package's, or that of accounts, which have other tools
	PathUnknown     PathClass = "unknown"
)

// pathRules are looked at in their order; the first that matches counts. A pattern that begins with '/' is a path and all
// below it, one that ends with '/' a folder anywhere, any other one a name, as path.Match has it.
var pathRules = []struct {
	class    PathClass
	patterns string
}{
	{PathUnsupported, "/proc /sys /dev"},
	{PathBackup, "*~ *.bak *.orig *.old *.save *.dpkg-* *.ucf-* *.rpmsave *.rpmnew .*.sw? *.swp *- /var/backups"},
	{PathVersionable, "*.pub authorized_keys known_hosts ssh_config sshd_config"},
	{PathSecret, "/etc/continuo /etc/credstore /etc/credstore.encrypted /etc/ssl/private /etc/wireguard /etc/openvpn/client /etc/openvpn/server " +
		"/etc/NetworkManager/system-connections /etc/wpa_supplicant /etc/iwd /var/lib/iwd /etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d " +
		"id_rsa id_dsa id_ecdsa id_ed25519 ssh_host_*_key *.key *.p12 *.pfx *.jks *.kdbx *.keytab *.nk *.creds *.seed *.token *.psk " +
		".env *.env .netrc .pgpass .my.cnf .htpasswd htpasswd *.htpasswd passwd.mosquitto mosquitto_passwd .git-credentials secrets.* credentials* *_token auth.json kubeconfig .ssh/ .gnupg/ .aws/ private/"},
	{PathUnsupported, "/etc/passwd /etc/group /etc/subuid /etc/subgid /etc/fstab.d *.so *.so.* vmlinuz* initrd* initramfs* kernel*.img *.dtb *.ko *.efi"},
	{PathRuntime, "/run /var/run /tmp /var/tmp /var/log /var/spool /var/lock /var/lib/systemd /var/lib/dbus /var/lib/NetworkManager /var/lib/containers /var/lib/continuo " +
		"/etc/mtab /etc/machine-id /etc/resolv.conf /etc/adjtime *.pid *.sock *.lock *.log *.db-wal *.db-shm"},
	{PathCache, "/var/cache /var/lib/apt .cache/ __pycache__/ node_modules/ *.pyc"},
	{PathUnsupported, "/bin /sbin /lib /usr/bin /usr/sbin /usr/lib /usr/share /usr/include /usr/libexec /boot/overlays"},
	{PathVersionable, "/etc /usr/local /boot /opt /srv .config/ *.conf *.cfg *.ini *.toml *.yaml *.yml *.json *.xml *.service *.timer *.socket *.path *.container *.rules *.list *.txt *.md *.sh *.py"},
}

// ClassOfPath is the class of a path, or of the name of a file in a repository.
func ClassOfPath(p string) PathClass {
	p = path.Clean(p)
	for _, rule := range pathRules {
		for pattern := range strings.FieldsSeq(rule.patterns) {
			if pathMatches(pattern, p) {
				return rule.class
			}
		}
	}
	return PathUnknown
}

func pathMatches(pattern, p string) bool {
	switch {
	case strings.HasPrefix(pattern, "/"):
		return p == pattern || strings.HasPrefix(p, pattern+"/")
	case strings.HasSuffix(pattern, "/"):
		return strings.Contains("/"+p, "/"+pattern)
	}
	ok, err := path.Match(pattern, path.Base(p))
	return ok && err == nil
}
