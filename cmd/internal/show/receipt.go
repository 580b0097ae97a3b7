package show

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
)

// Receipt writes what came of an operation or a pass: every action with its fields, digests,
// backup and diff, and the plan that it holds.
func Receipt(w io.Writer, r interpret.Receipt) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "receipt %s: %s %s", Text(r.ID), Text(string(r.Verb)), Text(string(r.Result)))
	if why := because(r.Code, r.Message); why != "" {
		fmt.Fprint(out, ": ", why)
	}
	fmt.Fprintln(out)
	facts := []string{}
	if r.Device != "" {
		facts = append(facts, "device "+Text(r.Device))
	}
	if r.Generation > 0 {
		facts = append(facts, fmt.Sprint("generation ", r.Generation))
	}
	if r.Actor != "" {
		facts = append(facts, "asked by "+Text(r.Actor))
	}
	if r.Reason != "" {
		facts = append(facts, "because: "+Text(r.Reason))
	}
	if !r.Finished.IsZero() {
		facts = append(facts, "at "+r.Finished.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if len(facts) > 0 {
		fmt.Fprintln(out, strings.Join(facts, ", "))
	}
	switch {
	case len(r.Actions) > 0:
		receiptActions(out, r.Actions)
	case r.Result == interpret.ResultDone && r.Plan == nil:
		fmt.Fprintln(out, "nothing was to be done")
	}
	if r.Truncated > 0 {
		fmt.Fprintf(out, "and %s that the document has no room for\n", Plural(r.Truncated, "more action"))
	}
	if err := out.Flush(); err != nil || r.Plan == nil {
		return err
	}
	if r.Code == interpret.CodePlanChanged {
		fmt.Fprintln(w, "\nthe plan of now:")
	}
	return Plan(w, *r.Plan)
}

func receiptActions(out io.Writer, actions []interpret.ReceiptAction) {
	t := NewTable("OUTCOME", "ACTION", "SCORE", "KIND", "AUTHORITY", "REASON")
	for _, a := range actions {
		why := because(a.Code, a.Message)
		if why == "" {
			why = string(a.Cause)
		}
		t.Row(string(a.Outcome), dash(string(a.Action)), who(a.Manifest, a.Score), dash(string(a.Kind)), dash(a.Authority), why)
		Changes(t, a.Changes)
		if a.Outcome == interpret.Changed && (a.Action == interpret.ActionRemove || a.Action == interpret.ActionDecommission) {
			t.Note("removed " + Text(join(a.Resources)))
		}
		if a.Backup != "" {
			t.Note("what was there is kept as backup " + Text(a.Backup))
		}
		for l := range strings.Lines(a.Diff) {
			t.Note(strings.TrimSuffix(l, "\n"))
		}
	}
	_ = t.Write(out) // into a buffer
}

// Receipts writes one line for each receipt.
func Receipts(w io.Writer, all []interpret.Receipt) error {
	t := NewTable("TIME", "VERB", "RESULT", "RECEIPT", "BY", "WHAT")
	for _, r := range all {
		at := "-"
		if !r.Finished.IsZero() {
			at = r.Finished.UTC().Format("2006-01-02T15:04:05Z")
		}
		t.Row(at, dash(string(r.Verb)), string(r.Result), Text(r.ID), dash(r.Actor), what(r))
	}
	return t.Write(w)
}

// what says in one line what came of it.
func what(r interpret.Receipt) string {
	var parts []string
	if r.Code == interpret.CodePlanChanged && r.Plan != nil {
		parts = append(parts, "plan_changed: nothing was done")
	} else if why := because(r.Code, r.Message); why != "" {
		parts = append(parts, why)
	}
	n := map[interpret.Outcome]int{}
	var order []interpret.Outcome
	for _, a := range r.Actions {
		if n[a.Outcome]++; n[a.Outcome] == 1 {
			order = append(order, a.Outcome)
		}
	}
	slices.Sort(order)
	for _, o := range order {
		parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
	}
	switch {
	case r.Plan == nil:
	case r.Plan.Differs():
		parts = append(parts, counted(*r.Plan))
	default:
		parts = append(parts, "nothing differs")
	}
	return strings.Join(parts, ", ")
}

func because(code interpret.Code, message string) string {
	first, _, _ := strings.Cut(message, "\n")
	switch {
	case code == "":
		return Text(first)
	case message == "":
		return Text(string(code))
	}
	return Text(string(code)) + ": " + Text(first)
}

// RollbackCheck writes whether everything is there that rollbacks would need.
func RollbackCheck(w io.Writer, found []interpret.ReceiptAction) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(w, "no manifest rolls back: none says onFailure: rollBack")
		return err
	}
	t := NewTable("ROLLBACK", "SCORE", "KIND", "REASON")
	bad := 0
	for _, a := range found {
		state, why := "possible", ""
		if a.Outcome == interpret.Failed {
			state, why = "impossible", because(a.Code, a.Message)
			bad++
		}
		t.Row(state, who(a.Manifest, a.Score), dash(string(a.Kind)), why)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	text := "every rollback that is declared could be done"
	if bad > 0 {
		text = "not every rollback that is declared could be done: " + Plural(bad, "thing") + " missing"
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
