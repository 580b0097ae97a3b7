package continuo_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"testing"
)

// What travels and what lies on devices does not change by the way: the golden bytes of the wire and the state
// directories are in the changelog by their digest, so that whoever changes them stands before it, and says what is new (S45).
func TestFormatsAreInTheChangelog(t *testing.T) {
	log, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ name, dir string }{
		{"wire", "internal/wire/testdata/wire"},
		{"state directory", "agent/store/testdata/state"},
	} {
		want := fmt.Sprintf("%s `%s`", f.name, digestOfDir(t, f.dir))
		if !bytes.Contains(log, []byte(want)) {
			t.Errorf("the golden files of %s are not those of the changelog: say there what changed, and write in its line \"Formats\": %s", f.dir, want)
		}
	}
}

// digestOfDir is the beginning of the sha256 over the names and the bytes of all files.
func digestOfDir(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	n := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(dir + "/" + path)
		fmt.Fprintf(h, "%s %d\n%s\n", path, len(content), content)
		n++
		return err
	})
	if err != nil || n == 0 {
		t.Fatalf("%d golden files in %s: %v", n, dir, err)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
