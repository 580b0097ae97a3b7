// Package inbox holds tests that the device suite runs inside the box, to prove that it can: see
// box.RunTestBinary. It has no code of its own.
package inbox
