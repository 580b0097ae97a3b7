package score

import (
	"regexp"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// A Window is a time that comes again and again.
type Window struct {
	// Cron says when the window opens: minute, hour, day of month, month and day of week, in the time zone of the device.
	Cron string `json:"cron" jsonschema:"example=30 2 * * sat"`
	// Duration is how long it stays open: a minute at least.
	Duration Duration `json:"duration"`
}

// Next returns when w opens next after t, in the time zone of t, and the zero time if it never does. A window whose cron
// is not sound never opens.
func (w Window) Next(t time.Time) time.Time {
	s, ok := w.schedule()
	if !ok {
		return time.Time{}
	}
	return s.Next(t)
}

// A cronField is one of the five.
type cronField struct {
	name, values string
	parser       cron.Parser
}

var cronFields = []cronField{
	{"minute", "0 to 59", cron.NewParser(cron.Minute)},
	{"hour", "0 to 23", cron.NewParser(cron.Hour)},
	{"day of month", "1 to 31", cron.NewParser(cron.Dom)},
	{"month", "1 to 12, or jan to dec", cron.NewParser(cron.Month)},
	{"day of week", "0 to 6 with sunday as 0, or sun to sat", cron.NewParser(cron.Dow)},
}

var (
	fiveFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	// what all readers of cron mean the same by: the parser takes "?", "*-5", "1,,2" and "+1" as well
	cronRE = regexp.MustCompile(`^(\*|[0-9]{1,2}|[a-zA-Z]{3})(-([0-9]{1,2}|[a-zA-Z]{3}))?(/[0-9]{1,2})?$`)
)

// schedule parses the five fields. A time zone in front and names such as @daily are refused: the one
// is the device's, and the other says less than it seems to.
func (w Window) schedule() (cron.Schedule, bool) {
	if strings.Contains(w.Cron, "=") {
		return nil, false
	}
	for i, f := range strings.Fields(w.Cron) {
		if i >= len(cronFields) || !cronFields[i].takes(f) {
			return nil, false
		}
	}
	s, err := fiveFields.Parse(w.Cron)
	return s, err == nil
}

func (c cronField) takes(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if !cronRE.MatchString(part) || strings.HasPrefix(part, "*-") {
			return false
		}
	}
	_, err := c.parser.Parse(text)
	return err == nil
}

const (
	shortestWindow = Duration(time.Minute)
	manyOpenings   = 24*60 + 1 // of a window that opens every minute: those of a day
)

// Check reports what is wrong with w, whoever has it.
func (w Window) Check(r *Report) {
	at := r.At("cron")
	fields := strings.Fields(w.Cron)
	switch {
	case strings.Contains(w.Cron, "="):
		at.Errorf("cron %q names a time zone; a window is in the time zone of the device", w.Cron)
		return
	case len(fields) != len(cronFields):
		at.Errorf("cron %q must be five fields, such as \"30 2 * * sat\": minute, hour, day of month, month and day of week", w.Cron)
		return
	}
	for i, f := range cronFields {
		if !f.takes(fields[i]) {
			at.Errorf("cron %q has the %s %q, which is not of %s, nor a range, list or step of them", w.Cron, f.name, fields[i], f.values)
			return
		}
	}
	s, ok := w.schedule()
	opened := time.Time{}
	if ok {
		opened = s.Next(someTime)
	}
	switch {
	case opened.IsZero():
		at.Errorf("cron %q never comes: there is no such day", w.Cron)
	case w.Duration < shortestWindow:
		r.At("duration").Errorf("duration is %s, and a window must be open for a minute at least", w.Duration)
	case neverCloses(s, opened, time.Duration(w.Duration)):
		r.At("duration").Errorf("a window of %s that opens at %q never closes: leave the window out, or make it shorter", w.Duration, w.Cron)
	}
}

// someTime is where the openings of a window are counted from: a year without a leap day, and a zone without summer time.
var someTime = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func neverCloses(s cron.Schedule, opened time.Time, open time.Duration) bool {
	for range manyOpenings {
		next := s.Next(opened)
		if next.Sub(opened) > open {
			return false
		}
		opened = next
	}
	return true
}
