package natslink

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/continuo-fleet/continuo/agent"
)

// none notes that there is no document. That is news only if there was one, and never means that anything is to be
// removed.
func (l *Link) none(message string) {
	if l.h.Pulse().Generation == 0 {
		return
	}
	l.mu.Lock()
	l.missing = true
	l.mu.Unlock()
	l.problem(CodeNoDesired, message)
}

// take is where every document of what the device should be comes in, whatever brought it.
func (l *Link) take(ctx context.Context, envelope []byte, pushed bool) (uint64, error) {
	box := l.documents
	box.intake.Lock()
	defer box.intake.Unlock()
	sum := sha256.Sum256(envelope)
	if box.last.generation > 0 && box.last.sum == sum {
		l.found()
		return box.last.generation, nil
	}
	in, err := l.o.Trust.document(envelope, l.o.Device, l.o.Clock())
	if r, ok := errors.AsType[*agent.Refusal](err); ok && l.stranger(ctx, r.Code) {
		in, err = l.o.Trust.document(envelope, l.o.Device, l.o.Clock())
	}
	if err == nil {
		err = l.h.Offer(in)
	}
	if r, ok := errors.AsType[*agent.Refusal](err); ok {
		l.refuse(box, r.Code, r.Message)
		if r.Code == agent.CodeRegressed && !pushed {
			l.regressed(documentOf, true, fmt.Sprintf("the fleet holds generation %d for this device, which is older than what it accepted, as after a backup was restored; the device goes on with what it has: publish again", in.Generation))
		}
		return in.Generation, nil
	}
	if err != nil {
		l.problem(agent.CodeStore, fmt.Sprintf("generation %d could not be kept: %v", in.Generation, err))
		return 0, err
	}
	box.last = seen{sum, in.Generation}
	l.mu.Lock()
	clear(box.refused)
	l.mu.Unlock()
	l.found()
	return in.Generation, nil
}

// found takes back that there is no document, or only one from a backup.
func (l *Link) found() {
	l.regressed(documentOf, false, "")
	l.mu.Lock()
	was := l.missing
	l.missing = false
	l.mu.Unlock()
	if was {
		l.h.Resolved(CodeNoDesired)
	}
}
