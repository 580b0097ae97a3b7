package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// A DeviceState is everything that the fleet knows of one device. Times are the store's.
type DeviceState struct {
	// Device that this is about.
	Device Device `json:"device"`
	// Verdict is the fold over all that follows.
	Verdict Verdict `json:"verdict"`
	// Reason says why, for people.
	Reason string `json:"reason,omitempty"`
	// Desired is the generation that is published for the device; 0 means none.
	Desired uint64 `json:"desired,omitzero"`
	// Published is when that was stored.
	Published time.Time `json:"published,omitzero"`
	// Status is what the device reported last.
	Status *interpret.DeviceStatus `json:"status,omitempty"`
	// Unreadable says why there is no Status although the device reported.
	Unreadable string `json:"unreadable,omitempty"`
	// Revision of the status in its stream.
	Revision uint64 `json:"revision,omitzero"`
	// ReportedAt is when the status was stored.
	ReportedAt time.Time `json:"reportedAt,omitzero"`
	// Liveness is whether the device is heard of.
	Liveness Liveness `json:"liveness"`
	// Heartbeat is the last one, while it counts.
	Heartbeat Heartbeat `json:"heartbeat,omitzero"`
	// LastHeard is when the last heartbeat came, as far as it is known.
	LastHeard time.Time `json:"lastHeard,omitzero"`
}

// Reported is the highest generation that the device is known to hold.
func (s DeviceState) Reported() uint64 {
	if s.Status == nil {
		return s.Heartbeat.Generation
	}
	return max(s.Status.Generation, s.Heartbeat.Generation)
}

// Score gives the status of one score. interpret.Read gives its typed state.
func (s DeviceState) Score(manifest string, id score.ID) (interpret.ScoreStatus, bool) {
	if s.Status == nil {
		return interpret.ScoreStatus{}, false
	}
	for _, m := range s.Status.Manifests {
		for _, sc := range m.Scores {
			if m.Name == manifest && sc.ID == id {
				return sc, true
			}
		}
	}
	return interpret.ScoreStatus{}, false
}

// A Heartbeat is what the control service keeps of the last one of a device.
type Heartbeat struct {
	Agent      string `json:"agent,omitempty"`
	Build      string `json:"build,omitempty"`
	Boot       string `json:"boot,omitempty"`
	Instance   string `json:"instance,omitempty"`
	Generation uint64 `json:"generation,omitzero"`
	Digest     string `json:"digest,omitempty"`
	Outcome    string `json:"outcome,omitempty"`
	Health     string `json:"health,omitempty"`
	Store      string `json:"store,omitempty"`
	Pending    uint32 `json:"pending,omitzero"`
	Uptime     uint64 `json:"uptime,omitzero"`
	// Serial number of the board that it came from.
	Serial string `json:"serial,omitempty"`
	// Conflict says that others report under the same name: "hold" if this one was told to change nothing, "other" if it
	// goes on and the others were told.
	Conflict string `json:"conflict,omitempty"`
}

// A presence is what the control service says of itself, so that silence can be told from nobody listening.
type presence struct {
	Beats uint64 `json:"beats"` // how many intervals it has been listening, without a gap
}

// enoughBeats is how long a control service must have listened before a device counts as silent.
const enoughBeats = 3

// presenceKey is no name of a device: it has no dot.
const presenceKey = "control"

// maxStatus is the most that a status may have: what the stream accepts from a device.
const maxStatus = 64 << 10

// decodeStatus reads what a device wrote. Fields that a newer agent added are ignored; a document of another version
// is not read at all.
func decodeStatus(b []byte) (*interpret.DeviceStatus, error) {
	if len(b) > maxStatus {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(b), maxStatus)
	}
	var st interpret.DeviceStatus
	if err := json.Unmarshal(b, &st); err != nil {
		return nil, err
	}
	if st.APIVersion != score.APIVersion || st.Kind != interpret.StatusKind {
		return nil, fmt.Errorf("it is a %.40q of %.40q, this program reads %q of %q", st.Kind, st.APIVersion, interpret.StatusKind, score.APIVersion)
	}
	return &st, nil
}

func decodeHeartbeat(b []byte) (Heartbeat, error) {
	var h Heartbeat
	if len(b) > maxStatus {
		return h, fmt.Errorf("it has %d bytes", len(b))
	}
	err := json.Unmarshal(b, &h)
	return h, err
}

// A view is the state of the devices as of now.
type view struct {
	devices map[Device]*DeviceState
	beats   uint64 // of the control service
}

func (v *view) device(d Device) *DeviceState {
	s, ok := v.devices[d]
	if !ok {
		s = &DeviceState{Device: d}
		v.devices[d] = s
	}
	return s
}

func (v *view) sorted() []Device {
	return slices.SortedFunc(maps.Keys(v.devices), func(a, b Device) int { return cmp.Compare(a.String(), b.String()) })
}

// state gives the folded state of d.
func (v *view) state(d Device) DeviceState {
	s := DeviceState{Device: d}
	if known, ok := v.devices[d]; ok {
		s = *known
	}
	switch {
	case s.Heartbeat != Heartbeat{}:
		s.Liveness = Live
	case v.beats >= enoughBeats:
		s.Liveness = Silent
	default:
		s.Liveness = Unheard
	}
	s.Verdict, s.Reason = Fold(s)
	return s
}

// desiredKey is the key of a message of the desired bucket. Of any other it is none.
func desiredKey(subject string) wire.Key {
	key, _ := strings.CutPrefix(subject, wire.DesiredSubject(""))
	return wire.Key(key)
}

// take takes one message of one of the streams into the view, and gives the device that it is about: none if it is
// about all of them. The message's subject and time come from the server, not from who wrote it.
func (v *view) take(m message) (Device, bool) {
	if m.stream == wire.StreamAlive && m.subject == aliveSubject(presenceKey) {
		var p presence
		if !m.deleted && json.Unmarshal(m.data, &p) != nil {
			p = presence{}
		}
		v.beats = p.Beats
		return Device{}, true
	}
	d, err := wire.DeviceOf(m.subject)
	if err != nil {
		return Device{}, false
	}
	switch m.stream {
	case wire.StreamDesired:
		t, err := desiredKey(m.subject).Target()
		if err != nil || t.Kind != wire.KindDevice {
			return Device{}, false
		}
		s := v.device(d)
		s.Desired, s.Published = m.generation, m.time
		if m.deleted {
			s.Desired, s.Published = 0, time.Time{}
		}
	case wire.StreamActual:
		s := v.device(d)
		s.Status, s.Unreadable, s.Revision, s.ReportedAt = nil, "", m.sequence, m.time
		if s.Status, err = decodeStatus(m.data); err != nil {
			s.Unreadable = interpret.Brief(err.Error()) // it may hold what the device wrote
		}
	case wire.StreamAlive:
		s := v.device(d)
		if m.deleted {
			s.Heartbeat, s.LastHeard = Heartbeat{}, m.time.Add(-wire.AliveTTL)
			break
		}
		if s.Heartbeat, err = decodeHeartbeat(m.data); err != nil || s.Heartbeat == (Heartbeat{}) {
			s.Heartbeat = Heartbeat{Agent: "unknown"}
		}
		s.LastHeard = m.time
	}
	return d, true
}
