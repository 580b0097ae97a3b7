package store

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"
)

func TestBackups(t *testing.T) { // G05, cases 27
	onBoth(t, func(t *testing.T, f FS) {
		s, _ := mustOpen(t, f)
		one, err := s.SaveBackup(Backup{Path: "/etc/motd", Mode: 0o4755, UID: 3, GID: 4}, []byte("hello\n"))
		must(t, err)
		if want := "motd.20261129T183000Z.5891b5b5"; one.Name != want {
			t.Fatalf("name %q, want %q", one.Name, want)
		}
		other, err := s.SaveBackup(Backup{Path: "/srv/motd", Mode: 0o644}, []byte("hello\n"))
		must(t, err)
		if want := "motd.20261129T183001Z.5891b5b5"; other.Name != want {
			t.Fatalf("name %q, want %q", other.Name, want)
		}
		again, err := s.SaveBackup(Backup{Path: "/etc/motd", Mode: 0o4755, UID: 3, GID: 4}, []byte("hello\n"))
		if err != nil || again != one {
			t.Fatalf("the same again: %+v %v", again, err)
		}
		long, err := s.SaveBackup(Backup{Path: "/etc/" + strings.Repeat("ü", 127)}, nil)
		must(t, err)
		s = reopen(t, s)
		list, err := s.Backups()
		if err != nil || len(list) != 3 || list[0] != one || list[1] != other || list[2].Name != long.Name {
			t.Fatalf("list %+v %v", list, err)
		}
		b, content, err := s.ReadBackup(one.Name)
		if err != nil || string(content) != "hello\n" || b.Mode != 0o4755 || b.UID != 3 || b.GID != 4 || b.Path != "/etc/motd" || b.Size != 6 {
			t.Fatalf("read %+v %q %v", b, content, err)
		}
		for _, name := range []string{"", "../ledger.1", "nothing"} {
			if _, _, err := s.ReadBackup(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("reading %q: %v", name, err)
			}
		}
		for _, path := range []string{"", "/", "."} {
			if _, err := s.SaveBackup(Backup{Path: path}, nil); err == nil {
				t.Errorf("%q was backed up", path)
			}
		}
		must(t, f.Replace(File{backupFolder + "/" + one.Name, []byte("hallo\n")}, File{backupFolder + "/" + other.Name + ".json", []byte("{")}))
		if _, _, err := s.ReadBackup(one.Name); !errors.Is(err, ErrDamaged) {
			t.Errorf("flipped content: %v", err)
		}
		if _, _, err := s.ReadBackup(other.Name); !errors.Is(err, ErrDamaged) {
			t.Errorf("damaged description: %v", err)
		}
		list, err = s.Backups()
		if err != nil || len(list) != 3 || list[1].Path != "" || !list[1].Time.Equal(clock.Add(time.Second)) {
			t.Errorf("list %+v %v", list, err)
		}
	})
}

// The name of a backup is reported, so that of a file with a secret in it tells nothing of its content.
func TestNameOfASecretBackupTellsNothing(t *testing.T) {
	s, _, err := Open(NewMem(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for mode, tells := range map[uint32]bool{0o600: false, 0o640: false, 0o644: true} {
		b, err := s.SaveBackup(Backup{Path: "/etc/x", Mode: mode}, []byte("hunter2"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.Name, b.SHA256[:8]); got != tells {
			t.Errorf("mode %04o: the name is %s, the digest %s", mode, b.Name, b.SHA256)
		}
		if again, err := s.SaveBackup(Backup{Path: "/etc/x", Mode: mode}, []byte("hunter2")); err != nil || again.Name != b.Name {
			t.Errorf("mode %04o: the same twice is %s and %s, %v", mode, b.Name, again.Name, err)
		}
	}
}
