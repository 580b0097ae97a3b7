package health

import "time"

// Pauses before restarts.
const (
	firstPause   = time.Second
	longestPause = 5 * time.Minute
)

// A Budget says when something that hangs may be restarted: 1 s after it was found out,
// then 2, 4, 8 s and so on, up to 5 minutes, until it has worked for twice the last
// pause. It is pure: it has no clock. The zero value has all of its budget.
type Budget struct {
	restarts int       // in a row
	alive    time.Time // since when; zero: not yet since the last restart
}

// Restarts is how many there were in a row, after none of which it worked for long.
func (b *Budget) Restarts() int { return b.restarts }

// Alive tells that a look at a time found it alive.
func (b *Budget) Alive(at time.Time) {
	if b.alive.IsZero() {
		b.alive = at
	}
	if b.restarts > 0 && at.Sub(b.alive) >= 2*pause(b.restarts-1) {
		b.restarts = 0
	}
}

// Hangs tells that it was found hanging, and returns how long its restart is put off.
func (b *Budget) Hangs() time.Duration {
	b.alive = time.Time{}
	return pause(b.restarts)
}

// Restarted tells that a restart was tried, whatever came of it.
func (b *Budget) Restarted() { *b = Budget{restarts: b.restarts + 1} }

// pause is the one before a restart that n others came before.
func pause(n int) time.Duration {
	if n > 8 { // 512 s, and no shift that overflows
		return longestPause
	}
	return min(firstPause<<n, longestPause)
}
