package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const day = 24 * time.Hour

// Backups of a path, oldest first, at the ages that are given.
func backupsOf(t *testing.T, s *Store, now *time.Time, path string, ages ...time.Duration) (names []string) {
	t.Helper()
	at := *now
	for _, age := range ages {
		*now = at.Add(-age)
		b, err := s.SaveBackup(Backup{Path: path, Mode: 0o644}, []byte(path+age.String()))
		must(t, err)
		names = append(names, b.Name)
	}
	*now = at
	return names
}

func TestRetentionOfBackups(t *testing.T) {
	tests := []struct {
		name string
		keep int
		age  time.Duration
		want string // of the backups of /etc/a, aged 9, 5, 3 and 1 days: which are left
	}{
		{"by count", 2, 0, "31"},
		{"by age", 10, 4 * day, "31"},
		{"both", 3, 2 * day, "1"},
		{"the newest stays, whatever its age", 10, time.Hour, "1"},
		{"the newest stays, whatever the count", 0, 0, "1"},
		{"nothing to do", 4, 10 * day, "9531"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, now := NewMem(), clock
			s, _, err := Open(m, Options{Now: func() time.Time { return now }})
			must(t, err)
			a := backupsOf(t, s, &now, "/etc/a", 9*day, 5*day, 3*day, 1*day)
			old := backupsOf(t, s, &now, "/srv/a", 100*day) // another file of the same base
			before := m.Stats()
			gone, err := s.PruneBackups(tt.keep, tt.age)
			must(t, err)
			if len(gone) == 0 && m.Stats() != before {
				t.Error("nothing was removed, and something written")
			}
			left, err := s.Backups()
			must(t, err)
			var got strings.Builder
			for i, name := range a {
				if slices.ContainsFunc(left, func(b Backup) bool { return b.Name == name }) {
					got.WriteByte("9531"[i])
				} else if !slices.Contains(gone, name) {
					t.Errorf("%s is gone and was not told", name)
				}
			}
			if got.String() != tt.want || !slices.ContainsFunc(left, func(b Backup) bool { return b.Name == old[0] }) {
				t.Errorf("left %s, want %s; of all %v", got.String(), tt.want, left)
			}
			if files, _ := m.List(backupFolder); len(files) != 2*len(left) {
				t.Errorf("files %v", files)
			}
			reopen(t, s)
		})
	}
}

// What the books name stays: an entry, an open action, and the entry before it.
func TestBackupsInUseStay(t *testing.T) {
	m, now := NewMem(), clock
	s, _, err := Open(m, Options{Now: func() time.Time { return now }})
	must(t, err)
	a := backupsOf(t, s, &now, "/etc/a", 9*day, 8*day, 7*day, 6*day, 5*day, 4*day)
	named := func(resource, backup string) Action {
		e := entry(resource, "m", 1)
		e.Backup = backup
		return apply(e)
	}
	must(t, s.Record(named("a", a[0]), named("b", a[1])))
	must(t, s.Begin(named("b", a[2])))
	gone, err := s.PruneBackups(1, 0)
	if err != nil || !slices.Equal(gone, a[3:5]) {
		t.Errorf("removed %v %v, want %v", gone, err, a[3:5])
	}
	must(t, s.End(Result{Resource: "file:/etc/b", LastChanged: 1}))
	gone, err = s.PruneBackups(1, 0)
	if err != nil || !slices.Equal(gone, a[1:2]) {
		t.Errorf("removed %v %v, want %v", gone, err, a[1:2])
	}
	if _, content, err := s.ReadBackup(a[0]); err != nil || len(content) == 0 {
		t.Errorf("the one in use: %v", err)
	}
}

// Whatever a file of a backup holds, Open does not care, nothing wrong is given
// back, and a description that is damaged keeps its content from being removed.
func TestEveryDamageOfABackup(t *testing.T) { // cases 123
	m := NewMem()
	s, _ := openMem(t, m)
	one, err := s.SaveBackup(Backup{Path: "/etc/a", Mode: 0o644}, []byte(strings.Repeat("first content\n", 9)))
	must(t, err)
	_, err = s.SaveBackup(Backup{Path: "/etc/a", Mode: 0o644}, []byte("second content"))
	must(t, err)
	must(t, s.Close())
	files := m.Files()
	n := 0
	for _, file := range []string{backupFolder + "/" + one.Name, backupFolder + "/" + one.Name + metaSuffix} {
		for kind, damaged := range damages(file, files[file]) {
			n++
			m := memOf(files)
			m.Put(file, damaged)
			s, rec := openMem(t, m)
			if len(rec.Findings) > 0 {
				t.Errorf("%s %s: findings %v", file, kind, rec.Findings)
			}
			b, content, err := s.ReadBackup(one.Name)
			if err == nil && string(content) != strings.Repeat("first content\n", 9) || err != nil && content != nil {
				t.Errorf("%s %s: gave %q %v", file, kind, content, err)
			}
			gone, perr := s.PruneBackups(1, 0)
			must(t, perr)
			if damaged != nil && errors.Is(err, ErrDamaged) && b.Path == "" && len(gone) > 0 {
				t.Errorf("%s %s: removed %v", file, kind, gone)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d damages", n)
	}
}

// Backups whose paths are not known any more are for people: one of them may be the
// only one that there is of its path.
func TestBackupsOfUnknownPathsStay(t *testing.T) {
	m, now := NewMem(), clock
	s, _, err := Open(m, Options{Now: func() time.Time { return now }})
	must(t, err)
	for _, name := range backupsOf(t, s, &now, "/etc/a", 9*day, 5*day, 3*day) {
		m.Put(backupFolder+"/"+name+metaSuffix, []byte("damaged"))
	}
	if gone, err := s.PruneBackups(1, time.Hour); err != nil || gone != nil {
		t.Errorf("removed %v %v", gone, err)
	}
}

// Two contents of one path within a second keep their order.
func TestBackupsOfTheSameSecond(t *testing.T) {
	s, _ := mustOpen(t, NewMem())
	var last Backup
	for _, content := range []string{"one", "two", "three", "four"} {
		b, err := s.SaveBackup(Backup{Path: "/etc/a"}, []byte(content))
		must(t, err)
		if !b.Time.After(last.Time) {
			t.Errorf("%s is not after %s", b.Name, last.Name)
		}
		last = b
	}
	if _, err := s.PruneBackups(1, 0); err != nil {
		t.Fatal(err)
	}
	if left, err := s.Backups(); err != nil || len(left) != 1 || left[0] != last {
		t.Errorf("left %v %v, want %v", left, err, last)
	}
}
