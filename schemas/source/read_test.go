package source

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

func TestResolve(t *testing.T) { // cases 1, 4, 6, 18, 21
	tests := []struct{ in, want string }{
		{"", "n null"}, {"~", "n null"}, {"null", "n null"}, {"NULL", "n null"}, {"nUll", `" nUll`},
		{"true", "b true"}, {"TRUE", "b true"}, {"False", "b false"}, {"y", `" y`},
		{"yes", "? true or false"}, {"No", "? true or false"}, {"OFF", "? true or false"}, {"on", "? true or false"},
		{"0", "0 0"}, {"644", "0 644"}, {"-1", "0 -1"}, {"1.10", "0 1.10"}, {"1.0e+3", "0 1.0e+3"}, {"-0.5", "0 -0.5"},
		{"0644", "? a number"}, {"0o644", "? a number"}, {"0x1F", "? a number"}, {"0b11", "? a number"}, {"1_000", "? a number"},
		{"+1", "? a number"}, {".5", "? a number"}, {"1.", "? a number"}, {"1e3", "? a number"}, {"12e03", "? a number"}, {"08", "? a number"},
		{".inf", "? no number"}, {"-.INF", "? no number"}, {".NaN", "? no number"},
		{"22:22", "? a number in base 60"}, {"1:30:00", "? a number in base 60"}, {"8080:80", `" 8080:80`}, {"127.0.0.1:80:80", `" 127.0.0.1:80:80`},
		{"2024-01-01", "? a date"}, {"2001-12-14t21:59:43.10-05:00", "? a date"}, {"2024-01-01 10:00:00", "? a date"},
		{"1.2.3", `" 1.2.3`}, {"192.0.2.1", `" 192.0.2.1`}, {"-", `" -`}, {".", `" .`}, {"...", `" ...`}, {"-x", `" -x`}, {"1a", `" 1a`}, {"0xyz", `" 0xyz`},
		{"/etc/x", `" /etc/x`}, {"90s", `" 90s`},
	}
	for _, tt := range tests {
		kind, canonical, what := resolve(tt.in)
		got := fmt.Sprintf("%c %s", kind, canonical)
		if what != "" {
			got = "? " + what
		}
		if got != tt.want {
			t.Errorf("%q is %s, want %s", tt.in, got, tt.want)
		}
	}
}

func TestRead(t *testing.T) {
	tests := []struct {
		name, file, in string
		json           string // what is read, without what was reported
		want           string // every diagnostic
	}{
		{"plain", "a.yaml", "a: b\nc: [1, true, x]\n", `{"a":"b","c":[1,true,"x"]}`, ""},
		{"BOM", "a.yaml", "\ufeffa: b\n", `{"a":"b"}`, ""},
		{"CRLF", "a.yaml", "a: |\r\n  x\r\n  y\r\nb: \"x\\r\\ny\"\r\n", `{"a":"x\ny\n","b":"x\r\ny"}`, ""},
		{"folded, stripped, kept", "a.yaml", "a: >\n  x\n  y\nb: |-\n  x\nc: |+\n  x\n\n", `{"a":"x y\n","b":"x","c":"x\n\n"}`, ""},
		{"quotes", "a.yaml", "'no': 'yes'\n\"1\": \"0644\"\n", `{"no":"yes","1":"0644"}`, ""},
		{"pointers", "a.yaml", "a/b: {c~d: 0644}\n", `{"a/b":{}}`, `a.yaml:1:12: /a~1b/c~0d: 0644 is not the same number to all YAML readers: put it in quotes, "0644"`},
		{"JSON in a YAML file", "a.yaml", "{\"a\": [1.5, \"x\\u00e9\"],\n\t\"b\": {}}", `{"a":[1.5,"xé"],"b":{}}`, ""},
		{"stdin is JSON", "-", " \n{\"a\": 1.50}", " \n{\"a\": 1.50}", ""},
		{"stdin is YAML", "-", "{a: 1.50}", `{"a":1.50}`, ""},
		{"twice", "a.yaml", "a: 1\nb:\n  a: 1\na: 2\n", `{"b":{"a":1}}`, `a.yaml:4:1: /a: key "a" is given twice: here and on line 1`},
		{"twice in JSON", "a.json", "{\"a\": 1,\n \"\\u0061\": 2}", `{}`, `a.json:2:2: /a: key "a" is given twice: here and on line 1`},
		{"thrice", "a.yaml", "a: 1\na: 2\na: 3\n", `{}`, "a.yaml:2:1: /a: key \"a\" is given twice: here and on line 1\na.yaml:3:1: /a: key \"a\" is given twice: here and on line 1"},
		{"merge key", "a.yaml", "b: &b {c: 1}\na: {<<: *b, d: 1}\n", `{}`, "a.yaml:1:4: /b: " + noAnchors},
		{"merge key alone", "a.yaml", "a: {<<: {c: 1}, d: 1}\n", `{}`, "a.yaml:1:5: /a: " + noAnchors},
		{"unknown alias", "a.yaml", "a: *b\n", "", "a.yaml:1:4: cannot read YAML: " + noAnchors},
		{"non-specific tag", "a.yaml", "a: ! 12\n", `{}`, "a.yaml:1:4: /a: tag ! is not part of the language: write the value as it is, and text in quotes"},
		{"tagged key", "a.yaml", "!!str a: 1\n", `{}`, "a.yaml:1:1: /a: tag !!str is not part of the language"},
		{"null in an extension", "a.yaml", "extensions: {x: {a: ~}, y: }\n", `{"extensions":{"x":{"a":null},"y":null}}`, ""},
		{"two documents", "a.yaml", "a: 1\n---\nb: 1\n---\nc: 1\n", "", "a.yaml:3:1: file has 3 documents: put each manifest into a file of its own"},
		{"two documents in JSON", "a.json", "{}{}", "", "a.json:1:4: cannot read JSON: file has more than 1 document: put each manifest into a file of its own"},
		{"empty documents around", "a.yaml", "---\n---\na: 1\n---\n# end\n", `{"a":1}`, ""},
		{"columns are characters", "a.json", "{\"é\": \"ü\", \"x\": null}", `{"é":"ü"}`, `a.json:1:17: /x: no value: give one (empty text is "", an empty list [], an empty mapping {}), or leave the key out`},
		{"JSON null", "a.json", "null", "", "a.json:1:1: no manifest in file"},
		{"deep JSON", "a.json", strings.Repeat("[", 100) + strings.Repeat("]", 100), "", "a.json:1:65: cannot read JSON: more than 64 levels of mappings and lists"},
		{"lone surrogate", "a.json", `{"a":"\ud800"}`, "", "a.json:1:7: cannot read JSON: invalid surrogate pair `\\ud800\"}` in string"},
		{"UTF-16", "a.yaml", "\xff\xfea\x00", "", "a.yaml:1:1: file is UTF-16: save it as UTF-8"},
		{"not UTF-8", "a.json", "{\n\"\xff\"", "", "a.json:2:2: byte 0xff is not UTF-8: save the file as UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := Read(tt.file, []byte(tt.in))
			if got := lines(d.Diagnostics()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			got := ""
			if d.Readable() {
				got = string(d.JSON())
			}
			if got != tt.json {
				t.Errorf("read %s, want %s", got, tt.json)
			}
		})
	}
}

func lines(ds []Diagnostic) string {
	out := make([]string, len(ds))
	for i, d := range ds {
		out[i] = d.String()
	}
	return strings.Join(out, "\n")
}

// bomb is a text that is small, and expands.
func bomb(merge bool) string {
	var b strings.Builder
	b.WriteString("a: &a {k: v}\n")
	for i := 'b'; i <= 'j'; i++ {
		list := strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", i-1), 9), ",")
		if merge {
			fmt.Fprintf(&b, "%c: &%c {<<: [%s]}\n", i, i, list)
		} else {
			fmt.Fprintf(&b, "%c: &%c [%s]\n", i, i, list)
		}
	}
	return b.String()
}

// TestBombs: texts that are made to be expensive are refused for the memory of a small
// text (case 10). What is measured is everything that was ever allocated.
func TestBombs(t *testing.T) {
	tests := []struct{ name, file, in string }{
		{"billion laughs", "a.yaml", bomb(false)},
		{"merge keys", "a.yaml", bomb(true)},
		{"recursive anchor", "a.yaml", "a: &a [*a]\nb: &b {b: *b}\n<<: &c {<<: *c}\n"},
		{"deep flow", "a.yaml", strings.Repeat("[", 1<<20)},
		{"deep flow mappings", "a.yaml", strings.Repeat("{a: ", 1<<19)},
		{"deep block", "a.yaml", strings.Repeat("- ", 1<<19)},
		{"deep keys", "a.yaml", strings.Repeat("? ", 1<<19)},
		{"deep JSON", "a.json", strings.Repeat(`{"a":`, 1<<19)},
		{"many documents", "a.yaml", strings.Repeat("--- a\n", 10000)},
		{"many items", "a.yaml", "[" + strings.Repeat("a,", maxMarks/10) + "]"},
		{"too many items", "a.yaml", "[" + strings.Repeat("a,", maxMarks+1) + "]"},
		{"many lines", "a.yaml", strings.Repeat("- \n", maxMarks+1)},
		{"10 MB", "a.yaml", strings.Repeat("a: b # c\n", 10<<20/9)},
		{"10 MB of JSON", "a.json", `{"a":"` + strings.Repeat("x", 10<<20) + `"}`},
		{"many values", "a.json", `{"a":[` + strings.Repeat("5,", 1<<20) + "5]}"},
		{"exponent", "a.json", `{"a":1e999999999}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := []byte(tt.in)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m, ds := Manifest(tt.file, data)
			runtime.ReadMemStats(&after)
			if Errors(ds) == 0 {
				t.Errorf("it is taken for a manifest: %+v", m)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	type inner struct {
		URLs []string `json:"urls"`
	}
	type configuration struct {
		Device string     `json:"device"`
		Mode   score.Mode `json:"mode,omitempty"`
		Level  string     `json:"level,omitempty" jsonschema:"enum=low,enum=high"`
		NATS   *inner     `json:"nats,omitempty"`
	}
	var c configuration
	ds := Decode("agent.yaml", []byte("device: pi-7\nmode: 600\nlevel: hihg\nnats: {url: []}\n"), &c, nil)
	want := `agent.yaml:2:7: /mode: found the number 600 where text is wanted: put it in quotes, "0600"
agent.yaml:3:8: /level: unknown level "hihg", did you mean "high"? There are "low", "high"` + "\nagent.yaml:4:8: /nats/url: unknown field `url`, did you mean `urls`?"
	if got := lines(ds); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	ds = Decode("agent.yaml", []byte("device: pi-7\nnats: {urls: [a]}\n"), &c, func() []score.Problem {
		return []score.Problem{{Path: "/nats/urls/0", Severity: score.Warning, Text: c.NATS.URLs[0]}}
	})
	if got := lines(ds); got != "agent.yaml:2:15: /nats/urls/0: warning: a" || Errors(ds) != 0 {
		t.Errorf("got %s", got)
	}
}

// TestStages: what one stage reports, later stages do not report again.
func TestStages(t *testing.T) {
	d := Read("a.yaml", []byte("a: {b: 0644, c: x}\nd: x\n"))
	d.NextStage()
	for _, path := range []string{"", "/a", "/a/b", "/a/b/c", "/a/c", "/a/c", "/d", "/dx"} {
		d.Report(path, score.Error, "found in the second stage")
	}
	var got []string
	for _, g := range d.Diagnostics() {
		got = append(got, g.Path)
	}
	if want := "[/a/b /a/c /d /dx]"; len(got) != 4 || !strings.Contains(fmt.Sprint(got), "/a/c") || strings.Contains(fmt.Sprint(got), "/a ") {
		t.Errorf("reported at %v, want %s", got, want)
	}
}

// TestManyWarnings: warnings hide no error, and are none however many there are.
func TestManyWarnings(t *testing.T) {
	read := func(errors int) []Diagnostic {
		d := Read("a.yaml", []byte("a: [x]\nb: x\n"))
		for i := range 2000 {
			d.Report(fmt.Sprintf("/a/0/%d", i), score.Warning, "warning %d", i)
		}
		for i := range errors {
			d.Report(fmt.Sprintf("/b/%d", i), score.Error, "error %d", i)
		}
		ds := d.Diagnostics()
		if (Errors(ds) == 0) != (errors == 0) {
			t.Errorf("%d errors, and %d are told", errors, Errors(ds))
		}
		return ds
	}
	if ds := read(0); len(ds) != maxShown+1 || Errors(ds) != 0 || ds[maxShown].Text != "and 1900 more" {
		t.Errorf("warnings only: %d, %d errors, the last is %s", len(ds), Errors(ds), ds[len(ds)-1])
	}
	if ds := read(1); Errors(ds) != 1 || ds[maxShown].Text != "and 1901 more" {
		t.Errorf("an error among warnings: %d errors, the last is %s", Errors(ds), ds[len(ds)-1])
	}
	d := Read("a.yaml", []byte("a: [x]\nb: x\n"))
	d.Report("/b", score.Error, "the error")
	for i := range 500 {
		d.Report(fmt.Sprintf("/a/%d", i), score.Warning, "warning %d", i)
	}
	ds := d.Diagnostics()
	if Errors(ds) != 1 || ds[maxShown-1].Text != "the error" {
		t.Errorf("an error behind warnings: %s", lines(ds[maxShown-2:]))
	}
}

// FuzzRead: no text makes the reader panic; what it takes is JSON, and reading that JSON
// gives the same.
func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"../testdata/bad/*", "../testdata/good/*"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(filepath.Ext(p), b)
		}
	}
	f.Add(".yaml", []byte(bomb(true)))
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		file := "a" + ext
		_, ds := Manifest(file, data)
		for _, d := range ds {
			if d.Line < 1 || d.Column < 1 || d.Text == "" || d.File != file {
				t.Errorf("no place or no words: %+v", d)
			}
		}
		d := Read(file, data)
		if !d.Readable() {
			if len(d.Diagnostics()) == 0 {
				t.Fatal("it cannot be read, and nothing is said")
			}
			return
		}
		first := d.JSON()
		again := Read("a.json", first)
		if !again.Readable() {
			t.Fatalf("what was read is no JSON: %s", again.Diagnostics())
		}
		if Errors(d.Diagnostics()) == 0 && !bytes.Equal(again.root.appendJSON(nil), d.root.appendJSON(nil)) {
			t.Errorf("read %s, and then %s", d.root.appendJSON(nil), again.root.appendJSON(nil))
		}
	})
}

func BenchmarkManifest(b *testing.B) {
	y, j := thousandFiles(b)
	for _, bb := range []struct {
		file string
		data []byte
	}{{"a.yaml", y}, {"a.json", j}} {
		b.Run(bb.file[2:], func(b *testing.B) {
			b.SetBytes(int64(len(bb.data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, ds := Manifest(bb.file, bb.data); len(ds) > 0 {
					b.Fatal(ds[0])
				}
			}
		})
	}
}

// thousandFiles is a manifest of 1,000 files of 1 KiB.
func thousandFiles(b *testing.B) (yaml, json []byte) {
	b.Helper()
	var y strings.Builder
	y.WriteString("apiVersion: continuo/v1\nkind: Manifest\nmetadata: {name: files}\nspec:\n  target: {device: pi-7}\n  policy: {preset: converge}\n  scores:\n")
	for i := range 1000 {
		fmt.Fprintf(&y, "    - kind: file\n      id: f%d\n      spec:\n        path: /etc/files/%d.conf\n        mode: \"0644\"\n        content: |\n", i, i)
		for j := range 16 {
			fmt.Fprintf(&y, "          %02d %s\n", j, strings.Repeat("x", 60))
		}
	}
	m, ds := Manifest("a.yaml", []byte(y.String()))
	if len(ds) > 0 {
		b.Fatal(ds[0])
	}
	j, err := score.Encode(m)
	if err != nil {
		b.Fatal(err)
	}
	return []byte(y.String()), j
}
