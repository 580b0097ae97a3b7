// Package fleet is the other end: what an operator, CI or a dashboard does with a fleet. It publishes manifests, reads
// back the typed actual state, and runs the control service that answers heartbeats.
//
// It is a library for any machine and has nothing of a device. It trusts nothing that a device wrote: such bytes are
// capped, decoded strictly and never decide who wrote them. The server that it talks to holds copies only; what a fleet
// should be is in git.
package fleet

import "github.com/continuo-fleet/continuo/internal/wire"

// A Device names one device of one site.
type Device = wire.Device

// ParseDevice reads "id" (of the site main) or "site.id".
func ParseDevice(s string) (Device, error) { return wire.ParseDevice(s) }
