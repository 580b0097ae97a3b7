package wire

// A Kind is what a signed statement is for. A key is trusted for kinds, and a document of one kind is never taken for
// one of another.
type Kind string

const (
	KindDevice    Kind = "device"    // what one device should be
	KindClass     Kind = "class"     // a manifest that devices follow
	KindApproval  Kind = "approval"  // a person's consent to one plan
	KindRoot      Kind = "root"      // which keys are trusted
	KindHeartbeat Kind = "heartbeat" // a control envelope: the answer to a heartbeat
)
