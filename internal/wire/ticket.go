package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// maxTicket is the largest file that is read.
const maxTicket = 2 * MaxEnvelope

// A Ticket is the file that an operator brings to a device that is to be enrolled: where its fleet is, whom it has to
// trust, and by what it may ask, once and for a while. Whoever else gets hold of it can ask, too, and an operator compares
// the fingerprints.
type Ticket struct {
	Kind       string    `json:"kind"` // TicketKind
	Device     Device    `json:"device"`
	ID         string    `json:"id"`
	Until      time.Time `json:"until"`
	Servers    []string  `json:"servers"`
	CA         string    `json:"ca,omitempty"` // PEM
	Plaintext  bool      `json:"plaintext,omitempty"`
	Knock      Knock     `json:"knock"`
	Invitation []byte    `json:"invitation"`     // as signed
	Root       []byte    `json:"root,omitempty"` // trust root, as a DSSE file
	Documents  []string  `json:"documents,omitempty"`
	Control    []string  `json:"control,omitempty"`
}

// A Knock is a credential that only lets its holder ask.
type Knock struct {
	JWT  string `json:"jwt"`
	Seed string `json:"seed"`
}

// TicketKind is the kind of a [Ticket].
const TicketKind = "Invitation"

// ParseTicket reads the file.
func ParseTicket(b []byte) (Ticket, error) {
	bad := func(format string, args ...any) (Ticket, error) {
		return Ticket{}, fmt.Errorf("cannot use the invitation: "+format, args...)
	}
	if len(b) > maxTicket {
		return bad("it has %d bytes, at most %d are read", len(b), maxTicket)
	}
	var t Ticket
	if err := json.Unmarshal(b, &t); err != nil {
		return bad("it is no file of continuo device enroll: %w", err)
	}
	if t.Kind != TicketKind {
		return bad("its kind is %.40q, this program reads %q", t.Kind, TicketKind)
	}
	if err := CheckInvitation(t.ID); err != nil {
		return bad("%w", err)
	}
	if len(t.Servers) == 0 || t.Knock.JWT == "" || t.Knock.Seed == "" || len(t.Invitation) == 0 {
		return bad("a part of it is missing; get a new one: continuo device enroll %s", t.Device)
	}
	if len(t.Root) == 0 && (len(t.Documents) == 0 || len(t.Control) == 0) {
		return bad("it does not say whom to trust; get a new one: continuo device enroll %s", t.Device)
	}
	return t, nil
}
