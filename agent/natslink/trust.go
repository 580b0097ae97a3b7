package natslink

import (
	"fmt"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
)

// Trust is whom a device trusts: keys that its owner wrote down, or a trust root that its fleet hands on. Its methods may
// be called from any goroutine.
type Trust struct {
	mu   sync.Mutex
	root trust.Root // its version is 0 where there is none
	keys keys
	keep func(envelope []byte) error

	first uint64 // the version that the owner of the device put there
}

// keys are the key sets of a version.
type keys struct{ documents, kept, operations, control wire.KeySet }

// TrustKeys is the trust in keys that somebody wrote down. What they may sign has no bounds, and only who wrote them down
// can take them back.
func TrustKeys(documents, operations, control wire.KeySet) *Trust {
	return &Trust{keys: keys{documents: documents, kept: documents, operations: operations, control: control}}
}

// TrustRoot is the trust in a root, and in what follows it. first is the version that the owner of the device put there,
// and last the one that keep was given last, if any: the later one counts. keep makes a version durable before anything
// is believed for its sake.
func TrustRoot(first wire.Envelope, last []byte, keep func(envelope []byte) error) (*Trust, error) {
	r, err := trust.First(first)
	if err != nil {
		return nil, fmt.Errorf("cannot use the trust root of this device: %w", err)
	}
	t := &Trust{keep: keep, first: r.Metadata.Version}
	if last != nil {
		// One that is damaged is fetched again: the chain from the first to it is in the store of the fleet.
		if e, err := wire.ParseFrame(last); err == nil {
			if kept, err := trust.First(e); err == nil && kept.Metadata.Name == r.Metadata.Name && kept.Metadata.Version > r.Metadata.Version {
				r = kept
			}
		}
	}
	return t, t.use(r)
}

// use makes r the version that counts.
func (t *Trust) use(r trust.Root) (err error) {
	var k keys
	for set, of := range map[*wire.KeySet]func() (wire.KeySet, error){
		&k.documents: r.Documents, &k.kept: r.Kept, &k.operations: r.Operations, &k.control: r.Control,
	} {
		if *set, err = of(); err != nil {
			return fmt.Errorf("cannot use version %d of the trust root: %w", r.Metadata.Version, err)
		}
	}
	t.root, t.keys = r, k
	return nil
}

// now is whom the device trusts at present.
func (t *Trust) now() (trust.Root, keys) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.root, t.keys
}

// Version of the trust root; 0 where keys were written down.
func (t *Trust) Version() uint64 {
	r, _ := t.now()
	return r.Metadata.Version
}

// handed is the version that counts, and whether it is one that the fleet handed on.
func (t *Trust) handed() (version uint64, ok bool) {
	version = t.Version()
	return version, version > t.first
}

// advance takes the version that follows. An error that is no *wire.Refusal means that it could not be kept.
func (t *Trust) advance(frame []byte) error {
	e, err := wire.ParseFrame(frame)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next, err := t.root.Next(e)
	if err != nil {
		return err
	}
	if err := t.keep(frame); err != nil {
		return fmt.Errorf("cannot keep version %d of the trust root: %w", next.Metadata.Version, err)
	}
	return t.use(next)
}

// Opener returns how a device reads the envelopes that it kept on disk: as if they came from the network, except that
// neither their age nor what became of the key since is a reason to refuse them. Every error is an *agent.Refusal.
func (t *Trust) Opener(d wire.Device) agent.Open {
	return func(envelope []byte) (agent.Intent, error) {
		root, keys := t.now()
		in, _, err := open(envelope, d, keys.kept, root.Spec.Restart, time.Time{})
		return in, err
	}
}

// document verifies what came for d.
func (t *Trust) document(envelope []byte, d wire.Device, now time.Time) (agent.Intent, error) {
	root, keys := t.now()
	in, by, err := open(envelope, d, keys.documents, root.Spec.Restart, now)
	if err == nil && root.Metadata.Version > 0 {
		if r := root.CheckDocument(by, d, in.Assignment); r != nil {
			return agent.Intent{}, refusalOf(fmt.Sprintf("generation %d", in.Generation), r)
		}
	}
	return in, err
}

// operation verifies what somebody asks of d.
func (t *Trust) operation(envelope []byte, d wire.Device, now time.Time) (opened, error) {
	root, keys := t.now()
	op, by, err := openOperation(envelope, d, keys.operations, now)
	if err == nil && root.Metadata.Version > 0 {
		if r := root.CheckOperation(by, actOf(d, op)); r != nil {
			return opened{}, refusalOf("operation "+op.ID, r)
		}
	}
	return op, err
}
