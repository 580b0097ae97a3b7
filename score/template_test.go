package score_test

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

var (
	someFacts   = map[string]string{"hostname": "pi-7", "arch": "aarch64", "model": "Raspberry Pi 4"}
	someSecrets = map[string][]byte{"psk": []byte("it's \"50%\" \\secret\\"), "line": []byte("a\nb\x01")}
	someVars    = map[string]string{"url": "https://example.org/?a=1&b=<2>", "empty": "", "Name_1": " Kiosk ", "yes": "true"}
)

func TestTemplates(t *testing.T) {
	for text, want := range map[string]string{
		"":           "",
		"plain { }}": "plain { }}",
		"url={{ .vars.url }}\n{{/* a comment */}}{{- .facts.hostname -}}  \nx": "url=https://example.org/?a=1&b=<2>\npi-7x",
		`{{ secret "psk" }}`:                                                  `it's "50%" \secret\`,
		`{{ secret "psk" | quoteShell }}`:                                     `'it'\''s "50%" \secret\'`,
		`{{ quoteJSON (secret "psk") }}`:                                      `"it's \"50%\" \\secret\\"`,
		`{{ quoteSystemd (secret "psk") }}{{ secret "line" | quoteSystemd }}`: `"it's \"50%%\" \\secret\\""a\x0ab\x01"`,
		`{{ quoteJSON .vars.url }}`:                                           `"https://example.org/?a=1&b=<2>"`,
		"{{ .vars.Name_1 | trim | upper }}/{{ lower .vars.Name_1 }}":          "KIOSK/ kiosk ",
		`{{ default "none" .facts.serial }}{{ .vars.empty | default "e" }}{{ default "d" .facts.arch }}`: "noneeaarch64",
		`{{ join "," .facts.hostname "b" .vars.empty }}{{ "z" | join "-" "x" }}`:                         "pi-7,b,x-z",
		`{{ if eq .facts.arch "aarch64" }}64{{ else }}32{{ end }}`:                                       "64",
		`{{ if ne .facts.arch "aarch64" }}32{{ else if .vars.empty }}e{{ else }}64{{ end }}`:             "64",
		`{{ if .facts.serial }}s{{ else }}no serial{{ end }}`:                                            "no serial",
		`{{ if and .vars.url (not .vars.empty) (or .vars.empty true) }}y{{ end }}`:                       "y",
		`{{ eq .vars.yes true }}{{ not true }}`:                                                          "truefalse",
		"{{ `raw` }}{{ \"a\\tb\" }}":                                                                     "rawa\tb",
	} {
		tmpl := score.Template{Text: text, Vars: someVars}
		if ps := templateProblems(tmpl); len(ps) > 0 {
			t.Errorf("%q: %q", text, ps)
			continue
		}
		got, err := tmpl.Render(someFacts, someSecrets)
		if err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}
	}
}

func templateProblems(tmpl score.Template) []string {
	return checked(score.File{Path: "/etc/f", Template: &tmpl, Mode: 0o600})
}

// TestTemplateProblems: what is not part of the language is found by the author, at its line.
func TestTemplateProblems(t *testing.T) {
	all := "there are and, default, eq, join, lower, ne, not, or, quoteJSON, quoteShell, quoteSystemd, secret, trim, upper"
	for text, want := range map[string]string{
		"\n{{ .vars.none }}":                        `line 2: vars declares no variable "none"`,
		"{{ .facts.temperature }}":                  `line 1: there is no fact "temperature"`,
		"{{ .facts }}":                              "line 1: there is no .facts: there are .vars.NAME and .facts.NAME",
		"{{ .vars.url.more }}":                      "line 1: there is no .vars.url.more",
		"{{ .secrets.psk }}":                        "line 1: there is no .secrets.psk",
		"{{ . }}":                                   `line 1: "." is not part of templates: there are .vars.NAME`,
		"{{ 1 }}":                                   `line 1: "1" is not part of templates`,
		"{{ nil }}":                                 `line 1: "nil" is not part of templates`,
		"{{ $ }}":                                   `line 1: "$" is not part of templates`,
		"{{ $x := .vars.url }}{{ $x }}":             "line 1: variables are declared in vars, and not in the text",
		"{{ range .vars.url }}{{ end }}":            "line 1: range is not part of templates: there are no loops",
		"{{ with .vars.url }}{{ end }}":             "line 1: with is not part of templates: use if",
		`{{ define "a" }}x{{ end }}`:                "a template defines no other templates",
		`{{ template "a" }}`:                        "is not part of templates",
		`{{ block "a" .vars.url }}x{{ end }}`:       "is not part of templates",
		"{{ break }}":                               "{{break}} outside {{range}}",
		`{{ printf "%s" .vars.url }}`:               `line 1: there is no function "printf"; ` + all,
		"{{ uper .vars.url }}":                      `line 1: there is no function "uper", did you mean "upper"?; ` + all,
		"{{ .vars.url | html }}":                    `there is no function "html"`,
		"{{ call .vars.url }}":                      `there is no function "call"`,
		"{{ upper }}":                               "line 1: upper takes one value, and is given 0",
		"{{ upper .vars.url .vars.url }}":           "line 1: upper takes one value, and is given 2",
		`{{ .vars.url | eq "a" "b" }}`:              "line 1: eq takes 2 values, and is given 3",
		`{{ join "," }}`:                            "line 1: join takes 2 values or more, and is given 1",
		"{{ secret }}":                              "line 1: secret takes one value, and is given 0",
		"{{ secret .vars.url }}":                    "line 1: secret takes the name of a secret in quotes",
		`{{ "psk" | secret }}`:                      "line 1: secret takes the name of a secret in quotes",
		`{{ secret "../x" }}`:                       `line 1: what secret is given is not the name of a secret of the device: `,
		"{{ .vars.url .vars.url }}":                 `line 1: ".vars.url" is no function`,
		`{{ .vars.url | "x" }}`:                     "non executable command in pipeline",
		"a\nb {{ if }}x{{ end }}":                   "line 2: missing value for if",
		"{{ if .vars.url }}":                        "unexpected EOF",
		"{{ .vars.url":                              "unclosed action",
		"{{ (.vars.url).x }}":                       "is not part of templates",
		"{{" + strings.Repeat("(", 20_000) + "1":    "max expression depth exceeded",
		strings.Repeat("x", 64<<10+1):               "/template/text: text has 65537 bytes, a template has at most 65536",
		strings.Repeat("{{ upper .vars.nnn }}", 30): "line 1",
	} {
		got := strings.Join(templateProblems(score.Template{Text: text, Vars: someVars}), "\n")
		if !strings.Contains(got, want) || !strings.HasPrefix(got, "/template/text: ") {
			t.Errorf("%.60q: got %.300q, want …%s…", text, got, want)
		}
		if len(text) > 1000 {
			continue
		}
		if out, err := (score.Template{Text: text, Vars: someVars}).Render(someFacts, someSecrets); err == nil || out != "" {
			t.Errorf("%q is filled in as %q", text, out)
		}
	}
	vars := score.Template{Text: "", Vars: map[string]string{"a-b": "", "1a": "", "ok": ""}}
	if got := templateProblems(vars); len(got) != 2 || !strings.Contains(got[0], `/template/vars/1a: variable "1a" must be letters`) {
		t.Errorf("got %q", got)
	}
}

// TestTemplateMissing: what the device does not know is an error, which holds no value.
func TestTemplateMissing(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .facts.serial }}":                `the device does not know its fact "serial": give another text for it, as in {{ default "none" .facts.serial }}`,
		"{{ upper .facts.serial }}":          `upper: the device does not know its fact "serial"`,
		`{{ eq .facts.serial "" }}`:          `eq: the device does not know its fact "serial"`,
		`{{ secret "psk" }}{{ secret "x" }}`: `the device has no secret "x"`,
	} {
		_, err := score.Template{Text: text}.Render(someFacts, someSecrets)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "50%") {
			t.Errorf("%q: got %v, want …%s…", text, err, want)
		}
	}
	if _, err := (score.Template{Text: `{{ quoteJSON (secret "a") }}`}).Render(nil, map[string][]byte{"a": []byte("\xff50%")}); err == nil || strings.Contains(err.Error(), "50%") {
		t.Errorf("got %v", err)
	}
}

// TestTemplateIsBounded: a small text makes no large one.
func TestTemplateIsBounded(t *testing.T) {
	big := map[string]string{"v": strings.Repeat("\\", 60_000)}
	for _, text := range []string{
		strings.Repeat("{{.vars.v}}", 1000),
		"{{ .vars.v" + strings.Repeat(" | quoteJSON", 1000) + " }}",
		"{{ if eq (.vars.v" + strings.Repeat(" | quoteJSON", 1000) + ") \"\" }}{{ end }}",
		strings.Repeat("{{ if eq (lower .vars.v) \"\" }}{{ end }}", 1000),
		"{{ join \"\"" + strings.Repeat(" .vars.v", 1000) + " }}",
	} {
		if out, err := (score.Template{Text: text, Vars: big}).Render(nil, nil); err == nil || len(out) > 1<<20 || !strings.Contains(err.Error(), "makes more than 1048576 bytes") {
			t.Errorf("%.40q: %d bytes, %v", text, len(out), err)
		}
	}
}

// TestTemplateBomb: what is too large is not made first, and refused then: a small device would not live to refuse it.
func TestTemplateBomb(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	for _, text := range []string{
		`{{ join "" ` + strings.Repeat(`(secret "a") `, 500) + "}}",
		`{{ join "" ` + strings.Repeat(`.vars.v `, 500) + "}}",
		`{{ join .vars.v ` + strings.Repeat(`"" `, 500) + "}}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := (score.Template{Text: text, Vars: map[string]string{"v": huge}}).Render(nil, map[string][]byte{"a": []byte(huge)})
		runtime.ReadMemStats(&after)
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || !strings.Contains(err.Error(), "makes more than 1048576 bytes") || made > 30 {
			t.Errorf("%.40q: %d MiB were made, %v", text, made, err)
		}
	}
}

func TestTemplateNames(t *testing.T) {
	tmpl := score.Template{Text: `{{ if .facts.arch }}{{ secret "b" }}{{ else }}{{ secret "a" | upper }}{{ end }}{{ secret "b" }}{{ .facts.model }}`}
	if got := tmpl.SecretNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("secrets are %v", got)
	}
	if got := tmpl.FactNames(); !slices.Equal(got, []string{"arch", "model"}) {
		t.Errorf("facts are %v", got)
	}
	f := score.File{Path: "/etc/f", Mode: 0o600, Template: &tmpl}
	if got := f.SecretNames(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("secrets of the file are %v", got)
	}
	if f.State = score.Absent; f.SecretNames() != nil {
		t.Error("a file that is to be gone needs secrets")
	}
	if !slices.IsSorted(score.FactNames) {
		t.Errorf("the facts are not sorted: %v", score.FactNames)
	}
}

// FuzzTemplate: whatever a template is, it is refused or filled in, in bounds, and what is refused
// by Check is not filled in.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"", "{{ .vars.url }}", `{{ secret "psk" | quoteJSON }}`, "{{ if eq .facts.arch \"a\" }}x{{ else if not .vars.empty }}{{ end }}",
		"{{ default \"x\" .facts.serial }}", "{{ range . }}", "{{define \"a\"}}{{end}}", "{{/**/}}", "{{ (upper (lower .vars.url)) }}", "{{- \"\\x00\" -}}",
		"{{ upper }}", "{{ join \"a\" \"b\" | and true | not }}", "{{ .vars.url.x }}", "{{ $x := 1 }}", "{{ true | printf }}", "{{ quoteSystemd \"%\" }}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		vars := maps.Clone(someVars)
		tmpl := score.Template{Text: text, Vars: vars}
		bad := templateProblems(tmpl)
		out, err := tmpl.Render(someFacts, someSecrets)
		if len(bad) > 0 && err == nil && len(text) <= 64<<10 {
			t.Errorf("%q has %q, and is filled in as %q", text, bad, out)
		}
		if len(out) > 1<<20 {
			t.Errorf("%d bytes", len(out))
		}
		if err != nil && strings.Contains(err.Error(), "50%") && !strings.Contains(text, "50%") {
			t.Errorf("a secret is in the error: %v", err)
		}
		if again, err2 := tmpl.Render(someFacts, someSecrets); again != out || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Errorf("%q and then %q", out, again)
		}
	})
}
