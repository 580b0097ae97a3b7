package wire

import "fmt"

// A Code says why something from outside was refused. Codes are part of the protocol: they appear in statuses.
type Code string

const (
	CodeTooLarge           Code = "too_large"
	CodeMalformed          Code = "malformed"
	CodeUnsupportedVersion Code = "unsupported_version"
	CodeUntrusted          Code = "untrusted"          // not signed by a key that may
	CodeTooFewSignatures   Code = "too_few_signatures" // signed by keys that may, and not by enough of them
	CodeKeyRevoked         Code = "key_revoked"
	CodeKeyNotValid        Code = "key_not_valid" // outside of the time in which the key may sign
	CodeOutOfScope         Code = "out_of_scope"  // the key may not sign this for that
	CodeOldEpoch           Code = "old_epoch"     // signed under a trust root with which generations had not begun anew
	CodeUnknownEpoch       Code = "unknown_epoch" // signed under a newer trust root: fetch the roots first
	CodeWrongPurpose       Code = "wrong_purpose"
	CodeWrongAudience      Code = "wrong_audience"
	CodeNotYetValid        Code = "not_yet_valid"
	CodeExpired            Code = "expired"
	CodeSizeMismatch       Code = "size_mismatch"
	CodeDigestMismatch     Code = "digest_mismatch"
	CodeRegressed          Code = "generation_regressed"
	CodeEquivocation       Code = "equivocation" // one generation, two contents
)

// A Refusal is the one error type for bytes from outside. Decisions use the code, people read the detail; the detail
// never holds the bytes themselves.
type Refusal struct {
	Code   Code
	Detail string
}

func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Detail }

func refuse(c Code, format string, args ...any) *Refusal {
	return &Refusal{c, fmt.Sprintf(format, args...)}
}
