package natslink

import (
	"context"

	"github.com/nats-io/nats.go"

	"github.com/continuo-fleet/continuo/internal/wire"
)

// older is what the store of the fleet holds in an older version than this device accepted, as one does that came back from a
// backup. Nothing of it is obeyed: generations and versions only count up. It is said as a problem of its own, because what to
// do about it is another thing than about one document that was refused.
type older struct{ document, root bool }

// regressed notes whether a part of the store is older than it was.
func (l *Link) regressed(part func(*older) *bool, is bool, message string) {
	l.mu.Lock()
	was := l.older
	*part(&l.older) = is
	now := l.older
	l.mu.Unlock()
	switch {
	case now != was && is:
		l.problem(CodeControlPlane, message)
	case was != older{} && now == older{}:
		l.h.Resolved(CodeControlPlane)
	}
}

func documentOf(o *older) *bool { return &o.document }
func rootOf(o *older) *bool     { return &o.root }

// checkRoot looks whether the store still has the version of the trust root that it handed on to this device.
func (l *Link) checkRoot(ctx context.Context) {
	version, handed := l.o.Trust.handed()
	if !handed {
		return
	}
	m, err := l.request(ctx, nats.NewMsg(wire.FetchSubject(wire.RootKey(version))), fetchTimeout)
	if err != nil {
		return // that says nothing
	}
	l.regressed(rootOf, m.Header.Get("Status") == "404" || wire.Deleted(m.Header),
		"the fleet does not hold the version of the trust root any more that this device follows, as after a backup was restored; the device goes on with it: put it there again with continuo keys publish --confirm")
}
