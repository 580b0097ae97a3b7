// Package agent keeps one device in the state of its last verified assignment: it
// orders scores, asks the authority about each change, keeps the books, collects what
// is no longer wanted, goes back from versions that fail, does what a person asks for
// once, watches, and reports.
//
// It works through ports only. It knows no message system, no service manager and no
// container runtime: a Table makes scores true, a store keeps the books, a Link
// carries documents. It runs the same on a Raspberry Pi and in memory.
//
// The direction of data: Intent → plan → gate → effect → observation → status. An Agent
// lives on (loop.go), a Runner plays an intent once; both do it with a pass (pass.go), which
// plays one score after the other (play.go), each behind a gate (gate.go, and removal.go for
// what is no longer named).
package agent
