package authority

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

var update = flag.Bool("update", false, "write the golden files again")

const golden = "testdata/decisions.golden"

const legend = `ok applies   tx undoes what the transaction made
r. report    rb blocked  rn not_owned  rl released  ro orphaned  rp policy
p. pending   pc confirm  ps signature  pb brake     pw window
x. refuse    xf foreign  xp policy
-- nothing
`

// cell is an answer in two letters.
func cell(a Answer) string {
	letter := map[interpret.Decision]string{interpret.DecideReport: "r", interpret.DecidePending: "p", interpret.DecideRefuse: "x"}
	codes := map[interpret.Code]string{
		interpret.CodeBlocked: "b", interpret.CodeNotOwned: "n", CodeReleased: "l", interpret.CodeOrphaned: "o", interpret.CodePolicy: "p",
		interpret.CodeConfirm: "c", interpret.CodeSignature: "s", interpret.CodeBrake: "b", interpret.CodeWindow: "w", CodeForeign: "f",
	}
	switch {
	case a.Authority == "transaction":
		return "tx"
	case a.Decision == interpret.DecideApply:
		return "ok"
	case a.Decision == interpret.DecideNothing:
		return "--"
	}
	return letter[a.Decision] + codes[a.Code]
}

// A column changes a question, and has a title.
type column struct {
	title string
	do    func(*Question)
}

// write writes one table: what is asked is what start, a row and a column make of it.
func write(b *strings.Builder, by []rule, title string, width int, columns []column, rows []column) {
	fmt.Fprintf(b, "\n%-21s", title)
	for _, c := range columns {
		fmt.Fprintf(b, " %-*s", width, c.title)
	}
	b.WriteString("\n")
	for _, r := range rows {
		fmt.Fprintf(b, "%-21s", r.title)
		for _, c := range columns {
			q := Question{Policy: score.Policy{Preset: score.Converge}.Filled(), Provenance: interpret.Owned}
			r.do(&q)
			c.do(&q)
			fmt.Fprintf(b, " %-*s", width, cell(decide(by, &q)))
		}
		b.WriteString("\n")
	}
}

// decisions is the golden file as rules make it.
func decisions(by []rule) string {
	var changes []column
	for _, cause := range causes[:len(causes)-1] {
		for _, effect := range effects {
			changes = append(changes, column{fmt.Sprintf("%s %s", cause, effect), func(q *Question) { q.Cause, q.Effect = cause, effect }})
		}
	}
	b := new(strings.Builder)
	b.WriteString(legend)

	var owners []column
	for _, preset := range []score.Preset{score.Converge, score.Guarded, score.Reviewed} {
		for _, p := range []struct {
			title    string
			of       interpret.Provenance
			replaces bool
		}{
			{"own", interpret.Owned, false}, {"ado", interpret.Adopted, false}, {"for", interpret.Foreign, false},
			{"rep", interpret.Foreign, true}, {"scr", interpret.Scratch, false},
		} {
			owners = append(owners, column{string(preset[:1]) + p.title, func(q *Question) {
				q.Policy = score.Policy{Preset: preset}.Filled()
				q.Provenance, q.Replaces = p.of, p.replaces
			}})
		}
	}
	for _, g := range givens {
		title := "by itself"
		if g != None {
			title = string(g)
		}
		b.WriteString("\nConverge, guarded and reviewed, of what is owned, adopted, foreign, foreign and replaced, scratch:")
		rows := make([]column, len(changes))
		for i, c := range changes {
			rows[i] = column{c.title, func(q *Question) { c.do(q); q.Given = g }}
		}
		write(b, by, title, 4, owners, rows)
	}

	var facts []column
	for _, g := range []Given{None, Signed} {
		for _, s := range states[:len(states)-1] {
			title := s.name
			if g != None {
				title += "+" + string(g)
			}
			facts = append(facts, column{title, func(q *Question) { *s.of(q), q.Given = true, g }})
		}
	}
	b.WriteString("\nConverge, of what is owned, by itself and signed for, with one thing in its way:")
	write(b, by, "state", 11, facts, changes)

	var words []column
	word := func(title string, do func(*score.Policy)) {
		words = append(words, column{title, func(q *Question) { do(&q.Policy) }})
	}
	for _, w := range []score.OnIntent{score.IntentApply, score.IntentConfirm} {
		word(string(w), func(p *score.Policy) { p.OnIntent = w })
	}
	for _, w := range []score.OnDrift{score.DriftCorrect, score.DriftReport, score.DriftIgnore} {
		word(string(w), func(p *score.Policy) { p.OnDrift = w })
	}
	for _, w := range []score.OnAbsent{score.AbsentCollect, score.AbsentRestore, score.AbsentRelease, score.AbsentReport} {
		word(string(w), func(p *score.Policy) { p.OnAbsent = w })
	}
	for _, w := range []score.OnDestroy{score.DestroySignature, score.DestroyNever} {
		word(string(w), func(p *score.Policy) { p.OnDestroy = w })
	}
	for _, w := range []score.OnFailure{score.FailureHold, score.FailureRollForward, score.FailureRollBack} {
		word(string(w), func(p *score.Policy) { p.OnFailure = w })
	}
	b.WriteString("\nConverge with one word spelled out, of what is owned, by itself:")
	write(b, by, "word", 11, words, changes)
	return b.String()
}

// Every decision, for people to read: whoever changes a rule sees here what it did.
func TestDecisions(t *testing.T) { // S16, X78, X104
	got := decisions(rules)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	lines := strings.Split(string(want), "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Fatalf("line %d: got\n%s, want\n%s\nIf it is meant, run go test ./agent/authority -update and read the difference.", i+1, line, lines[min(i, len(lines)-1)])
		}
	}
	t.Fatal("decisions are missing")
}
