package continuo_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every package says what it is, for somebody who opens it for the first time.
func TestEveryPackageHasADoc(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package doc", p.name())
		}
	}
}

var (
	statusLine = regexp.MustCompile(`(?m)^(?:[-*] *)?\|? *\**Status\**:?\** *\|? *([^|\n]+?) *\|?$`)
	dateLine   = regexp.MustCompile(`(?m)^(?:[-*] *)?\|? *\**Date\**:?\** *\|? *([^|\n]+?) *\|?$`)
	// status words; "Superseded by" carries a link to the decision that came after
	statusWords = regexp.MustCompile(`^(Proposed|Accepted|Rejected|Retired|Superseded by \[[^\]]+\]\([^)]+\.md\))$`)
	adrName     = regexp.MustCompile(`^\d{4}-[a-z0-9-]+\.md$`)
	linkTarget  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fenced      = regexp.MustCompile("(?ms)^```.*?^```")
)

const (
	adrIndex = "README.md"
	adrNext  = "NEXT.md" // what is left of the work under way; not a decision
)

// adrProblems says what is wrong with the head of a decision.
func adrProblems(name, text string) []string {
	var bad []string
	if !adrName.MatchString(name) {
		bad = append(bad, "its name is not NNNN-words.md")
	}
	if !strings.HasPrefix(text, "# ") {
		bad = append(bad, "it does not begin with a title")
	}
	if m := statusLine.FindStringSubmatch(text); m == nil {
		bad = append(bad, "it has no Status")
	} else if !statusWords.MatchString(m[1]) {
		bad = append(bad, fmt.Sprintf("its status %q is none of Proposed, Accepted, Rejected, Retired, Superseded by [..](..)", m[1]))
	}
	if m := dateLine.FindStringSubmatch(text); m == nil {
		bad = append(bad, "it has no Date")
	} else if _, err := time.Parse(time.DateOnly, m[1]); err != nil {
		bad = append(bad, fmt.Sprintf("its date %q is not YYYY-MM-DD", m[1]))
	}
	for _, section := range []string{"Context", "Decision", "Consequences", "Measured"} {
		if !strings.Contains(text, "\n## "+section+"\n") {
			bad = append(bad, "it has no section "+section)
		}
	}
	return bad
}

// H81: each decision has a status and a date, and the index names each with its status.
func TestDecisions(t *testing.T) {
	files, err := filepath.Glob("ADR/*.md")
	if err != nil {
		t.Fatal(err)
	}
	index := readText(t, filepath.Join("ADR", adrIndex))
	numbers := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		if name == adrIndex || name == adrNext {
			continue
		}
		text := readText(t, file)
		for _, p := range adrProblems(name, text) {
			t.Errorf("%s: %s", file, p)
		}
		if n := name[:min(4, len(name))]; numbers[n] != "" {
			t.Errorf("%s and %s have the same number", file, numbers[n])
		} else {
			numbers[n] = file
		}
		line := indexLine(index, name)
		if line == "" {
			t.Errorf("the index ADR/%s does not link to %s", adrIndex, name)
		} else if m := statusLine.FindStringSubmatch(text); m != nil {
			if word, _, _ := strings.Cut(m[1], " "); !strings.Contains(line, word) {
				t.Errorf("the index says %q of %s, which is %s", line, name, word)
			}
		}
	}
	if len(numbers) < 8 {
		t.Errorf("%d decisions only: the first eight are missing", len(numbers))
	}
}

// indexLine is the line of the index that links to a decision.
func indexLine(index, name string) string {
	for line := range strings.Lines(index) {
		if strings.Contains(line, "]("+name+")") || strings.Contains(line, "](./"+name+")") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

func TestADRProblems(t *testing.T) {
	if got := strings.Join(adrProblems("0001-layout.md", "# L\nStatus: Accepted\nDate: 2026-11-29\n\n## Context\n\n## Decision\n\n## Consequences\n"), "; "); got != "it has no section Measured" {
		t.Errorf("got %q", got)
	}
	tests := []struct{ name, file, text, want string }{
		{"table", "0001-layout.md", "# Layout\n\n| Status | Accepted |\n| Date | 2026-11-29 |\n", ""},
		{"bold table", "0001-layout.md", "# Layout\n\n| **Status** | Accepted |\n| **Date** | 2026-11-29 |\n", ""},
		{"list", "0001-layout.md", "# Layout\n\n- Status: Superseded by [0002](0002-new.md)\n- Date: 2026-11-29\n", ""},
		{"bold line", "0001-layout.md", "# Layout\n\n**Status:** Proposed\n**Date:** 2026-11-29\n", ""},
		{"no status", "0001-layout.md", "# Layout\nDate: 2026-11-29\n", "it has no Status"},
		{"unknown word", "0001-layout.md", "# L\nStatus: Done\nDate: 2026-11-29\n", `its status "Done" is none`},
		{"superseded by nothing", "0001-layout.md", "# L\nStatus: Superseded\nDate: 2026-11-29\n", `its status "Superseded" is none`},
		{"bad date", "0001-layout.md", "# L\nStatus: Accepted\nDate: yesterday\n", `its date "yesterday" is not`},
		{"no date", "0001-layout.md", "# L\nStatus: Accepted\n", "it has no Date"},
		{"name", "layout.md", "# L\nStatus: Accepted\nDate: 2026-11-29\n", "its name is not"},
		{"title", "0001-layout.md", "Status: Accepted\nDate: 2026-11-29\n", "it does not begin with a title"},
	}
	const sections = "\n## Context\n\n## Decision\n\n## Consequences\n\n## Measured\n"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(adrProblems(tt.file, tt.text+sections), "; ")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// Every link of a document to a file of the repository leads somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, file := range tree(t) {
		if path.Ext(file) != ".md" || strings.Contains(file, "testdata/") {
			continue
		}
		text := fenced.ReplaceAllString(readText(t, file), "")
		for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if target == "" || strings.Contains(target, ":") {
				continue // in the same document, or on the web
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), target)); err != nil {
				t.Errorf("%s links to %s, which is not there", file, m[1])
			}
		}
	}
	if links == 0 {
		t.Error("no document links to another")
	}
}

// What the documents tell people to type exists.
func TestCommandsOfTheDocuments(t *testing.T) {
	makefile := readText(t, "Makefile")
	command := regexp.MustCompile(`(?m)(?:^|[\s$;&"])make ([a-z][a-z-]*)`)
	found := map[string]bool{}
	for _, file := range []string{"README.md", "CONTRIBUTING.md"} {
		for _, block := range fenced.FindAllString(readText(t, file), -1) {
			for _, m := range command.FindAllStringSubmatch(block, -1) {
				found[m[1]] = true
				if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(m[1]) + `:`).MatchString(makefile) {
					t.Errorf("%s says make %s, and the Makefile has no such target", file, m[1])
				}
			}
			for _, script := range regexp.MustCompile(`(?m)(?:^|\s)(?:\./)?((?:test|examples|\.ci|cmd)/[\w./-]+)`).FindAllStringSubmatch(block, -1) {
				if _, err := os.Stat(strings.TrimSuffix(script[1], "/...")); err != nil {
					t.Errorf("%s names %s, which is not there", file, script[1])
				}
			}
		}
	}
	for _, target := range []string{"demo", "test"} {
		if !found[target] {
			t.Errorf("no command block of README.md or CONTRIBUTING.md has make %s", target)
		}
	}
}

var (
	ipv4     = regexp.MustCompile(`(?:^|[^\w.])(\d{1,3}(?:\.\d{1,3}){3})(?:[^\w.]|\.?$|\.\s)`)
	secrets  = regexp.MustCompile(`-----BEGIN [A-Z ]*(?:PRIVATE KEY|NKEY SEED)-----|\bS[ACNOUX][A-Z2-7]{56}\b|\bAKIA[0-9A-Z]{16}\b|\bghp_\w{36}\b`)
	homes    = regexp.MustCompile(`/(?:home|Users)/([a-z][\w-]*)/|(?:^|[\s"'=:(` + "`" + `])/(work|root)/[\w.]`)
	reserved = func() (ps []netip.Prefix) {
		for _, p := range []string{
			"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // documentation, RFC 5737
			"127.0.0.0/8", "0.0.0.0/32", "255.0.0.0/8", "224.0.0.0/4",
			"10.213.0.0/16", // the boxes' private network
		} {
			ps = append(ps, netip.MustParsePrefix(p))
		}
		return ps
	}()
)

// private finds what belongs to somebody's own machines in a line of text: an address that is not reserved for
// examples, key material, or a home folder.
func private(line string) []string {
	var found []string
	for _, m := range ipv4.FindAllStringSubmatch(line, -1) {
		addr, err := netip.ParseAddr(m[1])
		if err == nil && !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(addr) }) {
			found = append(found, "address "+m[1])
		}
	}
	if m := secrets.FindString(line); m != "" {
		found = append(found, "key material "+m[:min(len(m), 12)]+"…")
	}
	for _, m := range homes.FindAllStringSubmatch(line, -1) {
		if m[1] != "pi" { // the user that every Raspberry Pi had
			found = append(found, "path "+strings.TrimSpace(m[0]))
		}
	}
	return found
}

// G96: no address, key or path of anybody's own machines is in the repository.
func TestNothingPrivate(t *testing.T) {
	for _, file := range tree(t) {
		if file == "docs_test.go" || file == "go.sum" {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
			continue // no text
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			n++
			for _, what := range private(line) {
				t.Errorf("%s:%d: %s", file, n, what)
			}
		}
	}
}

func TestPrivate(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"documentation address", "server: 192.0.2.10:4222", ""},
		{"loopback", "nats://127.0.0.1:4222", ""},
		{"home network", "server: 192.168.1.20", "address 192.168.1.20"},
		{"office network", "ping 10.1.2.3/24", "address 10.1.2.3"},
		{"end of a sentence", "It is 172.16.0.9.", "address 172.16.0.9"},
		{"version", "go1.26.8 v1.2.3 1.2.3.4.5", ""},
		{"no address", "999.1.1.1", ""},
		{"private key", "-----BEGIN OPENSSH PRIVATE KEY-----", "key material"},
		{"seed", "seed: SU" + strings.Repeat("A", 56), "key material"},
		{"public key", "key: U" + strings.Repeat("A", 55), ""},
		{"home", "cd /home/alice/src", "path /home/alice/"},
		{"the usual user", "WorkingDirectory=/home/pi/app", ""},
		{"root's home", `"/root/.config"`, `path "/root/.`},
		{"inside a longer path", "$B/mnt/" + "work/x /proc/1/root/run", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(private(tt.line), "; ")
			if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// tree lists the files of the repository, without what make builds and git keeps.
func tree(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "dist"}, name) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() && name != ".git" { // a file in a work tree beside the first
			files = append(files, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func readText(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
