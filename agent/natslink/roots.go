package natslink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
)

// rootPause is between two looks for a trust root that nobody announced: whoever sends documents of strangers must not
// make a device ask all the time.
const rootPause = time.Second

// rootLoop follows the trust root, after each connection before anything else is fetched.
func (l *Link) rootLoop(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.roots:
		}
		if l.catchUp(ctx) {
			l.h.TrustChanged()
		}
		l.wantAll()
		l.checkRoot(ctx)
	}
}

// rooted reports whether the device follows a trust root.
func (l *Link) rooted() bool { return l.o.Trust.Version() > 0 }

// catchUp takes all versions of the trust root that follow, and reports whether there was one.
func (l *Link) catchUp(ctx context.Context) (advanced bool) {
	l.following.Lock()
	defer l.following.Unlock()
	for {
		m, err := l.request(ctx, nats.NewMsg(wire.FetchSubject(wire.RootKey(l.o.Trust.Version()+1))), fetchTimeout)
		if err != nil || m.Header.Get("Status") != "" || wire.Deleted(m.Header) {
			break // there is none, or the next connection asks again
		}
		if err := l.o.Trust.advance(m.Data); err != nil {
			l.refuseRoot(err)
			break
		}
		advanced = true
		l.h.Resolved(CodeRoot)
	}
	l.looked = time.Now()
	return advanced
}

// refuseRoot reports a version that was not accepted. The one that counts goes on counting.
func (l *Link) refuseRoot(err error) {
	if r, ok := errors.AsType[*wire.Refusal](err); ok {
		l.problem(CodeRoot, fmt.Sprintf("version %d of the trust root was refused (%s): %s", l.o.Trust.Version()+1, r.Code, r.Detail))
		return
	}
	l.problem(agent.CodeStore, err.Error())
}

// stranger reports whether what was refused may be of a key that a later trust root names, and looks for one.
func (l *Link) stranger(ctx context.Context, code interpret.Code) bool {
	switch wire.Code(code) {
	case wire.CodeUntrusted, wire.CodeTooFewSignatures, wire.CodeUnknownEpoch, wire.CodeOutOfScope, wire.CodeKeyNotValid:
	default:
		return false
	}
	l.following.Lock()
	soon := time.Since(l.looked) < rootPause
	l.following.Unlock()
	if soon || !l.rooted() || !l.catchUp(ctx) {
		return false
	}
	l.h.TrustChanged()
	return true
}

// announcedRoot reports whether a push is of the version that counts, or of a later one. Whether it is one is seen when it is
// fetched.
func (l *Link) announcedRoot(m *nats.Msg) bool {
	key, ok := strings.CutPrefix(m.Subject, wire.ConfigSubject(""))
	if !ok {
		return false
	}
	t, err := wire.Key(key).Target()
	return err == nil && t.Kind == wire.KindRoot && t.Root >= l.o.Trust.Version()
}
