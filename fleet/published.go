package fleet

import (
	"context"

	"github.com/continuo-fleet/continuo/score"
)

// Published reads what is published for d, if one of keys signed it. ok is false if nothing is.
func (f *Fleet) Published(ctx context.Context, d Device, keys KeySet) (as score.Assignment, ok bool, err error) {
	if err := d.Check(); err != nil {
		return as, false, err
	}
	doc, err := f.present(ctx, d, keys)
	return doc.assignment, doc.found && err == nil, err
}
