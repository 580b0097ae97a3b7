package service

import (
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Observed is the actual state of one unit, in the words of the service manager.
type Observed struct {
	// Load says whether the service manager knows the unit: loaded, not-found, masked, bad-setting, error.
	Load string `json:"load"`
	// Active is active, inactive, failed, activating, deactivating or reloading.
	Active string `json:"active"`
	// Sub is the state in more words: running, exited, dead, auto-restart.
	Sub string `json:"sub"`
	// Enabled says whether the unit is started at boot: enabled, enabled-runtime, disabled, static, masked, generated.
	Enabled string `json:"enabled,omitempty"`
	// Type of a service: simple, notify, oneshot.
	Type string `json:"type,omitempty"`
	// Since is when the unit became active, inactive or failed, on the device's clock.
	Since time.Time `json:"since,omitzero"`
	// MainPID is the main process; a unit can be active and have none.
	MainPID int `json:"mainPid,omitzero"`
	// Restarts counts the starts that the service manager made by itself.
	Restarts uint32 `json:"restarts"`
	// Result of the last run: success, exit-code, signal, timeout, start-limit-hit.
	Result string `json:"result,omitempty"`
	// ExitCode of the last main process.
	ExitCode int `json:"exitCode"`
	// Invocation changes with every start.
	Invocation string `json:"invocation,omitempty"`
	// SHA256 of the unit file in the place where those of manifests live.
	SHA256 string `json:"sha256,omitempty"`
	// Mode of that file, as octal text.
	Mode string `json:"mode,omitempty"`
	// Source is the file that the unit was loaded from.
	Source string `json:"source,omitempty"`
	// Overrides are drop-in files that change the unit.
	Overrides []string `json:"overrides,omitempty"`

	exists     bool
	mark       topology.Mark
	conditions interpret.Conditions
}

func observed(s score.Service, st topology.ServiceState) Observed {
	o := Observed{
		Load: st.Load, Active: st.Active, Sub: st.Sub, Enabled: st.Enabled, Type: st.Type, Since: st.Since, MainPID: st.MainPID,
		Restarts: st.Restarts, Result: st.Result, ExitCode: st.ExitCode, Invocation: st.Invocation,
		Source: st.Source, Overrides: st.Overrides,
		exists: st.Load != topology.NotFound, mark: st.Definition.Mark,
	}
	if st.Definition.Type == topology.Regular {
		o.SHA256, o.Mode = st.Definition.SHA256, score.Mode(st.Definition.Mode).String()
	}
	o.conditions.Loaded = new(st.Load == topology.Loaded)
	if s.UnitFile != "" {
		// The thing is the unit file: a unit of that name that comes with the system is
		// shadowed, not touched.
		o.exists = st.Definition.Type != topology.Absent
		o.conditions.Written = new(o.SHA256 == digest(s.UnitFile))
		o.conditions.Loaded = new(st.Load == topology.Loaded && st.Source == score.UnitDir+s.Unit)
	}
	switch s.State {
	case score.Running:
		o.conditions.Effective = new(o.running())
		o.conditions.Healthy = new(o.Active != "failed" && o.Sub != "auto-restart")
	case score.Stopped:
		o.conditions.Effective = new(!o.up())
	}
	return o
}

// Exists reports whether the unit file is there or, if the score brings none, whether
// the service manager knows the unit.
func (o Observed) Exists() bool { return o.exists }

// OwnedBy returns the mark of the unit file.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: written and loaded are about the unit file of the score, effective is
// about its state, and healthy means that a unit that is to run has not failed.
func (o Observed) Conditions() interpret.Conditions { return o.conditions }

// running: a unit that is waiting for its next automatic start is not running, one that
// is starting is not running yet.
func (o Observed) running() bool { return o.Active == "active" || o.Active == "reloading" }

// up: there is something to stop, even if it is only about to start.
func (o Observed) up() bool { return o.Active != "inactive" && o.Active != "failed" }

// state is Active, with Sub where that alone tells a loop from a start.
func (o Observed) state() string {
	if o.Active == o.Sub || o.Sub == "" || o.Sub == "dead" {
		return o.Active
	}
	return o.Active + " (" + o.Sub + ")"
}
