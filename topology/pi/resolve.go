package pi

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// Resolve follows links.
func (f *files) Resolve(ctx context.Context, p string) (string, error) {
	if err := checkPath(p); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", topology.FaultOf(err)
	}
	if target, err := f.readlink(p); err == nil && target == "" { // no link at its end, and none on the way
		return p, nil
	}
	return topology.Follow(p, func(at string) (string, error) {
		target, err := f.readlink(at)
		if err == unix.ENOENT || err == unix.ENOTDIR {
			return "", nil
		}
		if err != nil {
			return "", f.tree.fault("follow", p, err)
		}
		return target, nil
	})
}

// readlink is where the link p leads; empty: it is none.
func (f *files) readlink(p string) (string, error) {
	fd, err := f.tree.open(p, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	target, err := readlink(fd)
	if err != nil {
		return "", nil
	}
	return target, nil
}
