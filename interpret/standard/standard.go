// Package standard is the list of built-in kinds, and the tests that every kind must
// pass. It holds nothing else.
package standard

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/connection"
	"github.com/continuo-fleet/continuo/interpret/container"
	"github.com/continuo-fleet/continuo/interpret/containernetwork"
	"github.com/continuo-fleet/continuo/interpret/directory"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/interpret/firewall"
	"github.com/continuo-fleet/continuo/interpret/hostname"
	"github.com/continuo-fleet/continuo/interpret/hosts"
	"github.com/continuo-fleet/continuo/interpret/job"
	"github.com/continuo-fleet/continuo/interpret/service"
	"github.com/continuo-fleet/continuo/interpret/symlink"
	"github.com/continuo-fleet/continuo/interpret/timesync"
	"github.com/continuo-fleet/continuo/interpret/tool"
	"github.com/continuo-fleet/continuo/interpret/volume"
)

// Needs is what a topology must offer for every built-in kind.
type Needs interface {
	file.Needs
	directory.Needs
	symlink.Needs
	hosts.Needs
	service.Needs
	container.Needs
	volume.Needs
	containernetwork.Needs
	hostname.Needs
	firewall.Needs
	timesync.Needs
	connection.Needs
	tool.Needs
	job.Needs
}

// Bind ties every built-in kind to t. A topology that lacks something takes
// interpret.Bind, and names the kinds that it can have.
func Bind[T Needs](t T) *interpret.Table {
	return interpret.Bind(t, with(hatch[T](),
		file.Kind, directory.Kind, symlink.Kind, hosts.Kind,
		service.Kind,
		container.Kind, volume.Kind, containernetwork.Kind,
		hostname.Kind, firewall.Kind, timesync.Kind, connection.Ethernet[T], connection.Wifi[T],
		tool.Kind,
		job.Kind,
	)...)
}

// with lets the compiler find out T.
func with[T any](more []func(T) interpret.Binding, kinds ...func(T) interpret.Binding) []func(T) interpret.Binding {
	return append(kinds, more...)
}
