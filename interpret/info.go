package interpret

import (
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// InfoKind is the kind of a DeviceInfo document.
const InfoKind = "DeviceInfo"

// A DeviceInfo is what a device says it is: not what it should be, and not whether it is so. It selects nothing and
// allows nothing, because whoever has the device can have it say anything.
type DeviceInfo struct {
	// Version of the document: continuo/v1.
	APIVersion string `json:"apiVersion"`
	// Kind of document: DeviceInfo.
	Kind string `json:"kind"`
	// Device that this is about.
	Device string `json:"device,omitempty"`
	// Facts that it found out.
	Facts topology.Facts `json:"facts,omitzero"`
	// Clock of the device, beside that of the fleet.
	Clock Clock `json:"clock,omitzero"`
	// Agent that reports.
	Agent Agent `json:"agent,omitzero"`
	// Time of the report, on the device's clock.
	Time time.Time `json:"time,omitzero"`
}

// A Clock says how far the clock of a device is from that of its fleet, which signs the time in every answer to a heartbeat.
type Clock struct {
	// AheadSeconds is how far the device is ahead, negative if it is behind; left out until it was measured.
	AheadSeconds *float64 `json:"aheadSeconds,omitempty"`
	// WithinSeconds is how far that can be wrong: half of the round trip, and half of the second that the fleet's time is rounded to.
	WithinSeconds float64 `json:"withinSeconds,omitzero"`
}
