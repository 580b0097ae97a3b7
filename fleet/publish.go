package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/score"
)

// PublishOptions say how manifests are published.
type PublishOptions struct {
	Signer wire.Signer // the key of a publisher
	Site   string      // of the devices that are named without one; empty means main
	DryRun bool        // tell what would change, and write nothing
	Actor  string      // who does it, for the audit
	Reason string      // why, for the audit

	// Root is the trust root that devices follow: what it does not let the signer say is not published. Without it only what
	// the signer published before is changed.
	Root Root
	// Anew begins with nothing where devices do not take what is published now: its signer was revoked, or generations began
	// anew since.
	Anew bool
	// Hold signs and stores nothing: others have to sign, too. What they sign is in the publications.
	Hold bool
}

// A Publication is what came of publishing for one device.
type Publication struct {
	Device     Device           `json:"device"`
	Generation uint64           `json:"generation"` // of the document now, or, in a dry run, as it would be
	Written    bool             `json:"written"`
	Size       int              `json:"size,omitzero"`    // bytes as carried
	RawSize    int              `json:"rawSize,omitzero"` // bytes when opened
	Manifests  []ManifestChange `json:"manifests"`

	// Envelope is the signed document.
	Envelope Envelope `json:"-"`
}

// Changes reports whether the document is, or would be, another one.
func (p Publication) Changes() bool {
	return slices.ContainsFunc(p.Manifests, func(c ManifestChange) bool { return c.Action != Unchanged })
}

// A ManifestChange is what is done to one manifest of a device.
type ManifestChange struct {
	Name       string         `json:"name"`
	Action     ManifestAction `json:"action"`
	Generation uint64         `json:"generation"`
}

// A ManifestAction says what is done to a manifest.
type ManifestAction string

// Actions.
const (
	Added     ManifestAction = "added"
	Replaced  ManifestAction = "replaced"
	Removed   ManifestAction = "removed"
	Unchanged ManifestAction = "unchanged"
)

// A StaleError says that somebody else published for a device at the same time. Nothing was written for it.
type StaleError struct {
	Device Device
	Now    uint64           // generation that is stored now
	Others []ManifestChange // what the other publisher did
}

func (e *StaleError) Error() string {
	var what []string
	for _, c := range e.Others {
		what = append(what, fmt.Sprintf("%s %s", c.Name, c.Action))
	}
	if len(what) == 0 {
		what = []string{"nothing that can be read"}
	}
	return fmt.Sprintf("cannot publish for %s: somebody else published generation %d meanwhile (%s): look at it, and publish again", e.Device, e.Now, strings.Join(what, ", "))
}

// Publish makes manifests part of what their devices should be. A manifest replaces the one of the same name; all
// others of a device stay. A device for which nothing changes is not written to. Everything is checked before anything
// is written.
func (f *Fleet) Publish(ctx context.Context, manifests []score.Manifest, o PublishOptions) ([]Publication, error) {
	byDevice, err := assign(manifests, o)
	if err != nil {
		return nil, err
	}
	return f.change(ctx, byDevice, o)
}

// Remove takes a manifest away from what a device should be. What the device does about it is a matter of the policy
// that the manifest had.
func (f *Fleet) Remove(ctx context.Context, d Device, manifest string, o PublishOptions) ([]Publication, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	return f.change(ctx, map[Device]edit{d: {remove: manifest}}, o)
}

// assign checks manifests, and sorts them by device.
func assign(manifests []score.Manifest, o PublishOptions) (map[Device]edit, error) {
	var problems []error
	out := map[Device]edit{}
	for _, m := range manifests {
		name := m.Metadata.Name
		for _, p := range m.Validate() {
			if p.Severity == score.Error {
				problems = append(problems, fmt.Errorf("manifest %q: %s", name, p))
			}
		}
		if at, is := unresolved(m); is {
			problems = append(problems, fmt.Errorf("manifest %q: %s: contentFrom names a file that no device can read: ResolveContent puts it in its place", name, at))
		}
		if m.Spec.Target.Selector != nil {
			problems = append(problems, fmt.Errorf("manifest %q has a selector; this version publishes to single devices only, class manifests come later: give target.device", name))
			continue
		}
		d := Device{Site: cmp.Or(o.Site, wire.DefaultSite), ID: m.Spec.Target.Device}
		if err := d.Check(); err != nil {
			problems = append(problems, fmt.Errorf("manifest %q: %w", name, err))
			continue
		}
		e := out[d]
		if slices.ContainsFunc(e.put, func(o score.Manifest) bool { return o.Metadata.Name == name }) {
			problems = append(problems, fmt.Errorf("manifest %q is given twice for %s", name, d))
		}
		e.put = append(e.put, m)
		out[d] = e
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("nothing was published: %w", errors.Join(problems...))
	}
	return out, nil
}

// A pending write is a document that is ready to be stored.
type pendingWrite struct {
	Publication
	base   document
	frame  []byte
	header nats.Header
	digest string // of what is signed, in hex
}

// change makes all edits, or, if one of them cannot be made, none.
func (f *Fleet) change(ctx context.Context, edits map[Device]edit, o PublishOptions) ([]Publication, error) {
	if o.Signer == nil {
		return nil, errors.New("cannot publish: no operator key is given")
	}
	public, err := o.Signer.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("cannot publish: %w", err)
	}
	keys, err := DocumentKeys(public)
	if err != nil {
		return nil, fmt.Errorf("cannot publish: %w", err)
	}
	devices := slices.SortedFunc(maps.Keys(edits), func(a, b Device) int { return cmp.Compare(a.String(), b.String()) })
	states, err := f.Status(ctx, devices...)
	if err != nil {
		return nil, fmt.Errorf("cannot publish without knowing what the devices hold: %w", err)
	}
	var ready []pendingWrite
	var problems []error
	for i, d := range devices {
		w, err := f.prepare(ctx, d, edits[d], states[i], keys, o)
		if err != nil {
			problems = append(problems, fmt.Errorf("cannot publish for %s: %w", d, err))
		}
		ready = append(ready, w)
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("nothing was published: %w", errors.Join(problems...))
	}
	if err := f.recordPublication(ctx, ready, o); err != nil {
		return nil, fmt.Errorf("nothing was published: %w", err)
	}
	out := make([]Publication, len(ready))
	for i, w := range ready {
		out[i] = w.Publication
		if o.DryRun || o.Hold || !w.Changes() {
			continue
		}
		if err := f.replace(ctx, wire.DeviceKey(w.Device), w.frame, w.header, w.base.revision); err != nil {
			if errors.Is(err, errStale) {
				err = f.stale(ctx, w, keys, o.Root)
			} else {
				err = fmt.Errorf("cannot publish for %s: %w", w.Device, err)
			}
			return out[:i], err
		}
		out[i].Written = true
	}
	return out, nil
}

// prepare merges an edit into what is published for d now.
func (f *Fleet) prepare(ctx context.Context, d Device, e edit, state DeviceState, keys KeySet, o PublishOptions) (pendingWrite, error) {
	doc, err := f.base(ctx, d, keys, o.Root, o.Anew)
	if err != nil {
		return pendingWrite{}, err
	}
	base := doc.assignment.Metadata.Generation
	as, changes, err := merge(doc.assignment, e, state.Status)
	if err != nil {
		return pendingWrite{}, err
	}
	w := pendingWrite{Publication: Publication{Device: d, Generation: base, Manifests: changes}, base: doc}
	if !w.Changes() {
		return w, nil
	}
	// Above everything that the device may have accepted already: the store can be younger than the device.
	if base == math.MaxUint64 {
		return pendingWrite{}, fmt.Errorf("generation %d was signed for it with this key, and none is above that: a device that accepted it takes nothing any more; delete the key %s and enroll the device anew, with an empty state directory", base, wire.DeviceKey(d))
	}
	w.Generation = max(base, plausible(base, state.Reported())) + 1
	as.APIVersion, as.Kind = score.APIVersion, score.AssignmentKind
	as.Metadata.Name, as.Metadata.Generation = d.ID, w.Generation
	as.Spec.Complete = true
	as.Spec.Scores = 0
	for _, m := range as.Spec.Manifests {
		as.Spec.Scores += len(m.Spec.Scores)
	}
	if err := mayPublish(o.Root, o.Signer, d, as, o.Hold); err != nil {
		return pendingWrite{}, err
	}
	err = w.seal(as, o.Signer, o.Root.Metadata.Version, time.Now())
	return w, err
}

// stale says what somebody else published instead.
func (f *Fleet) stale(ctx context.Context, w pendingWrite, keys KeySet, r Root) error {
	e := &StaleError{Device: w.Device}
	now, err := f.base(ctx, w.Device, keys, r, false)
	if err != nil {
		return e
	}
	e.Now = now.assignment.Metadata.Generation
	_, e.Others, _ = merge(w.base.assignment, edit{put: now.assignment.Spec.Manifests}, nil)
	e.Others = slices.DeleteFunc(e.Others, func(c ManifestChange) bool { return c.Action == Unchanged })
	return e
}
