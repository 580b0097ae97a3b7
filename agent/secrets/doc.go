// Package secrets reads the secrets of a device where its owner keeps them: in files of the
// form NAME=value, and in the credentials that systemd hands to a service. It reads them when
// they are needed, so that one that was rotated counts at once, and holds none of them.
//
// A name that is in several places has the value of the last one: files in their order, then
// the credentials. A place that cannot be used because others may read it, or because it is
// damaged, makes every secret unavailable that no later place has: an older value in an
// earlier file is not what its owner means.
//
// The environment of the agent is never a source: every program that it starts would have it.
package secrets
