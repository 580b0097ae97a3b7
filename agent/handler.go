package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

const apiVersion = score.APIVersion

var _ Handler = (*Agent)(nil)

// Offer is part of Handler.
func (a *Agent) Offer(in Intent) error {
	a.accepting.Lock()
	defer a.accepting.Unlock()
	a.mu.Lock()
	known := a.plan != nil && a.plan.intent.Generation == in.Generation && a.plan.intent.Digest == in.Digest && a.plan.intent.Series == in.Series
	a.mu.Unlock()
	if known {
		return nil
	}
	if err := a.accept(in); err != nil {
		r, ok := errors.AsType[*Refusal](err)
		if ok {
			a.Refused(r.Code, r.Message)
		}
		return err
	}
	a.follow(in, "intent accepted")
	if err := a.Runner.forgetRefusals(); err != nil {
		a.Log.WithError(err).Warn("the audit may leave something out")
	}
	signal(a.wake)
	return nil
}

// follow makes in the present plan, which comes into force when what it needs is here.
// What was said about other documents holds no more.
func (a *Agent) follow(in Intent, how string) {
	pl := a.Runner.prepared(in)
	a.mu.Lock()
	a.plan, a.distrust = pl, false
	a.problems = slices.DeleteFunc(a.problems, func(p interpret.Problem) bool { return !lasting[p.Code] })
	a.mu.Unlock()
	log := a.Log.WithFields(logrus.Fields{"generation": in.Generation, "digest": in.Digest})
	log.Info(how)
	if names := extensions(in.Assignment); len(names) > 0 {
		log.WithField("extensions", names).Info("the intent carries sections that this version does not act on")
	}
}

// extensions names the sections of an assignment that are carried and not acted on.
func extensions(as score.Assignment) []string {
	names := map[string]bool{}
	for name := range as.Extensions {
		names[name] = true
	}
	for _, m := range as.Spec.Manifests {
		for name := range m.Extensions {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// accept makes an intent durable, or refuses it.
func (a *Agent) accept(in Intent) error {
	if ps := whole(in.Assignment); ps != "" {
		return &Refusal{CodeNotWhole, fmt.Sprintf("generation %d is refused: %s", in.Generation, ps)}
	}
	err := keepIntent(a.Runner.Store, in)
	switch {
	case errors.Is(err, errEarlierSeries):
		return &Refusal{CodeRegressed, fmt.Sprintf("generation %d is refused: generations have begun anew since it was signed; publish again", in.Generation)}
	case errors.Is(err, store.ErrRegressed):
		return &Refusal{CodeRegressed, fmt.Sprintf("generation %d is refused, a later one was accepted before: publish again with a generation above it", in.Generation)}
	case errors.Is(err, store.ErrEquivocation):
		return &Refusal{CodeEquivocation, fmt.Sprintf("generation %d came with other content than before: two publishers share a key, or a copy was changed", in.Generation)}
	case err != nil:
		return fmt.Errorf("cannot accept generation %d: %w", in.Generation, err)
	}
	return nil
}

// whole says what is wrong with an assignment as a document. What is wrong with a
// score is that score's own business.
func whole(as score.Assignment) string {
	n := 0
	names := map[string]bool{}
	for _, m := range as.Spec.Manifests {
		if !score.ValidName(m.Metadata.Name) { // the books, the marks on things and the statuses are by these names
			return fmt.Sprintf("it holds a manifest with the name %.40q, which no manifest may have", m.Metadata.Name)
		}
		if names[m.Metadata.Name] {
			return fmt.Sprintf("it holds the manifest %q twice", m.Metadata.Name)
		}
		names[m.Metadata.Name] = true
		n += len(m.Spec.Scores)
		ids := map[score.ID]bool{}
		for _, s := range m.Spec.Scores {
			if !s.ID.Valid() {
				return fmt.Sprintf("its manifest %q holds a score with the id %.40q, which no score may have", m.Metadata.Name, s.ID)
			}
			if ids[s.ID] {
				return fmt.Sprintf("its manifest %q holds the score %q twice", m.Metadata.Name, s.ID)
			}
			ids[s.ID] = true
		}
	}
	if as.APIVersion != score.APIVersion || as.Kind != score.AssignmentKind {
		return fmt.Sprintf("it is a %q of %q, and this agent reads %q of %q", as.Kind, as.APIVersion, score.AssignmentKind, score.APIVersion)
	}
	if n != as.Spec.Scores {
		return fmt.Sprintf("it holds %d scores and says %d", n, as.Spec.Scores)
	}
	return ""
}

// Refused is part of Handler.
func (a *Agent) Refused(code interpret.Code, message string) {
	if a.problem(code, message) {
		a.Log.WithField("code", code).Error(message)
		a.auditRefused(code, message)
		a.republish()
	}
}

// Resolved is part of Handler.
func (a *Agent) Resolved(code interpret.Code) {
	if a.resolve(code) {
		a.republish()
	}
}

// resolve takes back what was said under a code.
func (a *Agent) resolve(code interpret.Code) bool {
	a.mu.Lock()
	n := len(a.problems)
	a.problems = slices.DeleteFunc(a.problems, func(p interpret.Problem) bool { return p.Code == code })
	gone := len(a.problems) < n
	a.mu.Unlock()
	if gone {
		a.Log.WithField("code", code).Info("resolved")
	}
	return gone
}

// Of each code no more problems than that are told: it bounds what a sender of rubbish
// can make a device say, and leaves room for what else is wrong.
const maxProblems = 5

// lasting are the problems that a new intent does not end.
var lasting = map[interpret.Code]bool{
	CodeNewerState: true, CodeWatch: true, CodeRecovered: true,
	CodeReboot: true, CodeClock: true, CodeStorage: true, CodeAuditLost: true,
	CodeLink: true, CodeNotPermitted: true, CodeDuplicate: true, CodeShortened: true,
}

// problem notes something the agent has to say about itself, once.
func (a *Agent) problem(code interpret.Code, message string) (fresh bool) {
	message = interpret.Brief(message)
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, p := range a.problems {
		if p.Code != code {
			continue
		}
		if n++; n == maxProblems || p.Message == message {
			return false
		}
	}
	if code == CodeRecovered {
		a.recovered = time.Now()
	}
	a.problems = append(a.problems, interpret.Problem{Code: code, Message: message, Since: now()})
	return true
}

// Control is part of Handler.
func (a *Agent) Control(c Control) {
	a.mu.Lock()
	same := a.control == c
	a.control = c
	a.mu.Unlock()
	if !same {
		a.Log.WithField("blocked", c.Blocked).Info("control changed")
		signal(a.wake)
	}
}

// TrustChanged is part of Handler.
func (a *Agent) TrustChanged() {
	a.accepting.Lock()
	defer a.accepting.Unlock()
	a.mu.Lock()
	pl, was := a.plan, a.distrust
	a.mu.Unlock()
	if pl == nil {
		return
	}
	_, err := a.Open(pl.intent.Envelope)
	a.mu.Lock()
	a.distrust = err != nil
	a.mu.Unlock()
	switch {
	case err != nil:
		a.Refused(CodeIntentLost, notTrusted(err))
	case was:
		a.Resolved(CodeIntentLost)
	}
	if was != (err != nil) {
		signal(a.wake)
	}
}

// Pulse is part of Handler.
func (a *Agent) Pulse() Pulse {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := Pulse{Generation: a.status.Generation, Digest: a.status.Digest, State: a.status.State, Problems: len(a.problems)}
	if a.plan != nil && (p.Generation != a.plan.intent.Generation || p.Digest != a.plan.intent.Digest) {
		p.Generation, p.Digest, p.State = a.plan.intent.Generation, a.plan.intent.Digest, interpret.StateConverging
	}
	for _, m := range a.status.Manifests {
		for _, s := range m.Scores {
			if s.Outcome == interpret.Pending {
				p.Pending++
			}
		}
	}
	for _, pr := range a.problems {
		if pr.Code == CodeRecovered || pr.Code == CodeStore || pr.Code == CodeNewerState {
			p.Store = string(pr.Code)
		}
	}
	return p
}
