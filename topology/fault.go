package topology

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// A Code is the machine-readable reason of a fault. Codes are a closed set and part
// of the status that devices report.
type Code string

// Codes of faults.
const (
	CodeUnavailable  Code = "unavailable"        // the capability is not there: socket gone, program too old
	CodeForeign      Code = "foreign"            // the thing is there and not ours to change
	CodeMasked       Code = "masked"             // an administrator masked the unit
	CodePermission   Code = "permission_denied"  // the kernel says no
	CodeImmutable    Code = "immutable"          // the immutable flag is set
	CodeReadOnly     Code = "read_only"          // the file system is read-only
	CodeNoSpace      Code = "no_space"           // no space, or no inode, or over quota
	CodeIO           Code = "io_error"           // the storage failed
	CodeNotRegular   Code = "not_regular"        // a directory, link, pipe, socket or device is in the place of a file
	CodeSymlink      Code = "symlink"            // a symbolic link is in the place of a file, or on the way to it
	CodeMountPoint   Code = "mount_point"        // the file is a mount point and cannot be replaced
	CodeChanged      Code = "live_changed"       // it was changed by somebody else after it was looked at
	CodeInUse        Code = "in_use"             // somebody else uses it; the text says who
	CodeNoAccount    Code = "no_account"         // the device has no such user or group
	CodeNotSupported Code = "not_supported"      // the file system cannot hold what was asked: owners on vfat
	CodeInvalid      Code = "invalid"            // the device refuses the value itself
	CodeJobFailed    Code = "job_failed"         // the service manager could not do it; the text has its result
	CodeExited       Code = "exited"             // it started, and ended within the settle time
	CodeStartLimit   Code = "start_limit"        // it was started too often
	CodeDefinition   Code = "definition"         // the service manager does not accept the definition
	CodeImage        Code = "image_unavailable"  // the image is not here and cannot be had
	CodeImageCheck   Code = "image_check"        // the image is here, and whether its registry has another could not be found out
	CodeImageStore   Code = "image_store"        // the image store is damaged
	CodeSecret       Code = "secret_unavailable" // the device has no such secret, or cannot read it
	CodeRadioBlocked Code = "radio_blocked"      // the radio is switched off, by a switch or for want of a country
	CodeConnectivity Code = "connectivity"       // after a change the fleet could not be reached, and the change was taken back
	CodeRefused      Code = "refused"            // nobody listens there
	CodeUnreachable  Code = "unreachable"        // there is no way there: no such host, no route, no network
	CodeTimeout      Code = "timeout"            // no answer in time
	CodeCanceled     Code = "canceled"           // the agent is stopping
	CodeUnknown      Code = "unknown"            // anything else; the text has the words
)

// A Fault is a failure of the world: data for a status, not a bug. Every error that
// a capability returns is, or wraps, a Fault; FaultOf makes one of anything else.
type Fault struct {
	Code Code
	Text string // for people: what could not be done, and what to do about it
}

func (f *Fault) Error() string { return f.Text }

// Faultf returns a fault.
func Faultf(code Code, format string, args ...any) *Fault {
	return &Fault{code, fmt.Sprintf(format, args...)}
}

// FaultOf returns err as a fault. What is not one yet gets its code from the errno or
// the context error inside it. No error is a fault without a code.
func FaultOf(err error) *Fault {
	if err == nil {
		return &Fault{}
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		if f.Text == err.Error() {
			return f
		}
		return &Fault{f.Code, err.Error()}
	}
	for _, c := range []struct {
		err  error
		code Code
	}{
		{context.DeadlineExceeded, CodeTimeout}, {context.Canceled, CodeCanceled},
		{syscall.ENOSPC, CodeNoSpace}, {syscall.EDQUOT, CodeNoSpace}, {syscall.EROFS, CodeReadOnly},
		{syscall.EIO, CodeIO}, {syscall.EBUSY, CodeMountPoint}, {syscall.ELOOP, CodeSymlink},
		{syscall.ENOTDIR, CodeNotRegular}, {syscall.EISDIR, CodeNotRegular}, {syscall.ENAMETOOLONG, CodeInvalid},
		{syscall.EOPNOTSUPP, CodeNotSupported}, {fs.ErrPermission, CodePermission},
	} {
		if errors.Is(err, c.err) {
			return &Fault{c.code, err.Error()}
		}
	}
	return &Fault{CodeUnknown, err.Error()}
}
