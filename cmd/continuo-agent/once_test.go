package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/cmd/internal/golden"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
)

const head = "apiVersion: continuo/v1\nkind: Manifest\nmetadata: {name: kiosk}\nspec:\n  target: {device: pi-7}\n  policy: {preset: converge}\n"

const kiosk = head + `  scores:
    - kind: file
      id: conf
      spec: {path: /etc/kiosk.conf, content: "url=https://example.org\n", mode: "0644"}
    - kind: file
      id: motd
      after: [conf]
      spec: {path: /etc/motd, content: "Welcome.\n", mode: "0600"}
`

// apply runs apply on the bench's directory.
func (b *bench) apply(manifest string, more ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	return b.run(manifest, append([]string{"apply", "-f", "-", "--root", b.root}, more...)...)
}

// files lists everything in the bench's directory, except the books.
func (b *bench) files() string {
	b.t.Helper()
	var all []string
	err := filepath.WalkDir(b.root, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(name, "/var/lib/continuo/") {
			all = append(all, strings.TrimPrefix(name, b.root))
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// named is what a change by hand is called in the records.
var named = regexp.MustCompile(`by-hand-[A-Z2-7]{26}`)

// dated is when a backup was made.
var dated = regexp.MustCompile(`\d{8}T\d{6}Z`)

// What one sees from the first plan to the corrected drift: cases 155 and 156, H54, H69.
func TestApply(t *testing.T) {
	b := newBench(t)
	var all strings.Builder
	step := func(title string, want int, args ...string) {
		t.Helper()
		code, out, errs := b.run(kiosk, args...)
		if code != want {
			t.Errorf("%s: exit %d, want %d: %s", title, code, want, errs)
		}
		all.WriteString("# " + title + "\n" + out + errs + "\n")
	}
	step("plan of a fresh device", 1, "plan", "-f", "-", "--root", b.root)
	step("apply without confirmation", 0, "apply", "-f", "-", "--root", b.root)
	if got := b.files(); got != "" {
		t.Fatalf("a preview wrote %s", got)
	}
	if _, err := os.Stat(filepath.Join(b.root, "var")); err == nil {
		t.Fatal("a preview made the state directory")
	}
	step("apply", 0, "apply", "-f", "-", "--root", b.root, "--confirm")
	if got := b.files(); got != "/etc/kiosk.conf /etc/motd" {
		t.Fatalf("got %s", got)
	}
	step("apply again", 0, "apply", "-f", "-", "--root", b.root, "--confirm")
	if err := os.Chmod(filepath.Join(b.root, "etc/motd"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.root, "etc/kiosk.conf"), []byte("url=https://elsewhere.example\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	step("plan after somebody's hands", 1, "plan", "-f", "-", "--root", b.root)
	step("correct it", 0, "apply", "-f", "-", "--root", b.root, "--confirm")
	step("plan when nothing differs", 0, "plan", "-f", "-", "--root", b.root)
	golden.Check(t, "apply.txt", dated.ReplaceAllString(named.ReplaceAllString(all.String(), "by-hand-ID"), "TIME"))
}

// What has no meaning in a directory is unsupported, with a reason; the rest is done, and the exit code says that
// not all of it is.
func TestApplyUnsupported(t *testing.T) {
	b := newBench(t)
	m := head + "  scores:\n    - {kind: hostname, id: name, spec: {name: kiosk-7}}\n    - {kind: file, id: motd, spec: {path: /etc/motd, content: hello, mode: \"0644\"}}\n"
	code, out, errs := b.apply(m, "--confirm", "-o", "json")
	if code != 1 || errs != "" {
		t.Errorf("exit %d: %s", code, errs)
	}
	var st interpret.DeviceStatus
	if err := score.Decode([]byte(out), &st); err != nil {
		t.Fatal(err)
	}
	got := map[score.ID]interpret.Outcome{}
	for _, s := range st.Manifests[0].Scores {
		got[s.ID] = s.Outcome
	}
	if got["name"] != interpret.Unsupported || got["motd"] != interpret.Changed || st.State != interpret.StateUnsupported {
		t.Errorf("got %v, state %s", got, st.State)
	}
	if b.files() != "/etc/motd" {
		t.Errorf("files: %s", b.files())
	}
}

func TestApplyYAMLStatus(t *testing.T) {
	b := newBench(t)
	code, out, _ := b.apply(kiosk, "--confirm", "-o", "yaml")
	var st interpret.DeviceStatus
	doc := source.Read("status.yaml", []byte(out))
	if code != 0 || !doc.Readable() || len(doc.Diagnostics()) > 0 {
		t.Fatalf("exit %d: %v\n%s", code, doc.Diagnostics(), out)
	}
	if err := score.Decode(doc.JSON(), &st); err != nil || len(st.Manifests[0].Scores) != 2 {
		t.Errorf("%v: %+v", err, st)
	}
}

// What is wrong with a manifest is told with its place, all of it, and nothing is touched: H09, cases 1, 12, 16, 157.
func TestApplyBadInput(t *testing.T) {
	scores := func(s string) string { return head + "  scores:\n" + s }
	file := func(id, rest string) string {
		return "    - {kind: file, id: " + id + ", spec: {path: /etc/" + id + ", content: x, " + rest + "}}\n"
	}
	tests := []struct{ name, in, want string }{
		{"unknown field", scores(file("a", `mode: "0644", pth: x`)), "unknown field `pth`"},
		{"wrong type", scores("    - {kind: file, id: a, spec: {path: /etc/a, content: [x], mode: \"0644\"}}\n"), "a list"},
		{"mode without quotes", scores(file("a", "mode: 0644")), "0644"},
		{"duplicate id", scores(file("a", `mode: "0644"`) + "    - {kind: file, id: a, spec: {path: /etc/b, content: x, mode: \"0644\"}}\n"), `id "a" is used twice`},
		{"duplicate key", scores(file("a", `mode: "0644", mode: "0600"`)), "twice"},
		{"unknown kind", scores("    - {kind: fle, id: a, spec: {}}\n"), `unknown kind "fle"`},
		{"missing dependency", scores("    - {kind: file, id: a, after: [b], spec: {path: /etc/a, content: x, mode: \"0644\"}}\n"), `there is no score "b"`},
		{"cycle", scores("    - {kind: file, id: a, after: [b], spec: {path: /etc/a, content: x, mode: \"0644\"}}\n" +
			"    - {kind: file, id: b, after: [a], spec: {path: /etc/b, content: x, mode: \"0644\"}}\n"), "wait for each other"},
		{"two documents", kiosk + "---\n" + kiosk, "document"},
		{"empty file", "", "no manifest in file"},
		{"the agent's own files", scores("    - {kind: file, id: a, spec: {path: /etc/continuo/agent.yaml, content: x, mode: \"0644\"}}\n"), "belongs to the agent itself"}, // cases 147
		{"10 MB", strings.Repeat("# padding\n", 1<<20), "at most"},
		{"aliases", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", "anchor"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			code, out, errs := b.apply(tt.in, "--confirm")
			if code != 2 || out != "" {
				t.Errorf("exit %d, stdout %q", code, out)
			}
			if !strings.HasPrefix(errs, "standard input:") || !strings.Contains(errs, tt.want) {
				t.Errorf("stderr %q, want a place and %q", errs, tt.want)
			}
			if n := strings.Count(errs, "\n"); n > 2 {
				t.Errorf("one mistake gives %d lines: %s", n, errs)
			}
			if b.files() != "" {
				t.Errorf("it wrote %s", b.files())
			}
		})
	}
}

// A plan looks at the books of a running agent without disturbing it; apply does not work beside it.
func TestOnceBesideARunningAgent(t *testing.T) {
	b := newBench(t)
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Fatal(errs)
	}
	books := b.open()
	code, out, errs := b.run(kiosk, "plan", "-f", "-", "--root", b.root)
	if code != 0 || !strings.Contains(out, "nothing differs: 2 scores are as they should be") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 1 || !strings.Contains(errs, "another agent is using it; stop that one first") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if err := books.Close(); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Error(errs)
	}
}

// What a killed apply left behind goes with the next one.
func TestApplyAfterAKill(t *testing.T) {
	b := newBench(t)
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Fatal(errs)
	}
	books := b.open()
	entry, _ := books.Owner("file:/etc/motd")
	if err := books.Begin(begun(entry)); err != nil {
		t.Fatal(err)
	}
	if err := books.Close(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(b.root, "etc", temporary)
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Fatal(errs)
	}
	if got := b.files(); got != "/etc/kiosk.conf /etc/motd" {
		t.Errorf("left behind: %s", got)
	}
}

// What another manifest owns is neither taken nor called left over; what this one does not name any more is.
func TestApplyTwoManifests(t *testing.T) {
	b := newBench(t)
	if code, _, errs := b.apply(kiosk, "--confirm"); code != 0 {
		t.Fatal(errs)
	}
	other := strings.Replace(head, "kiosk}", "other}", 1) + "  scores:\n    - {kind: file, id: x, spec: {path: /etc/x, content: x, mode: \"0644\"}}\n"
	code, out, errs := b.apply(other, "--confirm")
	if code != 0 || strings.Contains(out, "left over") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, errs = b.apply(kiosk[:strings.Index(kiosk, "    - kind: file\n      id: motd")], "--confirm")
	if code != 0 || strings.Count(out, "left over") != 1 || !strings.Contains(out, "left over: file:/etc/motd, of score motd of manifest kiosk") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, _ = b.apply(strings.Replace(other, "/etc/x", "/etc/kiosk.conf", 1), "--confirm")
	if code != 1 || !strings.Contains(out, "owned_by") {
		t.Errorf("exit %d: %s", code, out)
	}
	if got := b.files(); got != "/etc/kiosk.conf /etc/motd /etc/x" {
		t.Errorf("files: %s", got)
	}
}
