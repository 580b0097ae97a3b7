package score_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// TestFileProblems is the table of what files, directories, links and hosts say about specs.
func TestFileProblems(t *testing.T) { // H50, K16, issue 4: bad input; cases 1, 147
	file := func(edit func(*score.File)) score.Spec {
		f := score.File{Path: "/etc/f", Mode: 0o640}
		edit(&f)
		return f
	}
	dir := func(edit func(*score.Directory)) score.Spec {
		d := score.Directory{Path: "/srv/d", Mode: 0o755}
		edit(&d)
		return d
	}
	link := func(edit func(*score.Symlink)) score.Spec {
		l := score.Symlink{Path: "/srv/l", Target: "/srv/d"}
		edit(&l)
		return l
	}
	hosts := func(entries ...score.HostEntry) score.Spec { return score.Hosts{Entries: entries} }
	text := func(s string) *score.Template {
		return &score.Template{Text: s, Vars: map[string]string{"url": "x"}}
	}
	blob := &score.BlobRef{SHA256: strings.Repeat("0a", 32), Size: 1}
	const agents = "belongs to the agent itself"
	tests := []struct {
		spec score.Spec
		want []string // nil: none
	}{
		{file(func(f *score.File) { f.Content = "x" }), nil},
		{file(func(f *score.File) {}), nil}, // empty, and said so
		{file(func(f *score.File) { f.ContentFrom = "files/motd"; f.Create = score.CreateOnce }), nil},
		{file(func(f *score.File) { f.Template = text("{{ .vars.url }}") }), nil},
		{file(func(f *score.File) { f.Blob = blob }), nil},
		{file(func(f *score.File) { f.AttributesOnly = true }), nil},
		{file(func(f *score.File) { f.AttributesOnly, f.Mode, f.Owner = true, 0, "root" }), nil},
		{file(func(f *score.File) { f.State, f.Mode = score.Absent, 0 }), nil},
		{file(func(f *score.File) { f.State, f.Content = score.Absent, "x" }), nil},
		{file(func(f *score.File) { f.Content, f.Blob = "x", blob }), []string{"/blob: the content is given twice: by content and by blob"}},
		{file(func(f *score.File) { f.ContentFrom, f.Template = "a", text("") }), []string{"/template: the content is given twice: by contentFrom and by template"}},
		{file(func(f *score.File) { f.Content, f.AttributesOnly = "x", true }), []string{"/content: attributesOnly says that the content is not managed: leave content out, or attributesOnly"}},
		{file(func(f *score.File) { f.AttributesOnly, f.Mode = true, 0 }), []string{"/attributesOnly: attributesOnly manages nothing: give a mode, an owner or a group"}},
		{file(func(f *score.File) { f.AttributesOnly, f.Create = true, score.CreateOnce }), []string{"/create: create: once writes a content, and attributesOnly says that none is managed"}},
		{file(func(f *score.File) { f.State = "gone" }), []string{`/state: unknown state "gone"`}},
		{file(func(f *score.File) { f.Create = "onec" }), []string{`/create: unknown create "onec", did you mean "once"?`}},
		{file(func(f *score.File) { f.Normalize = []score.Normalization{"clrf", "crlf", "crlf"} }),
			[]string{`/normalize/0: unknown normalization "clrf", did you mean "crlf"?`, "/normalize/2: crlf is listed twice"}},
		{file(func(f *score.File) { f.Blob, f.Normalize = blob, []score.Normalization{score.NormalizeCRLF} }), []string{"/normalize: normalize is for texts: for content and template"}},
		{file(func(f *score.File) { f.Blob = &score.BlobRef{SHA256: "AA", Size: -1} }), []string{
			`/blob/sha256: sha256 "AA" must be the digest of the content: 64 digits of lower-case hex; sha256sum tells it`,
			"/blob/size: size is -1 bytes, a content has 0 to 1073741824"}},
		{file(func(f *score.File) { f.ContentFrom = "../motd" }), []string{`/contentFrom: contentFrom "../motd" must be the path of a file from the folder of the manifest, such as files/motd: no '..', no '/' at its start`}},
		{file(func(f *score.File) { f.Template, f.Mode = text(`{{ secret "psk" }}`), 0o644 }),
			[]string{`/mode: mode 0644 lets everybody on the device at a file that holds the secret psk: others must have no right, as in "0640"`}},
		{file(func(f *score.File) { f.Template = text("{{ .vars.urll }}\n{{ .facts.hostnam }}") }), []string{
			`/template/text: line 1: vars declares no variable "urll", did you mean "url"?`,
			`/template/text: line 2: there is no fact "hostnam", did you mean "hostname"?; there are ` + strings.Join(score.FactNames, ", ")}},

		{dir(func(d *score.Directory) {}), nil},
		{dir(func(d *score.Directory) { d.Exclusive, d.Entries = true, []string{"a", "b"} }), nil},
		{dir(func(d *score.Directory) { d.State, d.Mode = score.Absent, 0 }), nil},
		{dir(func(d *score.Directory) { d.Mode = 0o644 }), []string{"warning /mode: mode 0644 lets nobody into the directory: for a directory, x is the right to use what is in it"}},
		{dir(func(d *score.Directory) { d.Mode = 0o10755 }), []string{"/mode: mode has more than permission, setuid, setgid and sticky bits"}},
		{dir(func(d *score.Directory) { d.Entries = []string{"a"} }), []string{"/entries: entries are what an exclusive directory may hold: write exclusive: true, or leave them out"}},
		{dir(func(d *score.Directory) { d.Exclusive, d.Entries = true, []string{"", "..", "a/b", "a", "a"} }), []string{
			`/entries/0: entry "" is no name of a file`, `/entries/1: entry ".." is no name of a file`, `/entries/2: entry "a/b" is no name of a file`, `/entries/4: entry "a" is listed twice`}},
		{dir(func(d *score.Directory) { d.Owner = "Me!" }), []string{`/owner: owner "Me!" is no account name and no number`}},
		{dir(func(d *score.Directory) { d.Path = "/srv/../etc" }), []string{`/path: path "/srv/../etc" must be absolute and clean: no '..', no '//' and no '/' at the end`}},
		{dir(func(d *score.Directory) { d.Path = "/var/lib/continuo/backups" }), []string{"/path: /var/lib/continuo/backups " + agents}},
		{dir(func(d *score.Directory) { d.Path = "/etc/systemd/system/continuo-agent.service.d" }), []string{"/path: /etc/systemd/system/continuo-agent.service.d " + agents}},

		{link(func(l *score.Symlink) {}), nil},
		{link(func(l *score.Symlink) { l.State, l.Target = score.Absent, "" }), nil},
		{link(func(l *score.Symlink) { l.Target = "" }), []string{": no target: say where the link leads to"}},
		{link(func(l *score.Symlink) { l.Target = "a\x00b" }), []string{"/target: target has a NUL byte"}},
		{link(func(l *score.Symlink) { l.Target = strings.Repeat("a", 4096) }), []string{"/target: target is 4096 bytes long, a device takes 4095"}},
		{link(func(l *score.Symlink) { l.Target = "./l" }), []string{"/target: the link leads to itself"}},
		{link(func(l *score.Symlink) { l.Path = "/run/continuo" }), []string{"/path: /run/continuo " + agents}},
		{link(func(l *score.Symlink) { l.Path = "/usr/local/bin/continuo-agent" }), []string{"/path: /usr/local/bin/continuo-agent " + agents}},
		{link(func(l *score.Symlink) { l.Target = "../etc/continuo/agent.yaml" }), []string{"/target: the link leads to /etc/continuo/agent.yaml, which " + agents}},

		{hosts(score.HostEntry{Address: "192.0.2.1", Names: []string{"a", "b.example.org", "_srv"}}), nil},
		{hosts(), []string{"/entries: no entry: leave the score out if there is none"}},
		{hosts(score.HostEntry{Address: "192.0.2.1/24", Names: []string{"a"}}), []string{`/entries/0/address: address "192.0.2.1/24" is no IPv4 or IPv6 address`}},
		{hosts(score.HostEntry{Address: "2001:DB8::1", Names: []string{"a"}}), []string{"/entries/0/address: address 2001:DB8::1 is written 2001:db8::1"}},
		{hosts(score.HostEntry{Address: "fe80::1%eth0", Names: []string{"a"}}), []string{`/entries/0/address: address "fe80::1%eth0" is no IPv4 or IPv6 address`}},
		{hosts(score.HostEntry{Address: "192.0.2.1"}), []string{"/entries/0/names: an entry has 1 to 50 names, this one has 0"}},
		{hosts(score.HostEntry{Address: "192.0.2.1", Names: []string{"a b", "a\nb", "a.", "localhost", "LocalHost"}}), []string{
			`/entries/0/names/0: name "a b" is no name of a machine: letters, digits, '-' and '.', no '.' at its end`,
			`/entries/0/names/1: name "a\nb" is no name of a machine: letters, digits, '-' and '.', no '.' at its end`,
			`/entries/0/names/2: name "a." is no name of a machine: letters, digits, '-' and '.', no '.' at its end`,
			"/entries/0/names/3: localhost is the device itself, and stays so",
			"/entries/0/names/4: localhost is the device itself, and stays so"}},
		{hosts(score.HostEntry{Address: "192.0.2.1", Names: []string{"a"}}, score.HostEntry{Address: "192.0.2.2", Names: []string{"a"}}, score.HostEntry{Address: "2001:db8::1", Names: []string{"a"}}),
			[]string{`warning /entries/1/names/0: name "a" has the address 192.0.2.1 already, and the first counts`}},
	}
	for _, tt := range tests {
		if got := checked(tt.spec); !slices.Equal(got, tt.want) {
			t.Errorf("%+v:\ngot  %q\nwant %q", tt.spec, got, tt.want)
		}
	}
	for _, p := range []string{"/etc", "/etc/systemd", "/etc/systemd/system", "/var", "/var/lib", "/run", "/usr", "/usr/bin", "/usr/local", "/usr/local/bin", "/lib/systemd/system"} {
		for _, s := range []score.Spec{dir(func(d *score.Directory) { d.Path = p }), link(func(l *score.Symlink) { l.Path = p })} {
			if got := checked(s); len(got) != 1 || !strings.Contains(got[0], p+" holds the agent's own files") { // case 147
				t.Errorf("%s %s: got %q", s.Kind(), p, got)
			}
		}
	}
}

// TestExclusive: what a score claims inside the exclusive directory of another one is a conflict, unless that one lists it.
func TestExclusive(t *testing.T) { // X96, issue 4: bad input
	dir := score.Directory{Path: "/etc/app.d", Mode: 0o755, Exclusive: true, Entries: []string{"a.conf", "sub"}}
	at := func(id score.ID, p string) score.Score {
		return score.Score{ID: id, Spec: score.File{Path: p, Content: "x", Mode: 0o644}}
	}
	manifest := func(name string, scores ...score.Score) score.Manifest {
		return score.Manifest{APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: name},
			Spec: score.ManifestSpec{Target: score.Target{Device: "d"}, Policy: score.Policy{Preset: score.Converge}, Scores: scores}}
	}
	own := score.Score{ID: "dir", Spec: dir}
	const claims = `score "f" claims file:/etc/app.d/%s, inside /etc/app.d, which score "dir" has for itself: add "%s" to its entries, or take another path`
	for p, want := range map[string]string{
		"/etc/app.d/a.conf":   "",
		"/etc/app.d/sub/deep": "",
		"/etc/app.d2":         "",
		"/etc/app":            "",
		"/etc/app.d/b.conf":   fmt.Sprintf(claims, "b.conf", "b.conf"),
		"/etc/app.d/new/deep": fmt.Sprintf(claims, "new/deep", "new"),
	} {
		for _, m := range []score.Manifest{manifest("m", own, at("f", p)), manifest("m", at("f", p), own)} {
			var got []string
			for _, q := range m.Validate() {
				got = append(got, q.Text)
			}
			if strings.Join(got, "\n") != want {
				t.Errorf("%s: got %q, want %q", p, got, want)
			}
		}
	}
	for _, s := range []score.Score{
		{ID: "f", Spec: score.Symlink{Path: "/etc/app.d/l", Target: "/x"}},
		{ID: "f", Spec: score.Directory{Path: "/etc/app.d/d", Mode: 0o755}},
	} {
		if ps := manifest("m", own, s).Validate(); len(ps) != 1 {
			t.Errorf("%s: got %v", s.Spec.Kind(), ps)
		}
	}
	a := score.Assignment{APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: "d"},
		Spec: score.AssignmentSpec{Scores: 2, Manifests: []score.Manifest{manifest("one", own), manifest("two", at("f", "/etc/app.d/b.conf"))}}}
	ps := a.Validate()
	if len(ps) != 1 || !strings.Contains(ps[0].Text, `score "f" of manifest "two" claims file:/etc/app.d/b.conf, inside /etc/app.d, which score "dir" of manifest "one" has for itself`) {
		t.Errorf("two manifests: got %v", ps)
	}
	closed := dir
	closed.State, closed.Mode = score.Absent, 0
	if ps := manifest("m", score.Score{ID: "dir", Spec: closed}, at("f", "/etc/app.d/b.conf")).Validate(); len(ps) != 0 {
		t.Errorf("a directory that is to be gone is exclusive: %v", ps)
	}
}
