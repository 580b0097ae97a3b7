package wire

import "fmt"

// What somebody who was invited has: a subject to present one request under one invitation, for one device, and an inbox
// for the answer. He sees no document and no other device.

const (
	prefixEnroll      = "enroll."  // request: be let in
	prefixEnrollInbox = "_ENROLL." // an inbox that no name of a site can be a part of
)

// AllEnrollments is where the control side hears of everybody who wants to be let in.
const AllEnrollments = prefixEnroll + "*.*.*"

// CheckInvitation says whether id can name an invitation: one token of a subject, as names are.
func CheckInvitation(id string) error { return CheckName("an invitation", id) }

// EnrollSubject is where whoever holds an invitation asks to become d.
func EnrollSubject(d Device, invitation string) string {
	return enrollSubject(prefixEnroll, d, invitation)
}

// EnrollInboxPrefix is what he must set as his inbox prefix.
func EnrollInboxPrefix(d Device, invitation string) string {
	return enrollSubject(prefixEnrollInbox, d, invitation)
}

// EnrollPermissions are those of who holds an invitation.
func EnrollPermissions(d Device, invitation string) Permissions {
	return Permissions{
		Publish:   []string{EnrollSubject(d, invitation)},
		Subscribe: []string{EnrollInboxPrefix(d, invitation) + ".>"},
		MaxSubs:   2, MaxPayload: maxDevicePayload,
	}
}

func enrollSubject(prefix string, d Device, invitation string) string {
	if err := CheckInvitation(invitation); err != nil {
		panic(fmt.Sprintf("wire: invitation was not checked: %v", err))
	}
	return deviceSubject(prefix, d) + "." + invitation
}
