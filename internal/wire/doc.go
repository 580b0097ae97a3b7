// Package wire is the one place that knows how documents travel between the control side and a device: names, NATS
// subjects and streams, permissions and the server configuration made of them, the signed envelope, and the fixed
// msgpack structs of the protocol.
//
// It is not a client: it opens no connection and reads no file. It does not know what a document says either; a
// payload is bytes of a media type, checked by digest and handed on.
//
// # Rules for every decoder here
//
// Bytes from outside are capped in size first, then their signature is checked as they came, and only then are they
// decoded. Every msgpack decode goes through one guard. A refusal is a [*Refusal] with a machine code; no input panics.
//
// # Versions
//
// The envelope's major version is in its magic ("CTO1") and in the signed type. Another major is refused with
// [CodeUnsupportedVersion]. Within a major, fields are only ever added: an unknown field is ignored, a missing one
// has its zero value, which every struct documents as the default.
package wire
