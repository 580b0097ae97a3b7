package score

import "time"

// Engine is how the agent plays one score, whatever its kind.
type Engine struct {
	// Noop makes the agent only look at the score and report what differs.
	Noop bool `json:"noop,omitempty"`
	// Retries is how often a failed try is repeated before the score is left alone until something about it is new. If
	// it is left out, for ever.
	Retries *int `json:"retries,omitempty" jsonschema:"minimum=0"`
	// Delay is the pause after the first failure, from 1 s to 5 minutes; it doubles with each one, up to 5 minutes. If
	// it is left out, 1 s. What could cut the device off starts with a minute and goes up to an hour: each try costs it its link.
	Delay Duration `json:"delay,omitzero"`
	// Timeout of one try: a second at least. If it is left out, 15 minutes.
	Timeout Duration `json:"timeout,omitzero"`
	// Poll makes the agent look at the score at least so often, besides the full passes: a second at least.
	Poll Duration `json:"poll,omitzero"`
	// Limit bounds how often the score may be changed.
	Limit *Limit `json:"limit,omitempty"`
	// Group names a lock: of the scores of one device that name the same one, one at a time is played.
	Group string `json:"group,omitempty" jsonschema:"example=display"`
}

// A Limit is a number of changes in a time.
type Limit struct {
	// Changes that may be made in the time.
	Changes int `json:"changes" jsonschema:"minimum=1"`
	// Per is the time: a second at least.
	Per Duration `json:"per"`
}

func (e Engine) clone() Engine {
	e.Retries, e.Limit = clonePointer(e.Retries), clonePointer(e.Limit)
	return e
}

const (
	longestPause     = Duration(5 * time.Minute)
	shortestPace     = Duration(time.Second)
	longestPoll      = Duration(24 * time.Hour)
	longestTry       = Duration(24 * time.Hour)
	longestLimitTime = Duration(30 * 24 * time.Hour)
)

func (e Engine) check(r *Report) {
	if e.Retries != nil && *e.Retries < 0 {
		r.At("retries").Errorf("retries %d must be 0 or more", *e.Retries)
	}
	checkPace(r.At("delay"), "delay", e.Delay, longestPause)
	checkPace(r.At("timeout"), "timeout", e.Timeout, longestTry)
	checkPace(r.At("poll"), "poll", e.Poll, longestPoll)
	if l := e.Limit; l != nil {
		if l.Changes < 1 {
			r.At("limit", "changes").Errorf("changes %d must be 1 or more; to change nothing, write noop: true", l.Changes)
		}
		if l.Per == 0 {
			r.At("limit", "per").Errorf("per must be a second at least")
		}
		checkPace(r.At("limit", "per"), "per", l.Per, longestLimitTime)
	}
	if e.Group != "" && !nameRE.MatchString(e.Group) {
		r.At("group").Errorf("group %q must be lower-case letters, digits and '-', at most 63", e.Group)
	}
}

// checkPace reports a time that is given and is shorter than a second, or too long.
func checkPace(r *Report, field string, d, longest Duration) {
	if d != 0 && (d < shortestPace || d > longest) {
		r.Errorf("%s %s must be from %s to %s", field, d, shortestPace, longest)
	}
}
