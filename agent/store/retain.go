package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// PruneBackups removes backups of which there are keep newer ones of the same
// path, and those older than age; an age of 0 is no bound. The newest of each
// path stays, and so do those that an entry or an open action names, and those
// whose description is damaged. It returns the names of those that it removed.
//
// It must not run between SaveBackup and the Begin that names the backup.
func (s *Store) PruneBackups(keep int, age time.Duration) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsettled {
		if err := s.ready(); err != nil {
			return nil, err
		}
	}
	all, err := s.backups(func(string) bool { return true })
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, e := range s.order {
		used[e.Backup] = true
	}
	for _, o := range s.open {
		used[o.Entry.Backup] = true
		if o.Previous != nil {
			used[o.Previous.Backup] = true
		}
	}
	slices.SortFunc(all, func(a, b Backup) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.Name, a.Name)) })
	oldest := s.now().Add(-age)
	newer := map[string]int{} // by path
	var drop []string
	for _, b := range all {
		n := newer[b.Path]
		newer[b.Path]++
		switch {
		case b.Path == "", n == 0, n < keep && (age <= 0 || !b.Time.Before(oldest)):
		case used[b.Name]:
		default:
			drop = append(drop, b.Name)
		}
	}
	if len(drop) == 0 {
		return nil, nil
	}
	if err := s.ready(); err != nil {
		return nil, err
	}
	// Content first: a description without content is no backup.
	var files []string
	for _, name := range drop {
		files = append(files, backupFolder+"/"+name, backupFolder+"/"+name+metaSuffix)
	}
	if err := s.remove(files...); err != nil {
		return nil, fmt.Errorf("cannot remove old backups: %w", err)
	}
	slices.Sort(drop)
	return drop, nil
}
