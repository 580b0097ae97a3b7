package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mistyped state directory stays as it is: it may be one that everybody needs.
func TestForeignDirectoryStays(t *testing.T) {
	tests := []struct {
		name    string
		holds   []string
		refused bool
	}{
		{"empty", nil, false},
		{"of others", []string{"passwd", "hosts"}, true},
		{"ours, with something of others", []string{"notes.txt", "ledger.0"}, false},
		{"a file system of its own", []string{"lost+found"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for _, name := range tt.holds {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s, _, err := Open(Dir(dir), Options{})
			if err == nil {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			st, serr := os.Stat(dir)
			if serr != nil {
				t.Fatal(serr)
			}
			if tt.refused {
				if err == nil || !strings.Contains(err.Error(), `such as "passwd"`) || st.Mode().Perm() != 0o755 {
					t.Errorf("got %v, mode %v", err, st.Mode())
				}
			} else if err != nil || st.Mode().Perm() != 0o700 {
				t.Errorf("got %v, mode %v", err, st.Mode())
			}
		})
	}
}
