// Package shelljob interprets score.ShellJob, the escape hatch, which is in builds with the tag
// shelljob only; in a release the package is empty.
//
// What counts as done is the word of the check, kept under the digest of the whole score. The
// check is run when a run was approved, and at no other time: a look at the device starts
// nothing.
package shelljob
