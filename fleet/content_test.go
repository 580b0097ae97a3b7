package fleet

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/schemas"
	"github.com/continuo-fleet/continuo/score"
)

// repository is a folder with a manifest's files, beside one that holds what is not the manifest's.
func repository(t *testing.T) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, content []byte) {
		t.Helper()
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("outside/secret", []byte("secret"))
	put("m/files/motd", []byte("Welcome.\r\n"))
	put("m/files/empty", nil)
	put("m/files/most", bytes.Repeat([]byte("x"), MaxInline))
	put("m/files/large", bytes.Repeat([]byte("x"), MaxInline+1))
	put("m/files/same", bytes.Repeat([]byte("x"), MaxInline+1))
	put("m/files/binary", []byte{0xff, 0xfe, 0})
	for link, to := range map[string]string{"files/inside": "motd", "files/out": "../../outside/secret", "away": "../outside", "absolute": filepath.Join(dir, "outside/secret")} {
		if err := os.Symlink(to, filepath.Join(dir, "m", link)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root, dir
}

func taking(from ...string) score.Manifest {
	m := score.Manifest{APIVersion: score.APIVersion, Kind: score.ManifestKind, Metadata: score.Metadata{Name: "m"},
		Spec: score.ManifestSpec{Target: score.Target{Device: "d"}, Policy: score.Policy{Preset: score.Converge}}}
	for i, f := range from {
		m.Spec.Scores = append(m.Spec.Scores, score.Score{ID: score.ID(fmt.Sprintf("s%d", i)), Spec: score.File{Path: fmt.Sprintf("/srv/%d", i), ContentFrom: f, Mode: 0o644}})
	}
	return m
}

func TestResolveContent(t *testing.T) { // X54, issue 4: content from the fleet repository
	root, _ := repository(t)
	m := taking("files/motd", "files/empty", "files/most", "files/large", "files/binary", "files/same", "files/inside")
	m.Spec.Scores = append(m.Spec.Scores, score.Score{ID: "other", Spec: score.File{Path: "/srv/o", Content: "as it is", Mode: 0o644}})
	before := m.Clone()
	out, contents, problems := ResolveContent(m, root)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if !reflect.DeepEqual(m, before) {
		t.Error("the manifest was changed")
	}
	if ps := out.Validate(); score.Errors(ps) > 0 {
		t.Errorf("what came of it is not valid: %v", ps)
	}
	file := func(i int) score.File { return out.Spec.Scores[i].Spec.(score.File) }
	for i, want := range []string{"Welcome.\r\n", "", strings.Repeat("x", MaxInline), "", "", "", "Welcome.\r\n", "as it is"} {
		if f := file(i); f.Content != want || f.ContentFrom != "" || (f.Blob != nil) != (i >= 3 && i <= 5) {
			t.Errorf("score %d has %d bytes, from %q, %v", i, len(f.Content), f.ContentFrom, f.Blob)
		}
	}
	if len(contents) != 2 || contents[0].File != "files/large" || contents[1].File != "files/binary" || file(3).Blob.SHA256 != file(5).Blob.SHA256 {
		t.Fatalf("contents are %v", contents)
	}
	for _, c := range contents {
		in, err := c.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(in)
		_ = in.Close()
		if ref, derr := DescribeBlob(bytes.NewReader(b)); err != nil || derr != nil || ref != c.BlobRef {
			t.Errorf("%s is %v, want %v, %v", c.File, ref, c.BlobRef, err)
		}
	}
}

func TestResolveContentRefuses(t *testing.T) { // X54, case 146
	root, dir := repository(t)
	for from, want := range map[string]string{
		"files/none":                     "there is no such file beside the manifest",
		"files":                          "it is no regular file",
		"files/out":                      "it leads out of the folder",
		"away/secret":                    "it leads out of the folder",
		"absolute":                       "it leads out of the folder",
		"../outside/secret":              "it must be the path of a file from the folder",
		filepath.Join(dir, "m/files/a"):  "it must be the path of a file from the folder",
		"files/motd/x":                   "cannot read it: not a directory",
		"files/../../outside/secret":     "it must be the path of a file from the folder",
		strings.Repeat("a", 300) + "/mo": "cannot read it: file name too long",
	} {
		m := taking("files/motd", from)
		out, contents, problems := ResolveContent(m, root)
		if len(problems) != 1 || problems[0].Path != "/spec/scores/1/spec/contentFrom" || problems[0].Severity != score.Error ||
			!strings.Contains(problems[0].Text, want) || !strings.Contains(problems[0].Text, `score "s1"`) {
			t.Errorf("%s: got %v, want …%s…", from, problems, want)
		}
		if contents != nil || !reflect.DeepEqual(out, m) {
			t.Errorf("%s: half of it was resolved", from)
		}
	}
	m := taking("files/large")
	f := m.Spec.Scores[0].Spec.(score.File)
	f.Normalize = []score.Normalization{score.NormalizeCRLF}
	m.Spec.Scores[0].Spec = f
	if _, _, problems := ResolveContent(m, root); len(problems) != 1 || problems[0].Path != "/spec/scores/0/spec/normalize" {
		t.Errorf("a blob is normalized: %v", problems)
	}
}

// What is not resolved is not published.
func TestUnresolvedIsNotPublished(t *testing.T) {
	_, err := assign([]score.Manifest{taking("files/motd")}, PublishOptions{})
	if err == nil || !strings.Contains(err.Error(), "/spec/scores/0/spec/contentFrom") {
		t.Errorf("got %v", err)
	}
}

// A content that is too large for the document is judged as one that is not.
func TestSecretBesideTheManifest(t *testing.T) { // G61
	root, dir := repository(t)
	const canary = "canary-88f2"
	large := strings.Repeat("name = kiosk\n", MaxInline/13+1)
	for name, content := range map[string]string{"plain": large, "secret": large + "password = " + canary + "\n", "binary": "\x00" + large + "password = " + canary + "\n",
		"behind": strings.Repeat("x", 200_000) + "\npassword = " + canary} {
		if err := os.WriteFile(filepath.Join(dir, "m", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, contents, problems := ResolveContent(taking("plain", "binary"), root); len(problems) > 0 || len(contents) != 2 {
		t.Errorf("got %d contents, %v", len(contents), problems)
	}
	_, _, problems := ResolveContent(taking("secret"), root)
	if len(problems) != 1 || problems[0].Path != "/spec/scores/0/spec/contentFrom" || strings.Contains(problems[0].Text, canary) ||
		!strings.Contains(problems[0].Text, fmt.Sprintf("a secret is written in secret (a name that says so, line %d)", MaxInline/13+2)) {
		t.Errorf("got %v", problems)
	}
	if _, _, problems := ResolveContent(taking("behind"), root); len(problems) != 1 || !strings.Contains(problems[0].Text, "line 2)") {
		t.Errorf("behind a long line: got %v", problems)
	}
	for _, name := range []string{"tls.key", "prod.env", "motd~"} { // X52
		if err := os.WriteFile(filepath.Join(dir, "m", name), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, problems := ResolveContent(taking(name), root); len(problems) != 1 || !strings.HasPrefix(problems[0].Text, name+" ") {
			t.Errorf("%s: got %v", name, problems)
		}
	}
	m := taking("secret")
	m.Spec.Scores[0].NoSecrets = true
	if _, contents, problems := ResolveContent(m, root); len(problems) > 0 || len(contents) != 1 {
		t.Errorf("an author who knows better: %d contents, %v", len(contents), problems)
	}
}

// The example is one: what it names is there, and it is valid before and after.
func TestExampleRepository(t *testing.T) {
	const file = "../examples/repository/welcome.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m, ds := schemas.ValidateWith(file, text, func(m *score.Manifest) []score.Problem {
		resolved, contents, problems := ResolveContent(*m, root)
		if *m = resolved; len(contents) > 0 {
			t.Errorf("%d blobs", len(contents))
		}
		return problems
	})
	if len(ds) > 0 {
		t.Fatal(ds)
	}
	if f := m.Spec.Scores[0].Spec.(score.File); !strings.HasPrefix(f.Content, "Welcome.") || f.ContentFrom != "" {
		t.Errorf("it is %+v", f)
	}
}
