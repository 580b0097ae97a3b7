// Package access says who may connect to the servers of a fleet, in the form that NATS servers and its tools have: an
// operator, three accounts and users, each a JWT. What they may do is the one table in package wire; it reaches servers as
// the permissions of scoped signing keys, so that a credential is short and what it allows follows the program.
//
// It issues and revokes. It keeps no files, and it is no part of the device's program: a device holds a credential and
// never reads it.
package access
