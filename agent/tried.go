package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// noteTried is the prefix of the notes of what was changed in a window and not proved, or not yet:
// how often in a row, and with which wish. After a power cut nothing else on the device tells that,
// and to try it again at once would cut the device off again with each start, which may be its own
// way to mend that. So an orderly stop of the device in the window counts, too; one of the agent alone
// blames nobody.
const noteTried = "tried/"

// A trying is such a note.
type trying struct {
	often int
	boot  string // in which the agent was told to stop in the window, behind stoppedIn; noBoot: it was not
	wish  string
}

const (
	noBoot    = "-"
	stoppedIn = "stopped:"
)

func (t trying) String() string { return fmt.Sprintf("%d %s %s", t.often, t.boot, t.wish) }

// readTrying reads a note; one that is none says nothing.
func readTrying(text string) (t trying) {
	f := strings.SplitN(text, " ", 3)
	if n, err := strconv.Atoi(f[0]); err == nil && len(f) == 3 {
		t = trying{n, f[1], f[2]}
	}
	return t
}

// triedOf is the note of what a score claims; empty: it claims nothing.
func triedOf(claims []score.Resource) string {
	if len(claims) == 0 {
		return ""
	}
	return noteTried + digestOf(string(claims[0]))
}

// opens writes down that a wish is about to be tried in a window.
func (r *Runner) opens(claims []score.Resource, wish string) func() error {
	return func() error {
		note := triedOf(claims)
		text, _ := r.Store.Note(note)
		t := readTrying(text)
		if t.wish != wish {
			t = trying{wish: wish}
		}
		t.often, t.boot = t.often+1, noBoot
		return r.Store.SetNotes(map[string]string{note: t.String()})
	}
}

// ends adds to notes what became of something that was tried: it is kept in mind until it is proved,
// or fails for another reason.
func (r *Runner) ends(ctx context.Context, claims []score.Resource, as interpret.Outcome, notes map[string]string) map[string]string {
	name := triedOf(claims)
	text, noted := r.Store.Note(name)
	switch t := readTrying(text); {
	case !noted:
		return notes
	case as != interpret.RolledBack:
		text = ""
	case errors.Is(ctx.Err(), context.Canceled):
		t.boot = stoppedIn + r.Boot
		text = t.String()
	}
	if notes == nil {
		notes = map[string]string{}
	}
	notes[name] = text
	return notes
}

// forgetTried notes that nothing was tried of what nobody wants or owns any more.
func (p *pass) forgetTried(notes map[string]string) {
	old := p.Store.Notes(noteTried)
	if len(old) == 0 || !p.plan.intent.Assignment.Spec.Complete {
		return
	}
	for res := range p.plan.claimed {
		delete(old, triedOf([]score.Resource{res}))
	}
	for _, e := range p.Store.Entries() {
		delete(old, noteTried+digestOf(e.Resource))
	}
	for name := range old {
		notes[name] = ""
	}
}

// wasTried reports, once after each start, whether a wish was tried before it, so often in a row and
// never proved.
func (r *Runner) wasTried(claims []score.Resource, wish string, often int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.tried) == 0 { // as nearly always
		return false
	}
	t := readTrying(r.tried[triedOf(claims)])
	delete(r.tried, triedOf(claims))
	return t.wish == wish && t.often >= often && t.boot != stoppedIn+r.Boot
}

// What was proved before and is only made true again is put off at the second start: a device would
// be without its firewall until then.
const (
	oftenNew   = 1
	oftenKnown = 2
)

// takenBack says that a change was tried before this start of the agent and not proved, and is not made
// now: that is said once, and its pace makes it later.
func (g *gate) takenBack(a interpret.Action) (interpret.Verdict, bool) {
	often := oftenNew
	if a.Cause == interpret.CauseDrift {
		often = oftenKnown
	}
	differs := func(c interpret.Change) bool {
		return c.Field != interpret.FieldRestart && c.Field != interpret.FieldReload
	}
	if len(a.Changes) > 0 && !slices.ContainsFunc(a.Changes, differs) {
		return interpret.Verdict{}, false // it was kept, or needed no window
	}
	if g.dry || g.consent != nil || !g.wasTried(g.it.claims, g.trying(), often) { // a person has a reason
		return interpret.Verdict{}, false
	}
	g.effort = tried
	return unproved, true
}

// trying is the wish of a score, for the notes of what was tried.
func (g *gate) trying() string {
	return g.it.digest + " " + strconv.FormatUint(g.it.manifest.generation, 10)
}

var unproved = interpret.Verdict{Outcome: interpret.RolledBack, Code: interpret.Code(topology.CodeConnectivity),
	Message: "it was taken back, because the agent or the device stopped before it was proved that the fleet could be reached"}
