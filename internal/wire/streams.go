package wire

import "time"

// A Stream is the configuration of one stream in the form of the JetStream API: marshalled as JSON it can be sent, or
// decoded into the client library's type.
type Stream struct {
	Name              string        `json:"name"`
	Subjects          []string      `json:"subjects"`
	Storage           string        `json:"storage"`
	Retention         string        `json:"retention"`
	Discard           string        `json:"discard"`
	Replicas          int           `json:"num_replicas"`
	MaxConsumers      int           `json:"max_consumers"`
	MaxMsgs           int64         `json:"max_msgs"`
	MaxBytes          int64         `json:"max_bytes"`
	MaxAge            time.Duration `json:"max_age"`
	MaxMsgsPerSubject int64         `json:"max_msgs_per_subject"`
	MaxMsgSize        int32         `json:"max_msg_size"`
	DuplicateWindow   time.Duration `json:"duplicate_window,omitempty"`
	Compression       string        `json:"compression,omitempty"`
	AllowDirect       bool          `json:"allow_direct"`
	DenyDelete        bool          `json:"deny_delete"`
	DenyPurge         bool          `json:"deny_purge"`
	AllowRollup       bool          `json:"allow_rollup_hdrs"`
	AllowMsgTTL       bool          `json:"allow_msg_ttl,omitempty"`
	MarkerTTL         time.Duration `json:"subject_delete_marker_ttl,omitempty"`
	Republish         *Republish    `json:"republish,omitempty"`
}

// Republish is what the server sends on when something is stored.
type Republish struct {
	Source      string `json:"src"`
	Destination string `json:"dest"`
}

// AliveTTL is how long a device counts as alive after a heartbeat: three of the default interval.
const AliveTTL = 3 * DefaultInterval

// Streams are the streams of the control account. replicas is 1 on one server and 3 on a cluster.
func Streams(replicas int) []Stream {
	base := Stream{Storage: "file", Retention: "limits", Discard: "old", Replicas: replicas, MaxConsumers: -1, MaxMsgs: -1, MaxBytes: -1, AllowDirect: true}

	desired := base
	desired.Name, desired.Subjects = StreamDesired, []string{prefixDesired + ">"}
	desired.Discard = "new"
	desired.MaxMsgsPerSubject = 8
	desired.MaxMsgSize = MaxMessage
	desired.Compression = "s2"
	// No roll-ups, though buckets have them: one header of whoever may write one key would wipe all others.
	desired.DenyDelete = true
	desired.Republish = &Republish{prefixDesired + ">", AllConfig}

	// A plain stream and not a bucket: a bucket must allow roll-ups, and with those one device could wipe the status of
	// all others.
	actual := base
	actual.Name, actual.Subjects = StreamActual, []string{AllActual, AllInfo, AllRequests}
	actual.MaxMsgsPerSubject = 1
	actual.MaxMsgSize = maxDevicePayload
	actual.DuplicateWindow = 100 * time.Millisecond

	journal := base
	journal.Name, journal.Subjects = StreamJournal, []string{AllJournal}
	journal.MaxMsgsPerSubject = 200
	journal.MaxMsgSize = maxDevicePayload
	journal.MaxAge = 30 * 24 * time.Hour
	journal.DuplicateWindow = 2 * time.Minute // a receipt whose answer was lost is sent again, and stored once

	// Nothing is ever taken out of it but by age, and nobody pushes out what others wrote: when it is full, what is new
	// waits with who wrote it. Once denied, deletes and purges cannot be allowed again.
	audit := base
	audit.Name, audit.Subjects = StreamAudit, []string{AllAudit}
	audit.Discard = "new"
	audit.MaxMsgsPerSubject = -1
	audit.MaxMsgSize = maxDevicePayload
	audit.MaxAge, audit.MaxBytes = 400*24*time.Hour, 256<<20
	audit.DenyDelete, audit.DenyPurge = true, true
	audit.DuplicateWindow = 2 * time.Minute
	audit.Compression = "s2"

	alive := base
	alive.Name, alive.Subjects = StreamAlive, []string{prefixKV + BucketAlive + ".>"}
	alive.Storage, alive.Discard = "memory", "new"
	alive.MaxMsgsPerSubject = 1
	alive.MaxMsgSize = maxDevicePayload
	alive.MaxAge, alive.DuplicateWindow = AliveTTL, AliveTTL
	alive.DenyDelete, alive.AllowRollup, alive.AllowMsgTTL = true, true, true
	alive.MarkerTTL = 10 * time.Minute

	control := base
	control.Name, control.Subjects = StreamControl, []string{prefixKV + BucketControl + ".>"}
	control.Discard = "new"
	control.MaxMsgsPerSubject = 1
	control.MaxMsgSize = maxDevicePayload
	control.DenyDelete, control.AllowRollup, control.AllowMsgTTL = true, true, true
	control.MarkerTTL = time.Hour

	// An object store, as NATS tools make one, except that a chunk that is written again replaces the one before, and that
	// no roll-up of one writer takes away what others wrote.
	blobs := base
	blobs.Name, blobs.Subjects = StreamBlobs, []string{prefixBlobChunk + ">", prefixBlobInfo + ">"}
	blobs.Discard = "new"
	blobs.MaxMsgsPerSubject = 1
	blobs.MaxMsgSize = 2 * BlobChunk

	return []Stream{desired, actual, journal, audit, alive, control, blobs}
}

// WrongLast reports whether an error code of the server says that something else was stored last than a write expected.
// The server gives the second of them also to a writer that is right.
func WrongLast(code int) bool { return code == 10071 || code == 10164 }
