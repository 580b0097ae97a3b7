package container

import (
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Observed is the actual state of one container and of the unit that keeps it.
type Observed struct {
	// State of the container: absent, created, running, paused, stopping, exited.
	State string `json:"state"`
	// Since is when it got into that state, on the device's clock.
	Since time.Time `json:"since,omitzero"`
	// Restarts counts the starts that the service manager made by itself.
	Restarts uint32 `json:"restarts"`
	// ID of the container; it changes when the container is made anew.
	ID string `json:"id,omitempty"`
	// Image as it was asked for.
	Image string `json:"image,omitempty"`
	// Digest of the image that runs: sha256 and its hex digits.
	Digest string `json:"digest,omitempty"`
	// HereDigest is the digest of the image that Image stands for on this device now: what runs after a restart.
	HereDigest string `json:"hereDigest,omitempty"`
	// NewestDigest is the digest of the image that the registry had for Image when it was asked last.
	NewestDigest string `json:"newestDigest,omitempty"`
	// ExitCode of the last run.
	ExitCode int `json:"exitCode"`
	// Health as the container says itself: healthy, unhealthy, starting. A container without a health check says nothing.
	Health string `json:"health,omitempty"`
	// Defined is true if the definition of the container is on disk, so that it starts again at boot.
	Defined bool `json:"defined"`
	// Departs names what the container was created with and its definition does not say, as far as the runtime tells: env, command.
	Departs []string `json:"departs,omitempty"`
	// SpecDigest is the digest of what the container was made from.
	SpecDigest string `json:"specDigest,omitempty"`
	// Load says whether the service manager knows the unit of the container.
	Load string `json:"load,omitempty"`
	// Active is the state of that unit: active, inactive, failed, activating, deactivating.
	Active string `json:"active,omitempty"`
	// Sub is its state in more words: running, dead, auto-restart.
	Sub string `json:"sub,omitempty"`
	// Result of the last run: success, exit-code, start-limit-hit.
	Result string `json:"result,omitempty"`

	made       *topology.ContainerConfig // nil: nobody knows
	exists     bool
	mark       topology.Mark
	definition topology.Sum // as topology.FileState.Is
	secrets    secrets      // of the wish
	stopped    bool         // is the wish
	checked    bool         // it must have a health check
}

func observed(s score.Container, st topology.ContainerState) Observed {
	o := Observed{
		State: st.State, Since: st.Since, Restarts: st.Restarts, ID: st.ID, Image: st.Image, Digest: st.Digest, HereDigest: st.Here, NewestDigest: st.Newest,
		ExitCode: st.ExitCode, Health: st.Health, SpecDigest: st.SpecDigest, Departs: st.Departs,
		Defined: st.Definition.Type == topology.Regular,
		Load:    st.Unit.Load, Active: st.Unit.Active, Sub: st.Unit.Sub, Result: st.Unit.Result,
		made:   st.Made,
		exists: st.State != "absent" || st.Definition.Type != topology.Absent, mark: st.Mark,
		definition: st.Definition.Is(), stopped: s.State == score.Stopped, checked: s.HealthCheck != nil,
	}
	if o.mark == "" { // a container that is gone, or not made yet, has its mark on the definition
		o.mark = st.Definition.Mark
	}
	return o
}

// Exists reports whether the container or its definition is there.
func (o Observed) Exists() bool { return o.exists }

// OwnedBy returns the mark of the container.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: a definition is written, the service manager has read it, the container
// runs, or does not, as is wanted, and it says that it is well. One that is still starting
// is not well yet; one without a health check says nothing, unless it should have one.
func (o Observed) Conditions() interpret.Conditions {
	c := interpret.Conditions{
		Written:   &o.Defined,
		Loaded:    new(o.Load == topology.Loaded),
		Effective: new(o.running()),
	}
	switch {
	case o.stopped:
		c.Effective = new(o.idle())
	case o.Health != "" || o.checked:
		c.Healthy = new(o.Health == "healthy")
	}
	return c
}

// running: one that is found between two automatic starts is not running, even if it
// happens to be up.
func (o Observed) running() bool { return o.State == "running" && o.Active == "active" }

// idle: it does not run, and nobody is about to start it.
func (o Observed) idle() bool {
	return !o.up() && (o.Active == "inactive" || o.Active == "failed" || o.Active == "")
}

func (o Observed) up() bool {
	return o.State != "absent" && o.State != "created" && o.State != "exited"
}

func (o Observed) state() string {
	if o.Sub == "auto-restart" || o.State == "running" && !o.running() {
		return o.State + " (" + o.Active + ", " + o.Sub + ")"
	}
	return o.State
}

// who names a container, for people.
func (o Observed) who() string {
	if o.ID == "" {
		return " (there is a definition of it)"
	}
	return " (" + o.ID[:min(12, len(o.ID))] + ")"
}
