package show

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// Plan writes one line for each action of p: what, why, how bad it is, and what the policy
// says to it. Below it stands every field that differs, what is restarted and what is removed.
func Plan(w io.Writer, p interpret.Plan) error {
	out := bufio.NewWriter(w)
	if !p.Differs() {
		fmt.Fprintf(out, "nothing differs: %s\n", good(p.Unchanged, "score"))
		fmt.Fprintf(out, "plan %s\n", Text(p.ID))
		return out.Flush()
	}
	_ = Actions(out, p.Actions) // into a buffer

	if p.Truncated > 0 {
		fmt.Fprintf(out, "and %s that the document has no room for\n", Plural(p.Truncated, "more action"))
	}
	fmt.Fprint(out, counted(p))
	if p.Unchanged > 0 {
		fmt.Fprintf(out, "; %s", good(p.Unchanged, "other score"))
	}
	fmt.Fprintln(out)
	fmt.Fprintf(out, "plan %s\n", Text(p.ID))
	return out.Flush()
}

// Actions writes one line for each action of a plan, with what is to be known of it below.
func Actions(w io.Writer, actions []interpret.PlannedAction) error {
	t := NewTable("ACTION", "SCORE", "KIND", "CAUSE", "EFFECT", "DECISION")
	for _, a := range actions {
		t.Row(dash(string(a.Action)), who(a.Manifest, a.Score), dash(string(a.Kind)), dash(string(a.Cause)), dash(string(a.Effect)), decision(a))
		Changes(t, a.Changes)
		for _, n := range notes(a) {
			t.Note(n)
		}
	}
	return t.Write(w)
}

// notes are what is to be known of an action beside its fields.
func notes(a interpret.PlannedAction) (out []string) {
	if a.Action == interpret.ActionRemove || a.Action == interpret.ActionDecommission {
		out = append(out, "removes "+Text(join(a.Resources)))
	}
	switch a.Provenance {
	case interpret.Foreign:
		out = append(out, "what is there is foreign: this device did not make it")
	case interpret.Adopted:
		out = append(out, "what is there is adopted: somebody else made it first")
	}
	switch {
	case a.Backup && a.Decision == interpret.DecideApply:
		out = append(out, "what is there is kept as a backup first")
	case a.Backup:
		out = append(out, "if it is consented to, what is there is kept as a backup first, and overwritten")
	}
	if len(a.Restarts) > 0 {
		out = append(out, "restarts "+Text(join(a.Restarts)))
	}
	return out
}

// decision says what the policy does about an action, and why.
func decision(a interpret.PlannedAction) string {
	parts := []string{string(a.Decision)}
	for _, s := range []string{a.Authority, string(a.Code), a.Reason} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

// counted says how many actions there are and what becomes of them: "3 actions: 2 apply, 1 pending".
func counted(p interpret.Plan) string {
	n := map[interpret.Decision]int{}
	for _, a := range p.Actions {
		n[a.Decision]++
	}
	text, sep := Plural(len(p.Actions)+p.Truncated, "action"), ": "
	for _, d := range []interpret.Decision{interpret.DecideApply, interpret.DecidePending, interpret.DecideReport, interpret.DecideRefuse, interpret.DecideNothing} {
		if n[d] > 0 {
			text += fmt.Sprintf("%s%d %s", sep, n[d], d)
			sep = ", "
		}
	}
	return text
}

func change(c interpret.Change) string {
	return Text(c.Field) + ": " + value(c.Have) + " → " + value(c.Want)
}

// Changes adds every field that differs below the last row of t.
func Changes(t *Table, changes []interpret.Change) {
	for _, c := range changes {
		t.Note(change(c))
	}
}

// who names a score as operations do.
func who(manifest string, id score.ID) string {
	switch {
	case manifest == "":
		return Text(string(id))
	case id == "":
		return Text(manifest)
	}
	return Text(manifest + "/" + string(id))
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return Text(s)
}

func join[T ~string](list []T) string {
	s := make([]string, len(list))
	for i, v := range list {
		s[i] = string(v)
	}
	return strings.Join(s, ", ")
}

// good gives "there is no score", "1 score is as it should be" or "2 scores are as they should be".
func good(n int, what string) string {
	switch n {
	case 0:
		return "there is no " + what
	case 1:
		return Plural(n, what) + " is as it should be"
	}
	return Plural(n, what) + " are as they should be"
}
