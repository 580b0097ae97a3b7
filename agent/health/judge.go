package health

import (
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// A Verdict is what is known of one probe.
type Verdict string

// Verdicts. The empty one means that there is no such probe.
const (
	Unknown   Verdict = "unknown" // not enough was seen yet
	Healthy   Verdict = "healthy"
	Unhealthy Verdict = "unhealthy"
)

// A Result is how one look ended.
type Result int

// Results.
const (
	Failed    Result = iota
	Succeeded        // it works
	Unseen           // nothing could be found out, or nothing can be said yet; it counts for nothing
)

// A Judge makes the verdict of one probe. It is pure: it has no clock, and others look
// for it. The zero value is of no use; see NewJudge.
type Judge struct {
	probe   score.Probe // filled
	verdict Verdict
	since   time.Time // of the verdict
	next    time.Time
	last    Result
	row     int // looks in a row that ended as the last one did, Unseen ones left out
	detail  string
}

// NewJudge returns a judge who knows nothing at a time, and begins when the delay of p is over.
func NewJudge(p score.Probe, at time.Time) Judge {
	return Judge{probe: p.Filled(), verdict: Unknown, since: at, next: at.Add(time.Duration(p.Delay))}
}

// Record takes how a look that began at a time ended, with a reason for people, and
// reports whether the verdict is another one now. It is Unhealthy with the look that
// reaches the failure threshold, and Healthy with the one that reaches the success
// threshold; a look that ends otherwise starts the count again.
func (j *Judge) Record(at time.Time, r Result, detail string) (changed bool) {
	j.next, j.detail = at.Add(j.period()), detail
	if r == Unseen {
		return false
	}
	if r != j.last {
		j.last, j.row = r, 0
	}
	j.row++
	verdict, threshold := Unhealthy, j.probe.FailureThreshold
	if r == Succeeded {
		verdict, threshold = Healthy, j.probe.SuccessThreshold
	}
	if j.row < threshold || verdict == j.verdict {
		return false
	}
	j.verdict, j.since = verdict, at
	return true
}

// Verdict is what is known, and since when.
func (j *Judge) Verdict() (Verdict, time.Time) { return j.verdict, j.since }

// Detail is the reason of the last look; empty before the first one.
func (j *Judge) Detail() string { return j.detail }

// Next is when the next look is due.
func (j *Judge) Next() time.Time { return j.next }

func (j *Judge) period() time.Duration { return time.Duration(j.probe.Period) }

func (j *Judge) timeout() time.Duration { return time.Duration(j.probe.Timeout) }
