package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

// small makes a repository with a command that says what it was made of.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                    "module github.com/continuo-fleet/continuo\n\ngo 1.26.0\n",
		"cmd/internal/cli/build.go": "package cli\n\nvar version, commit, date, modified string\n\nfunc Said() string { return version + \" \" + commit + \" \" + date + \" \" + modified }\n",
		"cmd/continuo/main.go":      "package main\n\nimport \"github.com/continuo-fleet/continuo/cmd/internal/cli\"\n\nfunc main() { println(cli.Said()) }\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	in(t, dir, "git", "init", "-q")
	commit(t, dir, "2026-01-02T03:04:05+02:00")
	return dir
}

func commit(t *testing.T, dir, date string) string {
	t.Helper()
	in(t, dir, "git", "add", "-A")
	t.Setenv("GIT_COMMITTER_DATE", date)
	in(t, dir, "git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "a change")
	return in(t, dir, "git", "rev-parse", "HEAD")
}

func in(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A release is of the commit, and of nothing that lies around; it says what it was made of; its checksums are those of
// its files; and it is the same whoever makes it.
func TestRelease(t *testing.T) { // G57
	dir := small(t)
	s, err := resolve(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if want := "v0.0.0-20260102010405-" + s.commit[:12]; s.version != want || s.date != "2026-01-02T01:04:05Z" {
		t.Errorf("version %s of %s, want %s", s.version, s.date, want)
	}
	write(t, filepath.Join(dir, "cmd/continuo/more.go"), "package main\n\nfunc init() { println(\"this is not committed\") }\n")
	native, err := chosen(map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH])
	if err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	write(t, filepath.Join(made, "of-another-release"), "")
	first, err := build(t.Context(), s, made, place{}, native, commands[:1])
	if err != nil {
		t.Fatal(err)
	}
	binary := "continuo-linux-" + native[0].name
	if got, want := in(t, made, "./"+binary), s.version+" "+s.commit+" "+s.date+" "; got+" " != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if got := in(t, made, "sha256sum", "--check", "SHA256SUMS"); got != binary+": OK\n"+binary+".cdx.json: OK" {
		t.Errorf("sha256sum says %s", got)
	}
	entries, err := os.ReadDir(made)
	if err != nil || len(entries) != 3 {
		t.Errorf("there are %v (%v)", entries, err)
	}
	if out := in(t, made, "go", "version", "-m", binary); strings.Contains(out, dir) || strings.Contains(out, os.TempDir()) || !strings.Contains(out, "CGO_ENABLED=0") || !strings.Contains(out, ": "+toolchain+"\n") {
		t.Errorf("it was built by %s", out)
	}
	// Somewhere else, by somebody else. That nothing is taken from the first build is proved by make reproduce.
	defer elsewhere(t.TempDir())()
	second, err := build(t.Context(), s, filepath.Join(t.TempDir(), "other"), place{env: []string{"TZ=Asia/Kathmandu", "USER=somebody"}}, native, commands[:1])
	if err != nil {
		t.Fatal(err)
	}
	if err := same(s.commit, first, second); err != nil {
		t.Error(err)
	}
}

// What comes out in two ways is told by name, and so is what is missing.
func TestTwoBuildsDiffer(t *testing.T) {
	one := []file{{"a", "11", 5}, {"b", "22", 6}}
	for _, tt := range []struct {
		name   string
		second []file
		want   string
	}{
		{"the same", []file{{"a", "11", 5}, {"b", "22", 6}}, ""},
		{"other bytes", []file{{"a", "11", 5}, {"b", "33", 6}}, "two builds of b"},
		{"one less", []file{{"a", "11", 5}}, "one of 2 files and one of 1"},
	} {
		if err := same("c0", one, tt.second); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func touch(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "another"), "file")
}

func TestVersions(t *testing.T) {
	dir := small(t)
	first := in(t, dir, "git", "rev-parse", "HEAD")
	in(t, dir, "git", "tag", "v0.1.0")
	in(t, dir, "git", "tag", "notes")
	touch(t, dir)
	second := commit(t, dir, "2026-01-03T00:00:00Z")
	tests := []struct{ of, want string }{
		{first, "v0.1.0"},
		{"v0.1.0", "v0.1.0"},
		{"", "v0.1.0-1-g" + second[:12]},
	}
	for _, tt := range tests {
		if s, err := resolve(t.Context(), dir, tt.of); err != nil || s.version != tt.want {
			t.Errorf("%q is %s (%v), want %s", tt.of, s.version, err, tt.want)
		}
	}
	for _, of := range []string{"nothing", "--all", "HEAD:go.mod"} {
		if s, err := resolve(t.Context(), dir, of); err == nil {
			t.Errorf("%q is %s", of, s.commit)
		}
	}
	if _, err := chosen("amd64,mips"); err == nil || !strings.Contains(err.Error(), `"mips"`) {
		t.Error(err)
	}
}

// A build of the work tree says its commit, and whether it is all of it; what is no repository builds all the same.
func TestStampOfAWorkTree(t *testing.T) {
	dir := small(t)
	id := in(t, dir, "git", "rev-parse", "HEAD")
	const p = " -X " + variables
	want := strings.TrimSpace(p + ".commit=" + id + p + ".date=2026-01-02T01:04:05Z")
	if got, err := worktree(t.Context(), dir); err != nil || got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
	touch(t, dir)
	if got, err := worktree(t.Context(), dir); err != nil || got != want+p+".modified=true" {
		t.Errorf("got %q (%v)", got, err)
	}
	if got, err := worktree(t.Context(), t.TempDir()); err != nil || got != "" {
		t.Errorf("of no repository: %q (%v)", got, err)
	}
}

// The variables that the linker is told of are those of both commands.
func TestVersionPrintsTheCommit(t *testing.T) { // G57
	s := source{commit: strings.Repeat("0123456789abcdef", 3)[:40], date: "2026-01-02T01:04:05Z", version: "v0.1.0"}
	binary := filepath.Join(t.TempDir(), "agent")
	in(t, "../..", "go", "build", "-buildvcs=false", "-ldflags", s.stamp(), "-o", binary, "./cmd/continuo-agent")
	if got, want := in(t, ".", binary, "version"), "continuo-agent v0.1.0 (commit 0123456789ab of 2026-01-02T01:04:05Z, "+runtime.Version()+", linux/"+runtime.GOARCH+")"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var b struct {
		Version, Commit, Date string
		Modified              bool
	}
	if err := json.Unmarshal([]byte(in(t, ".", binary, "version", "-o", "json")), &b); err != nil || b.Commit != s.commit || b.Date != s.date || b.Version != s.version || b.Modified {
		t.Errorf("got %+v (%v)", b, err)
	}
}

func TestContents(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Path: "github.com/continuo-fleet/continuo/cmd/continuo", Main: debug.Module{Path: "github.com/continuo-fleet/continuo"},
		Deps: []*debug.Module{
			{Path: "github.com/B/second", Version: "v1.0.0+incompatible", Sum: "h1:" + strings.Repeat("A", 43) + "="},
			{Path: "example.org/first", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/replaced", Version: "v2.0.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "arm"}, {Key: "GOARM", Value: "6"}, {Key: "-ldflags", Value: "-s"}},
	}
	b := list(info, "continuo-linux-armv6", source{commit: "c0", version: "v0.1.0", date: "2026-01-02T01:04:05Z"})
	var refs []string
	for _, c := range b.Components {
		refs = append(refs, c.PURL)
	}
	want := "pkg:golang/example.org/replaced@v2.0.0 pkg:golang/github.com/b/second@v1.0.0+incompatible pkg:golang/std@1.26.8"
	if got := strings.Join(refs, " "); got != want || strings.Join(b.Dependencies[0].On, " ") != want {
		t.Errorf("it has %s\nwant %s", got, want)
	}
	if h := b.Components[1].Hashes; len(h) != 1 || h[0].Content != strings.Repeat("0", 64) {
		t.Errorf("hashes %v", h)
	}
	m := b.Metadata.Component
	if m.PURL != "pkg:golang/github.com/continuo-fleet/continuo@v0.1.0#cmd/continuo" || len(m.Properties) != 3 {
		t.Errorf("it is %+v", m)
	}
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-only mips":   `cannot build for "mips"`,
		"one two":      "one commit is built at a time",
		"no-such-name": "cannot find the commit",
		"-nothing":     "not defined",
	} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
	if err := run(t.Context(), []string{"-help"}, &bytes.Buffer{}); err != nil {
		t.Error(err)
	}
}
