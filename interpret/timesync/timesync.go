// Package timesync interprets score.TimeSync.
//
// What is compared is what is on disk and, while it runs, what the daemon that sets the
// clock has read: a choice of servers that others override has not converged.
package timesync

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasTime }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	c := t.Time()
	return interpret.Of[score.TimeSync, Observed, topology.TimeReader, topology.TimeWriter](interpreter{}, c, c)
}

// Observed is the actual clock.
type Observed struct {
	// Timezone is its time zone.
	Timezone string `json:"timezone"`
	// Enabled is true if it follows time servers from boot to boot.
	Enabled bool `json:"enabled"`
	// Active is true if it does so now.
	Active bool `json:"active"`
	// Written is true if the choice of servers is on disk.
	Written bool `json:"written"`
	// Altered is true if somebody edited it there.
	Altered bool `json:"altered,omitempty"`
	// Servers are those that are asked, also if others chose them.
	Servers []string `json:"servers,omitempty"`
	// Fallback are those that are asked if there are no others.
	Fallback []string `json:"fallback,omitempty"`
	// Server is the one that is asked now.
	Server string `json:"server,omitempty"`
	// Synchronized is true if the kernel says that the clock is right.
	Synchronized bool `json:"synchronized"`
	// Offset is how far the clock was off when a server answered last, in tenths of a second.
	Offset *score.Duration `json:"offset,omitempty"`

	choice topology.TimeServers
}

// Exists reports whether the choice of servers is there: a clock always is.
func (o Observed) Exists() bool { return o.Written }

// OwnedBy is the mark on the file that the choice of servers is in.
func (o Observed) OwnedBy() topology.Mark { return o.choice.Mark }

// Conditions: a choice is written, and loaded when the daemon that sets the clock has read it.
func (o Observed) Conditions() interpret.Conditions {
	if !o.Written {
		return interpret.Conditions{}
	}
	c := interpret.Conditions{Written: new(!o.Altered)}
	if o.Active {
		c.Loaded = new(o.read())
	}
	return c
}

// read reports whether what is in force is the choice.
func (o Observed) read() bool {
	return (len(o.choice.Servers) == 0 || slices.Equal(o.Servers, o.choice.Servers)) &&
		(len(o.choice.Fallback) == 0 || slices.Equal(o.Fallback, o.choice.Fallback))
}

// Fields of changes.
const (
	fieldTimezone = "timezone"
	fieldServers  = "servers"
	fieldFallback = "fallback"
	fieldEnabled  = "enabled"
	fieldFile     = "file"
)

type interpreter struct{}

func (interpreter) FieldOf(c topology.Code) string {
	if c == topology.CodeInvalid {
		return fieldTimezone
	}
	return fieldServers
}

func (interpreter) Observe(ctx context.Context, r topology.TimeReader, s score.TimeSync) (Observed, error) {
	st, err := r.Time(ctx)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{
		Timezone: st.Timezone, Enabled: st.Enabled, Active: st.Active, Written: st.Written, Altered: st.Altered,
		Servers: st.Servers, Fallback: st.Fallback, Server: st.Server, Synchronized: st.Synchronized, choice: st.Choice,
	}
	if st.Measured {
		o.Offset = new(score.Duration(st.Offset.Round(100 * time.Millisecond)))
	}
	if st.Lacks != "" && (servers(s) || s.Enabled != nil) {
		return o, topology.Faultf(topology.CodeUnavailable, "%s", st.Lacks)
	}
	return o, nil
}

// servers reports whether s chooses servers.
func servers(s score.TimeSync) bool { return len(s.Servers)+len(s.Fallback) > 0 }

func (interpreter) Diff(s score.TimeSync, o Observed) []interpret.Change {
	var out []interpret.Change
	differ := func(field, have, want string, replaces bool) {
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Mutate, Replaces: replaces})
	}
	if s.Timezone != "" && o.Timezone != s.Timezone {
		differ(fieldTimezone, o.Timezone, s.Timezone, false)
	}
	if servers(s) {
		list := func(field string, chosen, inForce, want []string) {
			switch {
			case !slices.Equal(chosen, want):
				differ(field, strings.Join(chosen, " "), strings.Join(want, " "), o.Written)
			case len(want) > 0 && o.Active && !slices.Equal(inForce, want):
				differ(field, strings.Join(inForce, " "), strings.Join(want, " "), false)
			}
		}
		list(fieldServers, o.choice.Servers, o.Servers, s.Servers)
		list(fieldFallback, o.choice.Fallback, o.Fallback, s.Fallback)
		if o.Altered {
			differ(fieldFile, "edited", "as it was written", true)
		}
	}
	if s.Enabled != nil && (o.Enabled != *s.Enabled || o.Active != *s.Enabled) {
		differ(fieldEnabled, words(o.Enabled, o.Active), words(*s.Enabled, *s.Enabled), false)
	}
	return out
}

func words(enabled, active bool) string {
	switch {
	case enabled && active:
		return "true"
	case enabled:
		return "enabled, not running"
	case active:
		return "running, not enabled"
	}
	return "false"
}

func (interpreter) Apply(ctx context.Context, w topology.TimeWriter, s score.TimeSync, t interpret.Task) error {
	if t.Has(fieldTimezone) {
		if err := w.SetTimezone(ctx, s.Timezone); err != nil {
			return err
		}
	}
	if t.Has(fieldServers) || t.Has(fieldFallback) || t.Has(fieldFile) {
		if err := w.SetTimeServers(ctx, topology.TimeServers{Servers: s.Servers, Fallback: s.Fallback, Mark: t.Mark}); err != nil {
			return err
		}
	}
	if t.Has(fieldEnabled) {
		return w.SetTimeSync(ctx, *s.Enabled)
	}
	return nil
}

// RemovalEffect is none for a score that chooses no servers: see Remove.
func (interpreter) RemovalEffect(last score.TimeSync) interpret.Effect {
	if servers(last) {
		return interpret.Remove
	}
	return interpret.Nothing
}

// Remove takes back the choice of servers. The time zone, and whether the clock follows
// servers, stay as they are: which they were before is for nobody to restore.
func (interpreter) Remove(ctx context.Context, w topology.TimeWriter, last score.TimeSync) error {
	if !servers(last) {
		return nil
	}
	return w.RemoveTimeServers(ctx)
}
