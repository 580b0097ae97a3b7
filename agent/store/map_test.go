package store

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The map of README.md and doc.go.
var stateMap = regexp.MustCompile(`^((v1/)?(ledger\.[01]|journal\.[01]|intent/[^/]+\.[01])|(ledger\.[01]|journal\.[01]|intent/[^/]+\.[01]|good/[^/]+\.[01])\.damaged` +
	`|good/[^/]+\.[01]|asked/[A-Z2-7]+|receipts/\d{10}\.\d{8}T\d{6}Z\.[A-Za-z0-9-]{1,64}|backups/[^/]+\.\d{8}T\d{6}Z\.[0-9a-f]{8}(\.json)?)$`)

func inMap(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name := range files {
		if !stateMap.MatchString(name) {
			t.Errorf("%s is not in the map of the state directory", name)
		}
	}
}

// Nothing is in a state directory that its map does not name, and nobody else
// can read it, whatever the umask was.
func TestFilesAreInTheMap(t *testing.T) { // X57
	root := filepath.Join(t.TempDir(), "var", "state")
	s, _ := mustOpen(t, Dir(root))
	for _, op := range script() {
		must(t, op.do(s))
	}
	must(t, s.Close())
	must(t, os.WriteFile(filepath.Join(root, "ledger.0"), []byte("x"), 0o600))
	s, _ = mustOpen(t, Dir(root))
	must(t, s.Repair())

	files := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if d.IsDir() {
			want = 0o700
		} else {
			files[strings.TrimPrefix(path, root+"/")] = nil
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
	must(t, err)
	if len(files) < 14 {
		t.Errorf("only %v", files)
	}
	inMap(t, files)
	doc, err := os.ReadFile("README.md")
	must(t, err)
	for _, name := range []string{"ledger.0", "journal.0", "intent/", "good/", "receipts/", "backups/", "asked/", "v1/", ".damaged", ".continuo-"} {
		if !strings.Contains(string(doc), name) {
			t.Errorf("README.md does not explain %s", name)
		}
	}
}
