// Package agent keeps one device in the state of its last verified assignment: it
// orders scores, asks the authority about each change, keeps the books, collects what
// is no longer wanted, watches, and reports.
//
// It works through ports only. It knows no message system, no service manager and no
// container runtime: a Table makes scores true, a store keeps the books, a Link
// carries documents. It runs the same on a Raspberry Pi and in memory.
//
// The direction of data: Intent → plan → gate → effect → observation → status.
package agent
