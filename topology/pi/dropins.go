package pi

import (
	"cmp"
	"context"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

const (
	maxDropIns = 64       // of a unit, that are looked at
	maxDropIn  = 64 << 10 // bytes of one, that are read
)

func (s *services) dropInDir(unit string) string { return s.dir + unit + ".d" }

func (s *services) dropInPath(unit, name string) string {
	return s.dropInDir(unit) + "/" + name + ".conf"
}

// checkDropIn refuses what is no name of a drop-in.
func checkDropIn(name string) error {
	if name == "" || len(name) > 200 || path.Base(name) != name || name[0] == '.' || strings.IndexByte(name, 0) >= 0 {
		return topology.Faultf(topology.CodeInvalid, "%q is not the name of a drop-in, such as 10-env", name)
	}
	return nil
}

// dropIns are the drop-ins of a unit: those that were loaded, and those that are in the place
// of manifests and were not, because the unit is masked or gone.
func (s *services) dropIns(ctx context.Context, unit string, loaded []string) ([]topology.DropIn, error) {
	paths := slices.Clone(loaded[:min(len(loaded), maxDropIns)])
	dir := s.dropInDir(unit)
	for _, name := range s.list(dir) {
		if p := dir + "/" + name; strings.HasSuffix(name, ".conf") && name[0] != '.' && !slices.Contains(paths, p) && len(paths) < maxDropIns {
			paths = append(paths, p)
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	// Systemd reads them by their names, wherever they are.
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(path.Base(a), path.Base(b)) })
	out := make([]topology.DropIn, 0, len(paths))
	for _, p := range paths {
		d, err := s.dropIn(ctx, dir, p)
		if err != nil {
			return nil, err
		}
		if d.Path != "" {
			out = append(out, d)
		}
	}
	return out, nil
}

// dropIn looks at one; its path is empty if it is gone. One that cannot be read is a drop-in all the same.
func (s *services) dropIn(ctx context.Context, dir, p string) (topology.DropIn, error) {
	d := topology.DropIn{Path: p}
	st, err := s.files.File(ctx, p)
	if err != nil || st.Type != topology.Regular {
		if ctx.Err() != nil {
			return d, topology.FaultOf(ctx.Err())
		}
		if st.Type == topology.Absent {
			d.Path = ""
		}
		return d, nil
	}
	d.Mark, d.SHA256, d.Mode = st.Mark, st.SHA256, st.Mode
	text, err := s.files.Content(ctx, p, maxDropIn)
	if err != nil {
		return d, nil
	}
	d.Settings = topology.UnitSettings(string(text))
	if path.Dir(p) == dir && strings.HasPrefix(string(text), topology.DropInHeader) && (st.Mark != "" || !s.marks(dir)) {
		d.Name = strings.TrimSuffix(path.Base(p), ".conf")
	}
	return d, nil
}

// marks reports whether files in a directory can carry a mark.
func (s *services) marks(dir string) bool {
	fd, err := s.files.tree.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	return hasUserAttrs(fd)
}

// list names what is in a directory; nothing if there is none.
func (s *services) list(dir string) []string {
	fd, err := s.files.tree.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), dir)
	defer f.Close()
	names, _ := f.Readdirnames(4 * maxDropIns)
	slices.Sort(names)
	return names
}

// RemoveDropIn removes a drop-in that Define wrote.
func (s *services) RemoveDropIn(ctx context.Context, unit, name string) error {
	if err := checkUnit(unit); err != nil {
		return err
	}
	if err := checkDropIn(name); err != nil {
		return err
	}
	p := s.dropInPath(unit, name)
	now, err := s.files.File(ctx, p)
	if err != nil || now.Type == topology.Absent {
		return err
	}
	d, err := s.dropIn(ctx, s.dropInDir(unit), p)
	if err != nil {
		return err
	}
	if d.Name == "" {
		return topology.Faultf(topology.CodeForeign, "%s was written by somebody else, and stays", p)
	}
	if err := s.files.RemoveFile(ctx, p); err != nil {
		return err
	}
	return s.files.removeEmpty(s.dropInDir(unit))
}

// removeEmpty removes a directory if nothing is in it.
func (f *files) removeEmpty(p string) error {
	up, err := f.tree.open(path.Dir(p), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return f.tree.fault("remove", p, err)
	}
	defer unix.Close(up)
	switch err := unix.Unlinkat(up, path.Base(p), unix.AT_REMOVEDIR); err {
	case nil:
		return f.syncs.sync(up)
	case unix.ENOTEMPTY, unix.EEXIST, unix.ENOENT, unix.ENOTDIR:
		return nil
	default:
		return f.tree.fault("remove", p, err)
	}
}
