package export_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/export"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func reader(d *memory.Device) *export.Reader {
	return &export.Reader{Files: d.Snapshots(), Services: d.Services(), Teller: interpret.TellerOf(d)}
}

// exported exports what must be exportable.
func exported(t *testing.T, r *export.Reader, wanted ...string) export.Result {
	t.Helper()
	out, err := r.Export(t.Context(), "live", "pi-7", wanted)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range out.Manifest.Validate() {
		if p.Severity == score.Error {
			t.Errorf("the manifest is not valid: %v", p)
		}
	}
	return out
}

// refused wants a refusal with a finding that names path and from, and has code; what is returned is nothing.
func refused(t *testing.T, r *export.Reader, code export.Code, path, from string, wanted ...string) export.Finding {
	t.Helper()
	out, err := r.Export(t.Context(), "live", "pi-7", wanted)
	no, is := errors.AsType[*export.Refusal](err)
	if !is {
		t.Fatalf("%v gave %v and %s, want a refusal (%s, %s)", wanted, err, about(out.Manifest), path, code)
	}
	if len(out.Manifest.Spec.Scores) > 0 || out.Left != nil {
		t.Errorf("something partial was returned: %+v", out)
	}
	i := slices.IndexFunc(no.Findings, func(f export.Finding) bool { return f.Path == path && f.From == from && f.Code == code })
	if i < 0 {
		t.Fatalf("%v was refused by %v, want %s from %q: %s", wanted, no, path, from, code)
	}
	return no.Findings[i]
}

// about are the resources that the scores claim first.
func about(m score.Manifest) string {
	var out []string
	for _, s := range m.Spec.Scores {
		out = append(out, string(s.Spec.Claims()[0]))
	}
	return strings.Join(out, " ")
}

func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is\n%s, want\n%s", what, got, want)
	}
}

func TestExportTree(t *testing.T) { // G34
	d := memory.New()
	d.Put("/etc/app/app.conf", "a = 1\n")
	d.Put("/etc/app/motd~", "old")
	d.Put("/etc/app/app.pid", "12")
	d.Put("/etc/app/sub/empty.conf", "")
	d.Chmod("/etc/app/sub", 0o2755)
	d.Chown("/etc/app/sub", 1000, 4711)
	d.Symlink("app.conf", "/etc/app/current")
	out := exported(t, reader(d), "/etc/app")
	got, err := score.Encode(out.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "the manifest", string(got), `{"apiVersion":"continuo/v1","kind":"Manifest","metadata":{"name":"live"},"spec":{"target":{"device":"pi-7"},"scores":[`+
		`{"kind":"directory","id":"etc-app","spec":{"path":"/etc/app","mode":"0755","owner":"root","group":"root"}},`+
		`{"kind":"file","id":"etc-app-app.conf","after":["etc-app"],"spec":{"path":"/etc/app/app.conf","content":"a = 1\n","mode":"0644","owner":"root","group":"root"}},`+
		`{"kind":"symlink","id":"etc-app-current","after":["etc-app"],"spec":{"path":"/etc/app/current","target":"app.conf"}},`+
		`{"kind":"directory","id":"etc-app-sub","after":["etc-app"],"spec":{"path":"/etc/app/sub","mode":"2755","owner":"pi","group":"4711"}},`+
		`{"kind":"file","id":"etc-app-sub-empty.conf","after":["etc-app-sub"],"spec":{"path":"/etc/app/sub/empty.conf","owner":"root","group":"root","content":"","mode":"0644"}}]}}`)
	var left []string
	for _, f := range out.Left {
		left = append(left, f.Path)
	}
	want(t, "what was left", strings.Join(left, " "), "/etc/app/app.pid /etc/app/motd~")
	again := exported(t, reader(d), "file:/etc/app/sub", "/etc/app", "/etc/app/app.conf")
	want(t, "what is exported twice", about(again.Manifest), about(out.Manifest))
}

// Names that are alike in an id are told apart.
func TestExportIDs(t *testing.T) {
	d := memory.New()
	for _, p := range []string{"/etc/a-b.conf", "/etc/A/b.conf", "/etc/a/b.conf", "/etc/äöü.conf", "/etc/" + strings.Repeat("long", 60) + ".conf", "/etc/..conf"} {
		d.Put(p, "x")
	}
	out := exported(t, reader(d), "/etc/a-b.conf", "/etc/A/b.conf", "/etc/a/b.conf", "/etc/äöü.conf", "/etc/"+strings.Repeat("long", 60)+".conf", "/etc/..conf")
	if len(out.Manifest.Spec.Scores) != 6 {
		t.Errorf("got %s", about(out.Manifest))
	}
}

// Only what is versionable is exported; below a directory what comes and goes is left out, and what may hold a secret
// refuses all of it (X52).
func TestExportClasses(t *testing.T) {
	for p, code := range map[string]export.Code{
		"/etc/ssl/private/web.pem": export.CodeClass, "/etc/app/tls.key": export.CodeClass, "/etc/app/.env": export.CodeClass, "/etc/shadow": export.CodeClass, "/etc/continuo/agent.yaml": export.CodeClass,
		"/var/log/app.log": export.CodeClass, "/run/app.conf": export.CodeClass, "/etc/app.conf.bak": export.CodeClass, "/var/cache/app/x": export.CodeClass,
		"/usr/bin/app": export.CodeClass, "/etc/passwd": export.CodeClass, "/home/pi/notes": export.CodeClass, "/var/lib/app/data": export.CodeClass, "/proc/cpuinfo": export.CodeClass,
		"/etc/systemd/system/continuo-agent.service": export.CodeOwn, "/usr/local/bin/continuo-agent": export.CodeOwn,
	} {
		d := memory.New()
		d.Put(p, "[Service]\nExecStart=/bin/true\n")
		refused(t, reader(d), code, p, "", p)
	}
	for name, swept := range map[string]export.Code{
		"tls.key": export.CodeClass, ".env": export.CodeClass, "private/x": export.CodeClass, "lib.so": export.CodeClass,
		"x.bak": "", "x.pid": "", ".cache/x": "", "continuo-agent": "",
	} {
		d := memory.New()
		d.Put("/srv/app/app.conf", "a")
		d.Put("/srv/app/"+name, "b")
		if swept != "" {
			at := "/srv/app/" + name
			if name == "private/x" {
				at = "/srv/app/private"
			}
			refused(t, reader(d), swept, at, "", "/srv/app")
			continue
		}
		out := exported(t, reader(d), "/srv/app")
		if strings.Contains(about(out.Manifest), name) || !strings.Contains(about(out.Manifest), "app.conf") || len(out.Left) == 0 {
			t.Errorf("%s: exported %s, left %v", name, about(out.Manifest), out.Left)
		}
	}
}

// The types that no score can say, and what nobody can look into, refuse the selection that they are in (G36).
func TestExportTypes(t *testing.T) {
	for name, tt := range map[string]struct {
		code export.Code
		put  func(d *memory.Device, p string)
	}{
		"a pipe, a socket or a device": {export.CodeType, func(d *memory.Device, p string) { d.Special(p) }},
		"setuid":                       {export.CodeType, func(d *memory.Device, p string) { d.Put(p, "x"); d.Chmod(p, 0o4755) }},
		"setgid":                       {export.CodeType, func(d *memory.Device, p string) { d.Put(p, "x"); d.Chmod(p, 0o2755) }},
		"another name":                 {export.CodeType, func(d *memory.Device, p string) { d.Put("/etc/shadow", "x"); d.Link("/etc/shadow", p) }},
		"binary":                       {export.CodeUnscannable, func(d *memory.Device, p string) { d.Put(p, "\x7fELF\x00\x01") }},
		"no UTF-8":                     {export.CodeUnscannable, func(d *memory.Device, p string) { d.Put(p, "caf\xe9\n") }},
		"a mark of byte order":         {export.CodeUnscannable, func(d *memory.Device, p string) { d.Put(p, "\ufeffa\n") }},
		"an escape":                    {export.CodeUnscannable, func(d *memory.Device, p string) { d.Put(p, "\x1b[0m") }},
		"not for everybody":            {export.CodePrivate, func(d *memory.Device, p string) { d.Put(p, "x"); d.Chmod(p, 0o640) }},
		"below a closed directory":     {export.CodePrivate, func(d *memory.Device, p string) { d.Put(p, "x"); d.Chmod("/srv/app", 0o750) }},
		"unreadable": {export.CodeUnreadable, func(d *memory.Device, p string) {
			d.Put(p, "x")
			d.Fail(memory.OpContent, topology.Resource("file:"+p), topology.Faultf(topology.CodeIO, "input/output error"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d := memory.New()
			d.Put("/srv/app/a.conf", "a")
			tt.put(d, "/srv/app/b.conf")
			refused(t, reader(d), tt.code, "/srv/app/b.conf", "", "/srv/app")
			if tt.code == export.CodePrivate { // whoever names it knows what he does
				exported(t, reader(d), "/srv/app", "/srv/app/b.conf", "/srv/app/a.conf")
			} else {
				refused(t, reader(d), tt.code, "/srv/app/b.conf", "", "/srv/app/b.conf")
			}
		})
	}
	d := memory.New()
	d.Put("/srv/f", "x")
	d.Symlink("/srv", "/way")
	refused(t, reader(d), export.CodeType, "/way/f", "", "/way/f")
	refused(t, reader(d), export.CodeMissing, "/srv/no.conf", "", "/srv/no.conf")
	refused(t, reader(d), export.CodeUnscannable, "/srv/../etc", "", "/srv/../etc")
	refused(t, reader(d), export.CodeUnscannable, "/srv/caf\xe9.conf", "", "/srv/caf\xe9.conf")
}

// A device that does not answer is no refusal.
func TestExportOfADeadDevice(t *testing.T) {
	d := memory.New()
	d.Put("/srv/f", "x")
	d.Fail(memory.OpFile, "", topology.Faultf(topology.CodeTimeout, "no answer"))
	if _, err := reader(d).Export(t.Context(), "live", "pi-7", []string{"/srv/f"}); err == nil || topology.FaultOf(err).Code != topology.CodeTimeout {
		t.Errorf("got %v", err)
	}
}

// One more than each limit is refused, and the limit itself is not (G35).
func TestExportLimits(t *testing.T) {
	many := func(n, size int) *memory.Device {
		d := memory.New()
		for i := range n {
			d.Put(fmt.Sprintf("/srv/app/%04d.txt", i), strings.Repeat("a", size))
		}
		return d
	}
	for _, tt := range []struct {
		name string
		fits *memory.Device
		over *memory.Device
		code export.Code
		at   string
	}{
		{"bytes of a file", many(1, 1<<20), many(1, 1<<20+1), export.CodeTooLarge, "/srv/app/0000.txt"},
		{"things", many(4095, 1), many(4096, 1), export.CodeTooMany, "/srv/app/4095.txt"},
		{"bytes", many(16, 1<<20), func() *memory.Device { d := many(16, 1<<20); d.Put("/srv/app/0016.txt", "a"); return d }(), export.CodeTooMuch, "/srv/app/0016.txt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exported(t, reader(tt.fits), "/srv/app")
			refused(t, reader(tt.over), tt.code, tt.at, "", "/srv/app")
			if _, err := reader(tt.fits).Inventory(t.Context(), []string{"/srv/app"}); err != nil {
				t.Errorf("inventory: %v", err)
			}
			_, err := reader(tt.over).Inventory(t.Context(), []string{"/srv/app"})
			if no, is := errors.AsType[*export.Refusal](err); is != (tt.code != export.CodeTooLarge) || is && no.Findings[0].Code != tt.code {
				t.Errorf("inventory: %v", err)
			}
		})
	}
	d := many(5000, 0) // more than are looked at
	refused(t, reader(d), export.CodeTooMany, "/srv/app", "", "/srv/app")
}

// What refuses is told at once, and not all of it if it is much.
func TestExportTellsAll(t *testing.T) {
	d := memory.New()
	for i := range 30 {
		d.Put(fmt.Sprintf("/srv/app/%d.key", i), "x")
	}
	_, err := reader(d).Export(t.Context(), "live", "pi-7", []string{"/srv/app"})
	if no, is := errors.AsType[*export.Refusal](err); !is || len(no.Findings) != 20 {
		t.Errorf("got %v", err)
	}
	refused(t, reader(memory.New()), export.CodeMissing, "-", "", []string{}...)
}

const begin = "-----BEGIN " // apart, so that nobody takes it for a key

// Forms in which secrets are written in files. ☠ stands for the secret.
var shapes = []string{ // G61, X55
	"Authorization: Bearer ☠", "curl -H 'Authorization: Basic ☠' https://example.org", begin + "RSA PRIVATE KEY-----\n☠", begin + "OPENSSH PRIVATE KEY-----\n☠",
	"url = mqtt://user:☠@example.org", "DATABASE_URL=postgres://app:☠@192.0.2.1/app", "password=${DB_PASSWORD:-☠}", "PASS=${DB_PASSWORD-☠}", "Cookie: session=☠", "Set-Cookie: id=☠; Path=/",
	"token=☠", "api_key: ☠", "password ☠", "  \"client_secret\": \"☠\",", "<password>☠</password>", "Environment=MQTT_PASSWORD=☠", "--password ☠", "--api-key=☠", "wpa-psk ☠", "psk=\"☠\"",
	"https://hooks.slack.com/services/☠", "https://example.org/x?X-Amz-Signature=☠", "AWS_SECRET_ACCESS_KEY = ☠", "ghp_☠☠", "user:$6$salt$☠", "curl -u admin:☠ https://example.org",
}

func TestExportRefusesSecrets(t *testing.T) {
	const value = "hunter2correcthorse42"
	for _, shape := range shapes {
		text := strings.ReplaceAll(shape, "☠", value) + "\n"
		d := memory.New()
		d.Put("/srv/app/a.conf", "a\n")
		d.Put("/srv/app/b.conf", "# fine\n"+text)
		f := refused(t, reader(d), export.CodeSecret, "/srv/app/b.conf", "", "/srv/app")
		if strings.Contains(f.String(), value) || !strings.Contains(f.Why, "line 2") {
			t.Errorf("%q: told as %v", shape, f)
		}
	}
	for _, line := range []string{"password_file /etc/app/passwd", "token=${TOKEN}", "PasswordAuthentication no", "LoadCredential=psk:/etc/credstore/psk", "# password=x is read from a file"} {
		d := memory.New()
		d.Put("/srv/app/b.conf", line+"\n")
		exported(t, reader(d), "/srv/app")
	}
}

// scoresOf is the manifest as text.
func scoresOf(out export.Result) string {
	b, err := score.Encode(out.Manifest)
	if err != nil {
		panic(err)
	}
	return string(b)
}
