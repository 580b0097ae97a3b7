package wire

// MaxRequests is the most bytes of the requests for approval of a device: what it may send, with room for headers.
const MaxRequests = 60 << 10

// RequestSubject is where d writes for which actions it waits for a person. The control side has it under the same name. What
// is written replaces what was there, and nobody but d may: another device clears nothing.
func RequestSubject(d Device) string { return deviceSubject(prefixRequest, d) }
