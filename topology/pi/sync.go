package pi

import (
	"path"
	"sync"

	"golang.org/x/sys/unix"
)

// dirSyncs flushes directories. Callers that change one directory at the same time share
// a flush: one that began before a caller's change does not count for him, the next does.
type dirSyncs struct {
	mu   sync.Mutex
	next map[dirID]*dirSync
	busy map[dirID]chan struct{} // closed when the flush that runs is done
}

type dirID struct{ dev, ino uint64 }

type dirSync struct {
	done chan struct{}
	err  error
}

func (s *dirSyncs) sync(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	id := dirID{st.Dev, st.Ino}
	s.mu.Lock()
	if s.next == nil {
		s.next, s.busy = map[dirID]*dirSync{}, map[dirID]chan struct{}{}
	}
	if join, ok := s.next[id]; ok {
		s.mu.Unlock()
		<-join.done
		return join.err
	}
	mine := &dirSync{done: make(chan struct{})}
	for before := s.busy[id]; before != nil; before = s.busy[id] {
		s.next[id] = mine
		s.mu.Unlock()
		<-before
		s.mu.Lock()
	}
	if s.next[id] == mine {
		delete(s.next, id)
	}
	s.busy[id] = mine.done
	s.mu.Unlock()

	mine.err = fsync(fd)

	s.mu.Lock()
	delete(s.busy, id)
	s.mu.Unlock()
	close(mine.done)
	return mine.err
}

// flush makes durable what a daemon did at p without syncing it: a file that it wrote,
// or a link that it made or removed, maybe in a directory that it made as well.
func (f *files) flush(p string) error {
	fd, err := f.tree.open(p, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW)
	if err == nil {
		err = fsync(fd)
		_ = unix.Close(fd)
	}
	if err != nil && err != unix.ENOENT && err != unix.ELOOP {
		return f.tree.fault("sync", p, err)
	}
	for dir, n := path.Dir(p), 0; n < 2; dir, n = path.Dir(dir), n+1 {
		fd, err := f.tree.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == unix.ENOENT { // the last link was removed, and its directory
			continue
		}
		if err == nil {
			err = f.syncs.sync(fd)
			_ = unix.Close(fd)
		}
		if err != nil {
			return f.tree.fault("sync", dir, err)
		}
	}
	return nil
}
