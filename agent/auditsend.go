package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
)

// auditBatch is about how many bytes of entries are handed over at a time.
const auditBatch = 48 << 10

// sendAudit hands the entries to the link that the fleet has not got yet, in order.
func (a *Agent) sendAudit(ctx context.Context) error {
	link, ok := a.Link.(Auditor)
	for ok {
		next := a.Runner.Store.Queued(auditBatch)
		if len(next) == 0 {
			break
		}
		entries := make([][]byte, len(next))
		for i, q := range next {
			entries[i] = q.Entry
		}
		n, err := link.Audit(ctx, entries)
		if err != nil {
			return err
		}
		a.Runner.Store.Acknowledge(next[max(min(n, len(next)), 1)-1].Number)
	}
	if err := a.Runner.Store.FlushAudit(); err != nil { // what was sent goes when it is much
		a.Log.WithError(err).Debug("cannot forget what of the audit was sent")
	}
	return nil
}

// keepAudit makes durable what was added to the audit, and says what is missing in it.
func (a *Agent) keepAudit() error {
	if a.Recovered.Newer {
		return nil
	}
	err := a.Runner.Store.FlushAudit()
	a.tellLost()
	signal(a.audits)
	return err
}

// keepAuditOfPass is keepAudit at the end of a pass.
func (a *Agent) keepAuditOfPass() {
	if err := a.keepAudit(); err != nil {
		a.notKept(err)
		a.republish()
	}
}

// keepAuditNow is keepAudit for what happens beside passes. The next pass tries again what cannot be kept now.
func (a *Agent) keepAuditNow() {
	if err := a.keepAudit(); err != nil {
		a.Log.WithError(err).Warn("the audit waits")
		signal(a.wake)
	}
}

// tellLost says how much of the audit is missing, for a day after it was noticed and until the fleet was told.
func (a *Agent) tellLost() {
	count, untold := a.Runner.Store.AuditLost()
	a.mu.Lock()
	if untold && count != a.auditLost {
		a.auditLost, a.auditLostAt = count, time.Now()
	}
	told := untold || !a.auditLostAt.IsZero() && time.Since(a.auditLostAt) < sayRecovered
	a.mu.Unlock()
	message := ""
	if told {
		message = fmt.Sprintf("%d entries of the audit of this device were lost, because the fleet was away for too long or the books could not be written: continuo audit says which", count)
	}
	a.say(CodeAuditLost, message)
}

// auditRefused writes down what a link did not accept. What is only wrong with the link, or with the device, is no refusal.
func (a *Agent) auditRefused(code interpret.Code, message string) {
	if lasting[code] || code == CodeStore || noRefusal[code] {
		return
	}
	a.Runner.auditRefusal(interpret.AuditEntry{Code: code, Message: message})
	a.keepAuditNow()
}

// refusedOperation writes down an operation that was not even accepted.
func (a *Agent) refusedOperation(r interpret.Receipt) {
	a.Runner.auditRefusal(interpret.AuditEntry{Operation: r.ID, Request: r.Request, Verb: string(r.Verb), Actor: r.Actor, Reason: r.Reason, Result: r.Result, Code: r.Code, Message: r.Message})
	a.keepAuditNow()
}

// noRefusal are codes of links that say that there is nothing to accept yet.
var noRefusal = map[interpret.Code]bool{"no_desired_state": true, "no_time": true}
