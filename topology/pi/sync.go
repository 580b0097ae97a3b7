package pi

import (
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
