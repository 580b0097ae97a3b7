package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/continuo-fleet/continuo/topology"
)

// A snapshot remembers what it looked at.
type snapshot struct {
	files files
	paths []string // in the order in which they were looked at
	seen  map[string]*seen
}

// seen is what was found at a path: a copy of the inode, nil of what was not there.
type seen struct {
	was    *inode
	listed bool
	names  []string
}

// Snapshot begins a snapshot.
func (f files) Snapshot() topology.Snapshot { return &snapshot{files: f, seen: map[string]*seen{}} }

// look returns what is at p, which must be what it was before, if somebody looked. The lock is held.
func (s *snapshot) look(p string) (*inode, *seen, error) {
	n, err := s.files.d.lookup(p)
	if err != nil {
		return nil, nil, err
	}
	before, looked := s.seen[p]
	if !looked {
		before = &seen{}
		if n != nil {
			before.was = new(inode)
			*before.was = *n
			before.was.content, before.was.attrs = slices.Clone(n.content), maps.Clone(n.attrs)
		}
		s.paths, s.seen[p] = append(s.paths, p), before
		return n, before, nil
	}
	if !before.is(n) {
		return nil, nil, topology.Faultf(topology.CodeChanged, "%s was changed while it was read together with others", p)
	}
	return n, before, nil
}

func (s *seen) is(n *inode) bool {
	a := s.was
	if a == nil || n == nil {
		return a == nil && n == nil
	}
	return a.id == n.id && a.typ == n.typ && a.mode == n.mode && a.uid == n.uid && a.gid == n.gid && a.links == n.links && a.target == n.target &&
		(a.typ == topology.Directory || a.changed.Equal(n.changed) && slices.Equal(a.content, n.content))
}

func (s *snapshot) Look(ctx context.Context, p string) (topology.FileState, error) {
	d := s.files.d
	if err := d.control.call(ctx, OpFile, fileResource(p)); err != nil {
		return topology.FileState{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n, _, err := s.look(p)
	if err != nil {
		return topology.FileState{}, err
	}
	if n == nil {
		return topology.FileState{Type: topology.Absent}, nil
	}
	return topology.FileState{
		Type: n.typ, Size: int64(len(n.content)), Mode: n.mode, UID: n.uid, GID: n.gid, Links: n.links, Target: n.target,
		Owner: name(d.users, n.uid), Group: name(d.groups, n.gid),
	}, nil
}

func (s *snapshot) Content(ctx context.Context, p string, limit int64) ([]byte, error) {
	d := s.files.d
	if err := d.control.call(ctx, OpContent, fileResource(p)); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n, _, err := s.look(p)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, topology.Faultf(topology.CodeUnknown, "%s does not exist", p)
	}
	if err := regular(p, n); err != nil {
		return nil, err
	}
	if int64(len(n.content)) > limit {
		return nil, topology.Faultf(topology.CodeInvalid, "%s has %d bytes, more than the %d that may be read", p, len(n.content), limit)
	}
	return append([]byte{}, n.content...), nil
}

func (s *snapshot) Entries(ctx context.Context, p string, limit int) ([]string, int, error) {
	d := s.files.d
	if err := d.control.call(ctx, OpEntries, fileResource(p)); err != nil {
		return nil, 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	n, saw, err := s.look(p)
	if err == nil {
		err = listable(p, n)
	}
	if err != nil {
		return nil, 0, err
	}
	names := d.names(p)
	saw.listed, saw.names = true, names
	more := max(0, len(names)-limit)
	return slices.Clone(names[:len(names)-more]), more, nil
}

func (s *snapshot) Settle(ctx context.Context) error {
	d := s.files.d
	if err := ctx.Err(); err != nil {
		return topology.FaultOf(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range s.paths {
		_, saw, err := s.look(p)
		if err == nil && saw.listed && !slices.Equal(saw.names, d.names(p)) {
			err = topology.Faultf(topology.CodeChanged, "%s was changed while it was read together with others", p)
		}
		if err != nil { // a link on the way as well: it was not there before
			return topology.Faultf(topology.CodeChanged, "%v", err)
		}
	}
	return nil
}
