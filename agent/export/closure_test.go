package export_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/export"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const unitDir = "/etc/systemd/system/"

// system is a device with a few programs of its system.
func system(files ...string) *memory.Device {
	d := memory.New()
	for _, p := range []string{"/usr/bin/kiosk", "/usr/bin/env", "/usr/share/zoneinfo/Europe/Berlin"} {
		d.Put(p, "\x7fELF")
	}
	d.Symlink("usr/bin", "/bin")
	for i := 0; i+1 < len(files); i += 2 {
		if to, is := strings.CutPrefix(files[i+1], "-> "); is {
			d.Symlink(to, files[i])
		} else if files[i+1] == "/" {
			d.Mkdir(files[i])
		} else {
			d.Put(files[i], files[i+1])
		}
	}
	return d
}

func unit(lines ...string) string { return "[Service]\n" + strings.Join(lines, "\n") + "\n" }

const plain = "[Service]\nExecStart=/usr/bin/kiosk\n"

// What a thing refers to comes with it (X54).
func TestClosureBrings(t *testing.T) {
	k := unitDir + "kiosk.service"
	for name, tt := range map[string]struct {
		files []string
		want  string // besides the unit, or the link, that is exported
		left  string
	}{
		"an environment file":           {[]string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/default/kiosk"), "/etc/default/kiosk", "A=1\n"}, "file:/etc/default/kiosk", ""},
		"an optional one":               {[]string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=-/etc/default/kiosk"), "/etc/default/kiosk", "A=1\n"}, "file:/etc/default/kiosk", ""},
		"an optional one that is gone":  {[]string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=-/etc/default/kiosk")}, "", ""},
		"an optional one that passes":   {[]string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=-/run/kiosk.conf"), "/run/kiosk.conf", "A=1\n"}, "", "/run/kiosk.conf"},
		"one that is taken back":        {[]string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/no", "EnvironmentFile=")}, "", ""},
		"a specifier":                   {[]string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=%E/default/%p"), "/etc/default/kiosk", "A=1\n"}, "file:/etc/default/kiosk", ""},
		"a line that goes on":           {[]string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=\\", "# in between", "/etc/default/kiosk"), "/etc/default/kiosk", "A=1\n"}, "file:/etc/default/kiosk", ""},
		"a program":                     {[]string{k, unit("ExecStart=-/usr/local/bin/kiosk --quiet"), "/usr/local/bin/kiosk", "#!/bin/sh\n"}, "file:/usr/local/bin/kiosk", ""},
		"a program with all prefixes":   {[]string{k, unit(`ExecStart=@-:"/opt/kiosk/run" kiosk`, "ExecStartPre=+/opt/kiosk/pre ; ;"), "/opt/kiosk/run", "#!/bin/sh\n", "/opt/kiosk/pre", "#!/bin/sh\n"}, "file:/opt/kiosk/pre file:/opt/kiosk/run", ""},
		"two programs":                  {[]string{k, unit("ExecStart=/opt/a x ; /opt/b", "Type=oneshot"), "/opt/a", "#!/bin/sh\n", "/opt/b", "#!/bin/sh\n"}, "file:/opt/a file:/opt/b", ""},
		"a script in quotes":            {[]string{k, unit(`ExecStart=/usr/bin/env sh -c "a ; b 'c' \" ; d" ; "/opt/my run" x`, "Type=oneshot"), "/opt/my run", "#!/bin/sh\n"}, "file:/opt/my run", ""},
		"a program by its name":         {[]string{k, unit("ExecStart=kiosk.sh"), "/usr/local/bin/kiosk.sh", "#!/bin/sh\n"}, "file:/usr/local/bin/kiosk.sh", ""},
		"a program that may be missing": {[]string{k, unit("ExecStart=/usr/bin/kiosk", "ExecStopPost=-/opt/no")}, "", ""},
		"a program of the system":       {[]string{k, unit("ExecStart=/bin/kiosk")}, "", ""},
		"a credential":                  {[]string{k, unit("ExecStart=/usr/bin/kiosk", "LoadCredential=conf:/etc/kiosk/conf", "LoadCredential=other"), "/etc/kiosk/conf", "A=1\n"}, "file:/etc/kiosk/conf", ""},
		"a credential that is a secret": {[]string{k, unit("ExecStart=/usr/bin/kiosk", "LoadCredential=psk:/etc/credstore/psk"), "/etc/credstore/psk", "x"}, "", "/etc/credstore/psk"},
		"a drop-in":                     {[]string{k, plain, k + ".d/10-env.conf", "[Service]\nEnvironmentFile=/etc/default/kiosk\n", "/etc/default/kiosk", "A=1\n"}, "file:/etc/default/kiosk file:" + k + ".d/10-env.conf", ""},
		"a drop-in that takes back":     {[]string{k, unit("ExecStart=/opt/no"), k + ".d/10.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/kiosk\n"}, "file:" + k + ".d/10.conf", ""},
		"a unit that it needs":          {[]string{k, "[Unit]\nRequires=other.service x.mount dev-sda.device\n" + plain, unitDir + "other.service", plain}, "unit:other.service", ""},
		"a unit that helps":             {[]string{k, "[Unit]\nWants=other.service missing.service\nAfter=third.service\n" + plain, unitDir + "other.service", plain}, "unit:other.service", ""},
		"units that need each other":    {[]string{k, "[Unit]\nRequires=other.service\n" + plain, unitDir + "other.service", "[Unit]\nBindsTo=kiosk.service\n" + plain}, "unit:other.service", ""},
		"a unit of the system":          {[]string{k, "[Unit]\nRequires=dbus.socket\n" + plain, "/usr/lib/systemd/system/dbus.socket", "[Socket]\n"}, "", ""},
		"a container that it needs":     {[]string{k, "[Unit]\nRequires=web.service\n" + plain, quadlets + "web.container", "[Container]\nImage=example.org/web:1\n"}, "file:" + quadlets + "web.container", ""},
		"the agent":                     {[]string{k, "[Unit]\nRequires=continuo-agent.service\n" + plain}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := system(tt.files...)
			out := exported(t, reader(d), tt.files[0])
			got := strings.TrimSpace(strings.ReplaceAll(" "+about(out.Manifest)+" ", " unit:kiosk.service ", " "))
			want(t, "what comes with it", got, tt.want)
			var left []string
			for _, f := range out.Left {
				left = append(left, f.Path)
			}
			want(t, "what stays", strings.Join(left, " "), tt.left)
			s := out.Manifest.Spec.Scores[len(out.Manifest.Spec.Scores)-1]
			for _, other := range out.Manifest.Spec.Scores {
				if _, is := other.Spec.(score.Service); is && other.ID == "kiosk.service" {
					s = other
				}
			}
			if strings.HasPrefix(tt.want, "file:/etc/default") && (len(s.After) == 0 || s.After[0] != "etc-default-kiosk") {
				t.Errorf("the service comes after %v", s.After)
			}
		})
	}
}

const quadlets = "/etc/containers/systemd/"

func TestClosureOfOthers(t *testing.T) {
	web := quadlets + "web.container"
	container := func(lines ...string) string {
		return "[Container]\nImage=example.org/web:1\n" + strings.Join(lines, "\n") + "\n"
	}
	for name, tt := range map[string]struct {
		files []string
		want  string
		left  string
	}{
		"a link":                  {[]string{"/etc/a", "-> /opt/b.conf", "/opt/b.conf", "b"}, "file:/etc/a file:/opt/b.conf", ""},
		"a link beside":           {[]string{"/etc/app/a", "-> ../b.conf", "/etc/b.conf", "b"}, "file:/etc/app/a file:/etc/b.conf", ""},
		"links to links":          {[]string{"/etc/a", "-> b", "/etc/b", "-> c.conf", "/etc/c.conf", "c"}, "file:/etc/a file:/etc/b file:/etc/c.conf", ""},
		"links in a circle":       {[]string{"/etc/a", "-> b", "/etc/b", "-> a"}, "file:/etc/a file:/etc/b", ""},
		"a link to a directory":   {[]string{"/etc/a", "-> /opt/app/", "/opt/app/x.conf", "x"}, "file:/etc/a file:/opt/app file:/opt/app/x.conf", ""},
		"a link into the system":  {[]string{"/etc/localtime", "-> /usr/share/zoneinfo/Europe/Berlin"}, "file:/etc/localtime", ""},
		"a link to a system link": {[]string{"/etc/a", "-> /bin/env"}, "file:/etc/a", ""},
		"a mask":                  {[]string{unitDir + "x.service", "-> /dev/null"}, "file:" + unitDir + "x.service", ""},
		"a unit that is linked":   {[]string{unitDir + "x.service", "-> /opt/x.service", "/opt/x.service", unit("ExecStart=/opt/run"), "/opt/run", "#!/bin/sh\n"}, "file:" + unitDir + "x.service file:/opt/run file:/opt/x.service", ""},
		"a timer":                 {[]string{unitDir + "x.timer", "[Timer]\nOnCalendar=daily\n", unitDir + "x.service", plain}, "unit:x.service unit:x.timer", ""},
		"a timer with a unit":     {[]string{unitDir + "x.timer", "[Timer]\nOnCalendar=daily\nUnit=y.service\n", unitDir + "y.service", plain}, "unit:x.timer unit:y.service", ""},
		"a drop-in by itself":     {[]string{unitDir + "ssh.service.d/10.conf", unit("EnvironmentFile=/etc/default/x"), "/etc/default/x", "A=1\n"}, "file:/etc/default/x file:" + unitDir + "ssh.service.d/10.conf", ""},
		"bound directories":       {[]string{web, container("Volume=/srv/web:/data:ro", "Volume=/var/lib/web:/state", "Volume=named:/x", "Volume=/run/dbus:/run/dbus"), "/srv/web/index.html", "x", "/var/lib/web/db", "\x00", "/run/dbus", "/"}, "file:" + web + " file:/srv/web file:/srv/web/index.html", "/var/lib/web /run/dbus"},
		"a mount":                 {[]string{web, container("Mount=type=bind,source=/srv/web,target=/data"), "/srv/web/index.html", "x"}, "file:" + web + " file:/srv/web file:/srv/web/index.html", ""},
		"an environment file":     {[]string{web, container("EnvironmentFile=web.conf"), quadlets + "web.conf", "A=1\n"}, "file:" + quadlets + "web.conf file:" + web, ""},
		"a volume and a network":  {[]string{web, container("Volume=data.volume:/data", "Network=back.network:ip=192.0.2.1", "Network=host"), quadlets + "data.volume", "[Volume]\n", quadlets + "back.network", "[Network]\n"}, "file:" + quadlets + "back.network file:" + quadlets + "data.volume file:" + web, ""},
		"a pod":                   {[]string{web, container("Pod=p.pod"), quadlets + "p.pod", "[Pod]\nVolume=/srv/web:/x\n", "/srv/web", "/"}, "file:" + quadlets + "p.pod file:" + web + " file:/srv/web", ""},
		"drop-ins of a container": {[]string{web, container(), web + ".d/10.conf", "[Container]\nEnvironmentFile=/etc/default/web\n", "/etc/default/web", "A=1\n"}, "file:" + web + " file:" + web + ".d/10.conf file:/etc/default/web", ""},
		"a play":                  {[]string{quadlets + "app.kube", "[Kube]\nYaml=app.yaml\n", quadlets + "app.yaml", "kind: Pod\n"}, "file:" + quadlets + "app.kube file:" + quadlets + "app.yaml", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := system(tt.files...)
			out := exported(t, reader(d), tt.files[0])
			want(t, "what is exported", about(out.Manifest), tt.want)
			var left []string
			for _, f := range out.Left {
				left = append(left, f.Path)
			}
			want(t, "what stays", strings.Join(left, " "), tt.left)
		})
	}
}

// What is missing, or may not be exported, refuses what refers to it, by name (X54).
func TestClosureRefuses(t *testing.T) {
	k, web := unitDir+"kiosk.service", quadlets+"web.container"
	container := func(lines ...string) string {
		return "[Container]\nImage=example.org/web:1\n" + strings.Join(lines, "\n") + "\n"
	}
	for name, tt := range map[string]struct {
		code  export.Code
		path  string // of b
		files []string
	}{
		"an environment file is gone":       {export.CodeMissing, "/etc/no", []string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/no")}},
		"it is a secret":                    {export.CodeOutside, "/etc/kiosk/prod.env", []string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/kiosk/prod.env"), "/etc/kiosk/prod.env", "x"}},
		"also if it is optional":            {export.CodeOutside, "/etc/kiosk/prod.env", []string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=-/etc/kiosk/prod.env"), "/etc/kiosk/prod.env", "x"}},
		"it is of a runtime":                {export.CodeOutside, "/run/kiosk/env", []string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/run/kiosk/env"), "/run/kiosk/env", "x"}},
		"it is in a home":                   {export.CodeOutside, "/home/pi/env", []string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/home/pi/env"), "/home/pi/env", "x"}},
		"it has a secret":                   {export.CodeSecret, "/etc/default/kiosk", []string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/default/kiosk"), "/etc/default/kiosk", "MQTT_PASSWORD=correcthorse\n"}},
		"the program is gone":               {export.CodeMissing, "/opt/no", []string{k, unit("ExecStart=/opt/no")}},
		"the program of the system is gone": {export.CodeMissing, "/usr/bin/no", []string{k, unit("ExecStart=/usr/bin/no")}},
		"the program is binary":             {export.CodeUnscannable, "/opt/run", []string{k, unit("ExecStart=/opt/run"), "/opt/run", "\x7fELF\x00"}},
		"a pipe":                            {export.CodeType, "/opt/pipe", []string{k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/opt/pipe")}},
		"a credential is gone":              {export.CodeMissing, "/etc/credstore/psk", []string{k, unit("ExecStart=/usr/bin/kiosk", "LoadCredential=psk:/etc/credstore/psk")}},
		"a unit is gone":                    {export.CodeMissing, unitDir + "other.service", []string{k, "[Unit]\nRequires=other.service\n" + plain}},
		"the unit of a timer is gone":       {export.CodeMissing, unitDir + "kiosk.service", []string{unitDir + "kiosk.timer", "[Timer]\nOnCalendar=daily\n"}},
		"a link to nothing":                 {export.CodeMissing, "/etc/no", []string{"/etc/a", "-> no"}},
		"a link out":                        {export.CodeOutside, "/home/pi/x", []string{"/etc/a", "-> /home/pi/x", "/home/pi/x", "x"}},
		"a link to a key":                   {export.CodeOutside, "/etc/ssl/private/k", []string{"/etc/a", "-> ssl/private/k", "/etc/ssl/private/k", "x"}},
		"a link to nothing of the system":   {export.CodeMissing, "/usr/share/no", []string{"/etc/a", "-> /usr/share/no"}},
		"a volume is gone":                  {export.CodeMissing, "/srv/no", []string{web, container("Volume=/srv/no:/x")}},
		"data is gone":                      {export.CodeMissing, "/var/lib/no", []string{web, container("Volume=/var/lib/no:/x")}},
		"a volume of keys":                  {export.CodeOutside, "/etc/ssl/private", []string{web, container("Volume=/etc/ssl/private:/x"), "/etc/ssl/private", "/"}},
		"a network is gone":                 {export.CodeMissing, quadlets + "no.network", []string{web, container("Network=no.network")}},
		"in a directory that it needs":      {export.CodeOutside, "/srv/web/tls.key", []string{web, container("Volume=/srv/web:/x"), "/srv/web/tls.key", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := system(tt.files...)
			if tt.path == "/opt/pipe" {
				d.Special(tt.path)
			}
			refused(t, reader(d), tt.code, tt.path, tt.files[0], tt.files[0])
		})
	}
	for name, files := range map[string][]string{ // what only the program of the file can find
		"a pattern":              {k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/kiosk/*.conf")},
		"an unknown instance":    {unitDir + "kiosk@.service", unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/%i.conf")},
		"a relative path":        {k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=etc/x")},
		"an unknown specifier":   {k, unit("ExecStart=/usr/bin/kiosk", "EnvironmentFile=/etc/%m")},
		"an escape":              {k, unit(`ExecStart="/opt/a\x20b"`)},
		"a quote without an end": {k, unit(`ExecStart="/opt/a`)},
		"a quote in between":     {k, unit(`ExecStart=/opt/a"b" c`)},
		"nothing to start":       {k, unit(`ExecStart=@`)},
		"an option of podman":    {web, container("PodmanArgs=--volume=/srv:/x")},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, reader(system(files...)), export.CodeUnclear, files[0], "", files[0])
		})
	}
	d := system("/etc/a", "-> link/../b.conf", "/etc/b.conf", "b")
	refused(t, reader(d), export.CodeUnclear, "/etc/a", "", "/etc/a")
}
