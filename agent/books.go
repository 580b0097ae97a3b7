package agent

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/agent/store"
)

// load takes the last accepted intent from the store, and says what the store lost. An
// intent that is not trusted any more gives no authority to anything, not even to
// correct drift; what was made under it stays.
func (a *Agent) load() {
	defer func() { // when an intent no longer ends what is said about others
		for _, f := range a.Recovered.Findings {
			code := CodeRecovered
			if f.Code == store.CodeNewer {
				code = CodeNewerState
			}
			a.problem(code, f.String())
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, p := range a.problems {
			a.Log.WithField("code", p.Code).Warn(p.Message)
		}
	}()
	a.reopen()
}

// reopen reads what was accepted last as if it came from the network.
func (a *Agent) reopen() {
	kept, ok, err := LastIntent(a.Runner.Store)
	switch {
	case err != nil:
		a.problem(CodeIntentLost, fmt.Sprintf("cannot read the last accepted intent: %v", err))
		return
	case !ok:
		return
	}
	opened, err := a.Open(kept.Envelope)
	if err != nil {
		a.problem(CodeIntentLost, notTrusted(err))
		return
	}
	a.follow(opened, "intent loaded from disk")
}

func notTrusted(err error) string {
	return fmt.Sprintf("the last accepted intent is not trusted any more, so that this device changes nothing; publish it again with a key that the device trusts: %v", err)
}

// sweep removes temporary files that a killed agent left where it wrote.
func (a *Agent) sweep() {
	if a.Sweeper == nil {
		return
	}
	seen := map[string]bool{}
	var dirs []string
	for _, e := range a.Runner.Store.Entries() {
		if p, ok := strings.CutPrefix(e.Resource, "file:"); ok && !seen[path.Dir(p)] {
			seen[path.Dir(p)] = true
			dirs = append(dirs, path.Dir(p))
		}
	}
	slices.Sort(dirs) // the books have them in the order in which they were written, which lanes decide
	if err := a.Sweeper.SweepTemp(dirs); err != nil {
		a.Log.WithError(err).Warn("cannot remove what a killed write left behind")
	}
}

// checkStore notices books that were removed or damaged while the agent runs.
func (a *Agent) checkStore() (sound bool) {
	s := a.Runner.Store
	sound = true
	if err := s.Check(); err != nil {
		if err := s.Repair(); err != nil {
			a.notKept(err)
			sound = false
		}
	}
	for _, f := range s.Findings() {
		a.problem(CodeRecovered, f.String())
		a.Runner.Uncertain = a.Runner.Uncertain || f.Lost
		if f.Code == store.CodeRebuilt {
			sound = a.keepAgain() && sound
		}
	}
	return sound
}

// keepAgain puts the present intent into books that were made again from memory.
func (a *Agent) keepAgain() bool {
	a.accepting.Lock()
	defer a.accepting.Unlock()
	pl, _ := a.present()
	if pl == nil {
		return true
	}
	if err := a.accept(pl.offered); err != nil {
		a.notKept(err)
		return false
	}
	return true
}

// sayRecovered is how long a device says that it had lost something, if all is well since.
const sayRecovered = 24 * time.Hour

func (a *Agent) recoveredFor() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return time.Since(a.recovered)
}

// Of each path that was overwritten, the device keeps so many copies, and none for longer;
// the newest one stays, and so do those that somebody may need to put back.
const (
	keepBackups = 10
	ageBackups  = 90 * 24 * time.Hour
)

// prune removes old backups. It runs between passes, when no backup is being made.
func (a *Agent) prune() {
	gone, err := a.Runner.Store.PruneBackups(keepBackups, ageBackups)
	if err != nil {
		a.Log.WithError(err).Warn("cannot remove old backups")
	}
	if len(gone) > 0 {
		a.Log.WithField("backups", gone).Info("removed old backups")
	}
}
