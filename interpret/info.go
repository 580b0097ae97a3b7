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
	// Tools that the device stands on: agent, kernel, podman and systemd.
	Tools []Tool `json:"tools,omitempty"`
	// Clock of the device, beside that of the fleet.
	Clock Clock `json:"clock,omitzero"`
	// Agent that reports.
	Agent Agent `json:"agent,omitzero"`
	// Time of the report, on the device's clock.
	Time time.Time `json:"time,omitzero"`
}

// A Tool is what was found under the name of a program.
type Tool struct {
	// Name of the program.
	Name string `json:"name"`
	// Condition is present, missing, broken, or shadowed: it does not work, and stands before one that does.
	Condition topology.ToolCondition `json:"condition"`
	// Copies of that name, in the order of the search path: the first is the one that is started.
	Copies []topology.ToolCopy `json:"copies,omitempty"`
}

// A Clock says how far the clock of a device is from that of its fleet, which signs the time in every answer to a heartbeat.
type Clock struct {
	// AheadSeconds is how far the device is ahead, negative if it is behind; left out until it was measured.
	AheadSeconds *float64 `json:"aheadSeconds,omitempty"`
	// WithinSeconds is how far that can be wrong: half of the round trip, and half of the second that the fleet's time is rounded to.
	WithinSeconds float64 `json:"withinSeconds,omitzero"`
}
