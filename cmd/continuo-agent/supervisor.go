package main

import (
	"runtime/debug"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
)

// systemd is the supervisor of a service of Type=notify. Without a notify socket it says
// nothing to nobody.
type systemd struct{ log *logrus.Entry }

func (s systemd) Ready() {
	s.tell(daemon.SdNotifyReady)
	s.log.Info("ready")
	// The first pass has read and hashed everything; a device that then rests for days
	// gets the memory back.
	debug.FreeOSMemory()
}

func (s systemd) Alive() { s.tell(daemon.SdNotifyWatchdog) }

func (s systemd) Stopping() {
	s.tell(daemon.SdNotifyStopping)
	s.log.Info("stopping")
}

func (s systemd) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		s.log.WithError(err).Warn("cannot tell the service manager: " + state)
	}
}

// beat is how often the watchdog wants to hear of the agent: three times as often as it
// must. 0 means that there is no watchdog.
func beat(log *logrus.Entry) time.Duration {
	d, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.WithError(err).Warn("cannot understand the watchdog's interval; the watchdog is not fed")
	}
	return d / 3
}
