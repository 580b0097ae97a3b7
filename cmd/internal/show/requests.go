package show

import (
	"io"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
)

// requestDigits is how much of the id of a request a list shows.
const requestDigits = 12

// A RequestLine is a request and the device that made it.
type RequestLine struct {
	Device  string
	Request interpret.ApprovalRequest
}

// Requests writes one line for each request, with what is to be known of it below.
func Requests(w io.Writer, all []RequestLine) error {
	t := NewTable("REQUEST", "DEVICE", "ACTION", "SCORE", "KIND", "EFFECT", "SINCE", "WHY")
	for _, l := range all {
		a := l.Request.Action
		since := "-"
		if !l.Request.Since.IsZero() {
			since = l.Request.Since.UTC().Format(time.RFC3339)
		}
		why := string(a.Code)
		if a.Reason != "" {
			why += ": " + a.Reason
		}
		t.Row(Text(l.Request.ID[:min(len(l.Request.ID), requestDigits)]), Text(l.Device), dash(string(a.Action)), who(a.Manifest, a.Score), dash(string(a.Kind)), dash(string(a.Effect)), since, dash(why))
		Changes(t, a.Changes)
		for _, n := range notes(a) {
			t.Note(n)
		}
		if l.Request.Omitted > 0 {
			t.Note(Plural(l.Request.Omitted, "field") + " left out, because the document would be too large: continuo plan shows them")
		}
	}
	return t.Write(w)
}
