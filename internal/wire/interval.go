package wire

import "time"

// DefaultInterval is how often a device sends a heartbeat when it was told nothing else.
const DefaultInterval = 30 * time.Second

// A Bound is what a device makes of a number of seconds that it was told: 0 is the default, and nothing outside of
// [Min, Max] is believed, so that no control envelope can make a device hammer the server or fall silent.
type Bound struct{ Default, Min, Max time.Duration }

// The bounds of the three intervals of a [ControlEnvelope].
var (
	HeartbeatBound = Bound{DefaultInterval, 5 * time.Second, time.Hour}
	PollBound      = Bound{5 * time.Minute, 5 * time.Second, 24 * time.Hour}
	ReconnectBound = Bound{time.Minute, 5 * time.Second, time.Hour}
)

// Clamp gives the duration to use.
func (b Bound) Clamp(seconds uint32) time.Duration {
	if seconds == 0 {
		return b.Default
	}
	return min(max(time.Duration(seconds)*time.Second, b.Min), b.Max)
}
