// Package score is the language of desired state.
//
// A Score says what must be true of one thing on a device: a file, a service, a
// container, the host name. A Manifest is a set of scores with a target and a
// policy. All of them are plain values: they do not know how they are carried,
// checked against a schema, or made true; see packages fleet, schemas and
// interpret for that.
//
// The package imports the standard library, and a parser of cron expressions, which is
// pure as well. Its JSON is encoding/json/v2, which Go 1.26 does not offer yet under
// that name; the module imported is its mirror, and becomes an alias of it in Go 1.27.
package score
