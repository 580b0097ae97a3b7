package wire

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"time"
)

// Media types of documents, in the statements that sign them.
const (
	MediaAssignment = "application/vnd.continuo.assignment.v1+json" // what a device has to make true
	MediaOperation  = "application/vnd.continuo.operation.v1+json"  // what a person asks of a device, once
)

// Limits of operations and of the receipts that come back for them.
const (
	// MaxOperation is the most bytes of an operation.
	MaxOperation = 32 << 10
	// MaxReceipt is the most bytes of a receipt: what a device may send, with room for headers.
	MaxReceipt = 60 << 10
	// MaxOperationLife is how long an operation may be valid after it was issued. Who keeps the ids of operations so that
	// none is done twice may forget them after that.
	MaxOperationLife = 24 * time.Hour
)

// HeaderReceipt and HeaderVerb are hints beside a receipt: its id, and what was asked for. A device wrote them; they only
// save a reader from opening what it does not look for.
const (
	HeaderReceipt = "Continuo-Receipt"
	HeaderVerb    = "Continuo-Verb"
)

// headerMessageID has the server store a message once within the stream's window, however often it is sent.
const headerMessageID = "Nats-Msg-Id"

var operationIDRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckOperationID says whether id can be the id of an operation or of a receipt. A UUID can. The rule keeps ids that
// would not survive as a header, as a file name or in a log.
func CheckOperationID(id string) error {
	if !operationIDRule.MatchString(id) {
		return fmt.Errorf("cannot use %.80q as the id of an operation: 1 to 64 of letters, digits, dot, - and _, a letter or digit first; take a UUID", id)
	}
	return nil
}

// ReceiptHeaders are what d sends beside a receipt. digest is the SHA-256 of the body: what is sent again is stored once,
// and what is sent under the same id with another content is not lost. The id must have passed [CheckOperationID].
func ReceiptHeaders(d Device, id, verb string, digest []byte) map[string][]string {
	d.mustCheck()
	if err := CheckOperationID(id); err != nil {
		panic("wire: id was not checked: " + err.Error())
	}
	return map[string][]string{
		HeaderReceipt: {id},
		HeaderVerb:    {verb},
		// The server compares these over all devices. Nobody else can make one up: it would have to know the content.
		headerMessageID: {d.String() + "/" + id + "/" + hex.EncodeToString(digest)},
	}
}

// AnnouncedReceipt is the id and the verb that ride beside a receipt; empty if they do not.
func AnnouncedReceipt(header map[string][]string) (id, verb string) {
	return first(header, HeaderReceipt), first(header, HeaderVerb)
}
