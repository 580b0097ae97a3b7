package score

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// A Device shows a device node of the machine in a container. It is written as podman does:
// "/dev/gpiochip0", "/dev/video2:/dev/video0", "/dev/ttyUSB0:/dev/ttyUSB0:r". Spellings of
// the same thing are the same value.
type Device struct {
	Host      string // path on the machine
	Container string // path in the container
	Rights    string // some of r, w and m, in this order; empty: all of them
}

// DevicePattern is the shape of a device's text.
const DevicePattern = `^/dev/[A-Za-z0-9_./@-]+(:/dev/[A-Za-z0-9_./@-]+)?(:r?w?m?)?$`

var deviceRE = regexp.MustCompile(DevicePattern)

func (d Device) String() string {
	s := d.Host
	if d.Container != d.Host {
		s += ":" + d.Container
	}
	if d.Rights != "" {
		s += ":" + d.Rights
	}
	return s
}

// MarshalText writes the canonical text.
func (d Device) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads any spelling.
func (d *Device) UnmarshalText(b []byte) error {
	if !deviceRE.Match(b) || strings.HasSuffix(string(b), ":") {
		return fmt.Errorf("cannot read device %q: want a node below /dev, such as \"/dev/gpiochip0\" or \"/dev/video2:/dev/video0:rw\"", b)
	}
	parts := strings.Split(string(b), ":")
	out := Device{Host: parts[0], Container: parts[0]}
	for _, p := range parts[1:] {
		if strings.HasPrefix(p, "/") {
			out.Container = p
		} else {
			out.Rights = p
		}
	}
	if out.Rights == "rwm" {
		out.Rights = ""
	}
	*d = out
	return nil
}

func (d Device) check(r *Report) {
	for _, p := range []string{d.Host, d.Container} {
		if !strings.HasPrefix(p, "/dev/") || p != path.Clean(p) || !deviceRE.MatchString(p) {
			r.Errorf("device %q must be a clean path below /dev, such as /dev/gpiochip0", p)
		}
	}
	if strings.Trim(d.Rights, "rwm") != "" {
		r.Errorf("rights %q of a device are some of r, w and m", d.Rights)
	}
}
