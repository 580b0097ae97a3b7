package fleet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// An edit is what is done to the document of one device.
type edit struct {
	put    []score.Manifest
	remove string
}

// merge gives the assignment after an edit, and what the edit changes. status is what the device said last, if anything.
func merge(as score.Assignment, e edit, status *interpret.DeviceStatus) (score.Assignment, []ManifestChange, error) {
	as.Spec.Manifests = slices.Clone(as.Spec.Manifests)
	var changes []ManifestChange
	for _, m := range e.put {
		i := slices.IndexFunc(as.Spec.Manifests, func(o score.Manifest) bool { return o.Metadata.Name == m.Metadata.Name })
		c := ManifestChange{Name: m.Metadata.Name, Action: Added, Generation: 1 + plausible(as.Metadata.Generation, reported(status, m.Metadata.Name))}
		if i >= 0 {
			old := as.Spec.Manifests[i]
			if old.Metadata.Generation == math.MaxUint64 {
				return as, nil, fmt.Errorf("generation %d of manifest %q was signed with this key, and none is above that: remove it, and publish it under another name", old.Metadata.Generation, m.Metadata.Name)
			}
			c.Action, c.Generation = Replaced, max(c.Generation, old.Metadata.Generation+1)
			equal, err := same(old, m)
			if err != nil {
				return as, nil, err
			}
			if equal {
				changes = append(changes, ManifestChange{m.Metadata.Name, Unchanged, old.Metadata.Generation})
				continue
			}
		}
		m.Metadata.Generation = c.Generation
		if i >= 0 {
			as.Spec.Manifests[i] = m
		} else {
			as.Spec.Manifests = append(as.Spec.Manifests, m)
		}
		changes = append(changes, c)
	}
	if e.remove != "" {
		i := slices.IndexFunc(as.Spec.Manifests, func(o score.Manifest) bool { return o.Metadata.Name == e.remove })
		if i < 0 {
			return as, nil, fmt.Errorf("it has no manifest %q", e.remove)
		}
		changes = append(changes, ManifestChange{e.remove, Removed, as.Spec.Manifests[i].Metadata.Generation})
		as.Spec.Manifests = slices.Delete(as.Spec.Manifests, i, i+1)
	}
	slices.SortFunc(as.Spec.Manifests, func(a, b score.Manifest) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	return as, changes, claimedTwice(as.Spec.Manifests)
}

// same compares two manifests without their generations.
func same(a, b score.Manifest) (bool, error) {
	a.Metadata.Generation, b.Metadata.Generation = 0, 0
	x, err := score.Encode(a)
	if err != nil {
		return false, err
	}
	y, err := score.Encode(b)
	return bytes.Equal(x, y), err
}

// maxLead is how far ahead of what is stored a device is believed to be. A store that was lost, or came back from a
// backup, is behind by less.
const maxLead = 1 << 32

// plausible is what a device says it holds, or 0 if nobody can have published that: what one device says must not use
// up the generations that it, or its successor, still needs.
func plausible(stored, said uint64) uint64 {
	if said > stored && said-stored > maxLead {
		return 0
	}
	return said
}

// reported is the generation under which a device knows a manifest.
func reported(status *interpret.DeviceStatus, manifest string) uint64 {
	if status == nil {
		return 0
	}
	for _, m := range status.Manifests {
		if m.Name == manifest {
			return m.Generation
		}
	}
	return 0
}

// claimedTwice finds what two manifests of one device want to own.
func claimedTwice(manifests []score.Manifest) error {
	var problems []error
	owner := map[score.Resource]string{}
	for _, m := range manifests {
		for _, s := range m.Spec.Scores {
			for _, r := range s.Spec.Claims() {
				if first, ok := owner[r]; ok && first != m.Metadata.Name {
					problems = append(problems, fmt.Errorf("the manifests %q and %q both own %s: give it to one of them", first, m.Metadata.Name, r))
				}
				owner[r] = m.Metadata.Name
			}
		}
	}
	return errors.Join(problems...)
}
