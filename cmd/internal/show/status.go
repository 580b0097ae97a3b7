package show

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/interpret"
)

// Scores writes one line for each score of st, with the fields that differ below it.
func Scores(w io.Writer, st interpret.DeviceStatus) error {
	out := bufio.NewWriter(w)
	for i, m := range st.Manifests {
		if len(st.Manifests) > 1 || st.Generation > 0 {
			if i > 0 {
				fmt.Fprintln(out)
			}
			fmt.Fprintf(out, "manifest %s, generation %d: %s", Text(m.Name), m.Generation, Text(string(m.State)))
			if !m.GoodAt.IsZero() {
				fmt.Fprintf(out, ", and good from %s if nothing fails before", m.GoodAt.UTC().Format(time.RFC3339))
			}
			fmt.Fprintln(out)
		}
		if b := m.RolledBack; b != nil {
			fmt.Fprintf(out, "rolled back: the content of generation %d failed at %s, and generation %d is in force; %s: %s\n", b.Generation, b.Since.UTC().Format(time.RFC3339), b.To, Text(string(b.Score)), because(b.Code, b.Message))
			fmt.Fprintf(out, "the same content is not tried again: when the cause is gone, change the manifest, if only by extensions: {example.org: {attempt: 2}}\n")
		}
		rows(out, m)
	}
	if len(st.Manifests) > 0 && len(st.Orphans)+len(st.Unmanaged)+len(st.Problems) > 0 {
		fmt.Fprintln(out)
	}
	for _, o := range st.Orphans {
		fmt.Fprintf(out, "left over: %s, of score %s of manifest %s: %s\n", Text(string(o.Resource)), Text(string(o.Score)), Text(o.Manifest), Text(o.Message))
	}
	if len(st.Unmanaged) > 0 {
		fmt.Fprintln(out, unmanaged(st))
	}
	for _, p := range st.Problems {
		fmt.Fprintf(out, "problem: %s: %s\n", Text(string(p.Code)), Text(p.Message))
	}
	return out.Flush()
}

// unmanaged says in one line what is there that nobody wished for, and how that can be.
func unmanaged(st interpret.DeviceStatus) string {
	names := make([]string, len(st.Unmanaged))
	for i, r := range st.Unmanaged {
		names[i] = Text(strings.Replace(string(r), ":", " ", 1))
	}
	text := "not managed here, and left alone: " + strings.Join(names, ", ")
	if st.UnmanagedMore > 0 {
		text += fmt.Sprintf(" and %d more", st.UnmanagedMore)
	}
	return text + "; to manage one, remove it by hand and name it in a manifest: a container cannot be taken over as it is"
}

func rows(out io.Writer, m interpret.ManifestStatus) {
	t := NewTable("SCORE", "KIND", "OUTCOME", "AUTHORITY", "REASON")
	for _, s := range m.Scores {
		t.Row(Text(string(s.ID)), Text(string(s.Kind)), string(s.Outcome), dash(s.Authority), reason(s))
		for _, c := range s.Changes {
			t.Note(change(c))
		}
	}
	_ = t.Write(out) // into a buffer
}

// reason says in one line why a score is as it is.
func reason(s interpret.ScoreStatus) string {
	var parts []string
	if s.Code != "" {
		parts = append(parts, string(s.Code))
	}
	if s.Message != "" {
		first, _, _ := strings.Cut(s.Message, "\n")
		parts = append(parts, Text(first))
	}
	if len(parts) == 0 && len(s.Changes) > 0 {
		parts = append(parts, string(s.Cause))
	}
	if s.Backup != "" {
		parts = append(parts, "what was there is kept as backup "+Text(s.Backup))
	}
	if len(parts) == 0 && !s.Conditions.Good() {
		parts = append(parts, "not up yet")
	}
	if len(parts) == 0 && s.Outcome == interpret.Changed && s.Cause == interpret.CauseExplicit {
		parts = append(parts, "decommission: it was removed")
	}
	if len(parts) == 0 && s.Outcome == interpret.Unchanged && s.Cause == interpret.CauseDrift && !s.Since.IsZero() {
		parts = append(parts, "drift was undone, so since "+s.Since.UTC().Format(time.RFC3339))
	}
	return strings.Join(parts, ": ")
}

// Summary counts outcomes, as in "3 scores: 2 unchanged, 1 failed".
func Summary(st interpret.DeviceStatus) string {
	n := map[interpret.Outcome]int{}
	total := 0
	for _, m := range st.Manifests {
		for _, s := range m.Scores {
			n[s.Outcome]++
			total++
		}
	}
	text := Plural(total, "score")
	sep := ": "
	for _, o := range []interpret.Outcome{
		interpret.Unchanged, interpret.Changed, interpret.Drifted, interpret.Pending, interpret.Waiting, interpret.Conflict,
		interpret.Refused, interpret.Unsupported, interpret.RolledBack, interpret.Failed,
	} {
		if n[o] > 0 {
			text += sep + strconv.Itoa(n[o]) + " " + string(o)
			sep = ", "
		}
	}
	return text
}

// Plural gives "1 score" or "2 scores".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Converged counts the scores of st that have converged, and all of them.
func Converged(st interpret.DeviceStatus) (converged, total int) {
	for _, m := range st.Manifests {
		for _, s := range m.Scores {
			if total++; s.Converged() {
				converged++
			}
		}
	}
	return converged, total
}

const maxValue = 60 // characters of a value in a table

// value is what a change has or wants, fit for a line.
func value(s string) string {
	keyed := ""
	if strings.HasPrefix(s, interpret.Keyed) {
		keyed = interpret.Keyed
	}
	switch sum := s[len(keyed):]; {
	case s == "":
		return `""`
	case len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == "":
		return keyed + sum[:12] + "…" // a digest
	}
	if r := []rune(s); len(r) > maxValue {
		s = string(r[:maxValue]) + "…"
	}
	return Text(s)
}

// Plain makes a message harmless on a terminal: what does not print is written as Go writes it in a string. Lines stay
// lines.
func Plain(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r) && !(r == utf8.RuneError && n == 1):
			b.WriteString(s[:n])
		default:
			q := strconv.Quote(s[:n])
			b.WriteString(q[1 : len(q)-1])
		}
		s = s[n:]
	}
	return b.String()
}

// Text makes s harmless on a terminal: what devices and documents say may hold escape
// sequences.
func Text(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return s
	}
	return strconv.Quote(s)
}
