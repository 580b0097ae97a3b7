package score

import "slices"

// A Presence says whether a thing is to be there.
type Presence string

// Presences. What is left out is Present.
const (
	Present Presence = "present"
	Absent  Presence = "absent" // to be gone: its removal is asked for like any other removal
)

func (p Presence) check(r *Report) {
	if words := []string{string(Present), string(Absent)}; p != "" && !slices.Contains(words, string(p)) {
		r.Errorf("unknown state %q%s", p, didYouMean(string(p), words))
	}
}
