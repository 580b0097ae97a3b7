package wire

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// DefaultSite is the site of a fleet that has only one.
const DefaultSite = "main"

// reserved words would read as something else in a command, a report or a subject.
var reserved = []string{"all", "any", "control", "fleet", "hub", "none", "root", "self"}

var nameRule = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// CheckName says whether name can be a device id, a site or a class. A name is one token of a subject, so that nothing
// in it can widen a subject or a permission.
func CheckName(what, name string) error {
	if !nameRule.MatchString(name) {
		return fmt.Errorf("cannot use %q as %s: 1 to 63 of a-z, 0-9 and -, and - neither first nor last", name, what)
	}
	if slices.Contains(reserved, name) {
		return fmt.Errorf("cannot use %q as %s: the word is reserved (reserved are %s)", name, what, strings.Join(reserved, ", "))
	}
	return nil
}

// CheckClass says whether name can be the name of a class.
func CheckClass(name string) error { return CheckName("a class", name) }

// A Device names one device of one site. Ids are unique within a site. The zero value names no device.
type Device struct{ Site, ID string }

// MarshalText gives "site.id", which is how a device appears in documents for programs.
func (d Device) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText or a person writes.
func (d *Device) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDevice(string(text))
	return err
}

// ParseDevice reads "id" (of [DefaultSite]) or "site.id".
func ParseDevice(s string) (Device, error) {
	d := Device{DefaultSite, s}
	if site, id, ok := strings.Cut(s, "."); ok {
		d = Device{site, id}
	}
	return d, d.Check()
}

// Check says which of the two names cannot be one.
func (d Device) Check() error {
	if err := CheckName("a site", d.Site); err != nil {
		return err
	}
	return CheckName("a device id", d.ID)
}

// String gives "site.id", which is also how the device appears in keys, subjects and audiences.
func (d Device) String() string { return d.Site + "." + d.ID }

// mustCheck keeps a device that nobody checked out of a subject: a wildcard there would reach other devices.
func (d Device) mustCheck() {
	if err := d.Check(); err != nil {
		panic("wire: device was not checked: " + err.Error())
	}
}
