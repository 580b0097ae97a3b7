package score

import "strings"

// A Resource is the canonical name of one thing on a device that can have one
// owner only: "file:/etc/motd", "unit:web.service", "container:web",
// "port:tcp/8080@*", "hostname". It is built by the kinds, never parsed from a
// document.
type Resource string

// fileResource is the resource of the file at a clean absolute path.
func fileResource(path string) Resource { return Resource("file:" + path) }

// Overlaps reports whether a and b cannot both have an owner of their own. A port
// on all addresses overlaps the same port on any address.
func (a Resource) Overlaps(b Resource) bool {
	if a == b {
		return true
	}
	pa, hostA, okA := strings.Cut(string(a), "@")
	pb, hostB, okB := strings.Cut(string(b), "@")
	return okA && okB && a.IsPort() && pa == pb && (hostA == "*" || hostB == "*")
}

// IsPort reports whether a is a port of the device.
func (a Resource) IsPort() bool { return strings.HasPrefix(string(a), "port:") }
