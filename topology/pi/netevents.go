package pi

import (
	"slices"

	"github.com/godbus/dbus/v5"
)

// networkMatches ask for what may mean that a connection is not as it was: the state of an
// interface, a profile that somebody edited, a manager that came or went. What a radio hears of
// its neighbours is not among it.
var networkMatches = []string{
	"type='signal',sender='" + nmName + "',interface='" + nmName + ".Device',member='StateChanged'",
	"type='signal',sender='" + nmName + "',interface='" + nmProfileName + "',member='Updated'",
	"type='signal',sender='" + nmName + "',interface='" + nmProfileName + "',member='Removed'",
	"type='signal',sender='" + networkdName + "',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',path_namespace='" + string(networkdPath) + "/link'",
	"type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" + nmName + "'",
	"type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" + networkdName + "'",
}

// ofNetwork reports whether a signal is one of those.
func ofNetwork(s *dbus.Signal) bool {
	switch s.Name {
	case nmName + ".Device.StateChanged", nmProfileName + ".Updated", nmProfileName + ".Removed":
		return true
	case propertiesChanged:
		return len(s.Body) > 0 && slices.Contains([]any{networkdName + ".Link"}, s.Body[0])
	case "org.freedesktop.DBus.NameOwnerChanged":
		return len(s.Body) > 0 && slices.Contains([]any{nmName, networkdName}, s.Body[0])
	}
	return false
}
