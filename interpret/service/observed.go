package service

import (
	"context"
	"maps"
	"slices"
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
	// Sub is the state in more words: running, exited, dead, auto-restart, waiting, listening.
	Sub string `json:"sub"`
	// Enabled says whether the unit is started at boot: enabled, enabled-runtime, disabled, static, indirect, masked, generated.
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
	// SHA256 of the unit file in the place where those of manifests live. Left out if it may hold a secret: if it is not the score's, and not everybody may read it.
	SHA256 string `json:"sha256,omitempty"`
	// Fingerprint stands for that file where its sha256 is left out.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Mode of that file, as octal text.
	Mode string `json:"mode,omitempty"`
	// Source is the file that the unit was loaded from.
	Source string `json:"source,omitempty"`
	// Stale: what is on disk is not what is loaded, and reading it again did not help.
	Stale bool `json:"stale,omitzero"`
	// DropIns are those that a manifest brought, by name, with their sha256; a fingerprint, after the word keyed, where that is not told.
	DropIns map[string]string `json:"dropIns,omitempty"`
	// Overrides are all drop-in files that change the unit.
	Overrides []string `json:"overrides,omitempty"`
	// Supervision lists the drop-ins that no manifest brought and what of the score they override.
	Supervision []Override `json:"supervision,omitempty"`
	// Limits that are in force.
	Limits *Limits `json:"limits,omitempty"`
	// Triggers are the units that it starts.
	Triggers []string `json:"triggers,omitempty"`
	// TriggeredBy are the timers, sockets and paths that start it.
	TriggeredBy []string `json:"triggeredBy,omitempty"`
	// Ran is the last run to its end that was asked for.
	Ran *Ran `json:"ran,omitempty"`
	// Log is the last lines of a unit that failed.
	Log string `json:"log,omitempty"`
	// Linger says whether the service manager of the user runs without a login.
	Linger *bool `json:"linger,omitempty"`

	exists     bool
	mark       topology.Mark
	file       topology.FileState
	told       map[string]string          // what is told of contents, by path
	all        map[string]topology.DropIn // in the place where those of manifests live, by name of the file without .conf
	stray      []topology.DropIn          // of manifests, for this unit, and no longer in the score
	conditions interpret.Conditions
}

// An Override is a drop-in of somebody else.
type Override struct {
	// File is its path.
	File string `json:"file"`
	// Settings that it makes, as Section.Setting.
	Settings []string `json:"settings,omitempty"`
	// Overrides are those of them that the score makes as well.
	Overrides []string `json:"overrides,omitempty"`
}

// Limits are what a unit may use at most.
type Limits struct {
	// Memory in bytes.
	Memory uint64 `json:"memory,omitzero"`
	// CPU time, in percent of one processor.
	CPU uint32 `json:"cpu,omitzero"`
	// Tasks is how many processes and threads it may have.
	Tasks uint64 `json:"tasks,omitzero"`
	// IOWeight is its share of the disk.
	IOWeight uint64 `json:"ioWeight,omitzero"`
}

// Ran is a run to its end.
type Ran struct {
	// Digest of what was run.
	Digest string `json:"digest"`
	// Ended is when, on the device's clock.
	Ended time.Time `json:"ended,omitzero"`
	// Result in one word: success, exit-code, signal, timeout.
	Result string `json:"result"`
	// ExitCode of it.
	ExitCode int `json:"exitCode"`
	// Output is the end of what it wrote.
	Output string `json:"output,omitempty"`
	// Truncated: it wrote more before that.
	Truncated bool `json:"truncated,omitzero"`
}

func observed(s score.Service, st topology.ServiceState) Observed {
	o := Observed{
		Load: st.Load, Active: st.Active, Sub: st.Sub, Enabled: st.Enabled, Type: st.Type, Since: st.Since, MainPID: st.MainPID,
		Restarts: st.Restarts, Result: st.Result, ExitCode: st.ExitCode, Invocation: st.Invocation,
		Source: st.Source, Stale: st.Stale, Triggers: st.Triggers, TriggeredBy: st.TriggeredBy,
		exists: st.Load != topology.NotFound, mark: st.Definition.Mark, file: st.Definition,
	}
	if st.Definition.Type == topology.Regular {
		o.Mode = score.Mode(st.Definition.Mode).String()
	}
	if s.Limits != nil {
		o.Limits = new(Limits(st.Limits))
	}
	if st.Ran != nil {
		o.Ran = &Ran{st.Ran.Digest, st.Ran.Ended, st.Ran.Result, st.Ran.ExitCode, st.Ran.Output, st.Ran.Truncated}
		if s.Log == score.NoLog {
			o.Ran.Output, o.Ran.Truncated = "", false
		}
	}
	o.dropIns(s, st.DropIns)
	o.judge(s, st)
	return o
}

// dropIns tells those of the score from those of others.
func (o *Observed) dropIns(s score.Service, found []topology.DropIn) {
	want, ours := s.AllDropIns(), []string(nil)
	for _, text := range s.Written() {
		ours = append(ours, topology.UnitSettings(text)...)
	}
	paths := map[string]string{}
	for name := range want {
		paths[s.DropInPath(name)] = name
	}
	o.all = map[string]topology.DropIn{}
	for _, d := range found {
		o.Overrides = append(o.Overrides, d.Path)
		name, wanted := paths[d.Path]
		switch {
		case wanted:
			o.all[name] = d
		case d.Name != "":
			o.stray = append(o.stray, d)
		}
		if wanted || d.Name != "" || d.Mark != "" { // a file score wrote that
			continue
		}
		f := Override{File: d.Path, Settings: d.Settings}
		for _, setting := range d.Settings {
			if slices.Contains(ours, setting) {
				f.Overrides = append(f.Overrides, setting)
			}
		}
		o.Supervision = append(o.Supervision, f)
	}
}

// tell fills in what may be told of the contents of files. A score of kind file may have put a secret there.
func (o *Observed) tell(ctx context.Context, t interpret.Teller, s score.Service) {
	o.told = map[string]string{}
	stated := func(text string, there bool) topology.Sum {
		if !there {
			return ""
		}
		return topology.SumOf([]byte(text))
	}
	file := t.Tell(ctx, o.file.SHA256, interpret.Public(o.file.Mode), stated(s.UnitFile, s.UnitFile != ""))
	o.SHA256, o.Fingerprint, o.told[s.UnitPath()] = file.SHA256(), file.Fingerprint(), file.String()
	want := s.AllDropIns()
	tell := func(name string, d topology.DropIn) {
		text, there := want[name]
		o.told[d.Path] = t.Tell(ctx, d.SHA256, interpret.Public(d.Mode), stated(text, there)).String()
		if o.DropIns == nil {
			o.DropIns = map[string]string{}
		}
		o.DropIns[name] = o.told[d.Path]
	}
	for name, d := range o.all {
		tell(name, d)
	}
	for _, d := range o.stray {
		tell(d.Name, d)
	}
}

// judge fills in the conditions.
func (o *Observed) judge(s score.Service, st topology.ServiceState) {
	masked := s.Masked != nil && *s.Masked
	if o.conditions.Loaded = new(st.Load == topology.Loaded); masked {
		o.conditions.Loaded = new(st.Load == topology.Masked)
		o.conditions.Written = new(o.masked())
	}
	written := s.Written()
	if len(written) > 0 {
		right := s.UnitFile == "" || o.file.SHA256 == topology.SumOf([]byte(s.UnitFile))
		for name, text := range s.AllDropIns() {
			right = right && o.all[name].SHA256 == topology.SumOf([]byte(text))
		}
		o.conditions.Written = new(right)
		o.conditions.Loaded = new(st.Load == topology.Loaded && !st.Stale)
	}
	if s.UnitFile != "" {
		// The thing is the unit file: a unit of that name that comes with the system is
		// shadowed, not touched.
		o.exists = st.Definition.Type != topology.Absent
		o.conditions.Loaded = new(*o.conditions.Loaded && st.Source == s.UnitPath())
	}
	if s.UnitFile == "" && masked {
		o.exists = st.Definition.Type != topology.Absent
	}
	if s.UnitFile == "" && len(written) > 0 {
		// The things are the drop-ins: the unit is the system's, and stays when they go.
		o.exists, o.mark = false, ""
		for _, name := range slices.Backward(names(s)) {
			if d, there := o.all[name]; there {
				o.exists, o.mark = true, d.Mark
			}
		}
	}
	switch {
	case s.State == score.Running:
		o.conditions.Effective = new(o.running())
		o.conditions.Healthy = new(o.Active != "failed" && o.Sub != "auto-restart")
	case s.State == score.Stopped:
		o.conditions.Effective = new(!o.up())
	case s.Run != "":
		done := st.Ran != nil && st.Ran.Digest == runDigest(s)
		o.conditions.Effective = new(done)
		o.conditions.Healthy = new(!done || st.Ran.Result == success)
	case len(st.TriggeredBy) > 0: // not running in between is right, having failed is not
		o.conditions.Healthy = new(o.Active != "failed")
	}
	if s.Limits != nil {
		effective := o.conditions.Effective == nil || *o.conditions.Effective
		o.conditions.Effective = new(effective && inForce(*s.Limits, st.Limits))
	}
}

// inForce reports whether what is loaded bounds the unit as it should.
func inForce(want score.Limits, have topology.UnitLimits) bool {
	return (want.Memory == 0 || have.Memory == uint64(want.Memory)) && (want.CPU == 0 || have.CPU == uint32(want.CPU)) &&
		(want.Tasks == 0 || have.Tasks == uint64(want.Tasks)) && (want.IOWeight == 0 || have.IOWeight == uint64(want.IOWeight))
}

// Exists reports whether the unit file is there; if the score brings none, whether one of its drop-ins
// or its mask is; and if it brings nothing at all, whether the service manager knows the unit.
func (o Observed) Exists() bool { return o.exists }

// OwnedBy returns the mark of what Exists is about.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: written and loaded are about the files of the score, effective is
// about its state, and healthy means that a unit that is to run has not failed.
func (o Observed) Conditions() interpret.Conditions { return o.conditions }

// outweighed lists the drop-ins of somebody else that override what the score says: what runs is not what was written. They
// are told and left alone, as whoever put them there had a reason.
func (o Observed) outweighed() (out []interpret.Change) {
	for _, f := range o.Supervision {
		if len(f.Overrides) > 0 {
			out = append(out, interpret.Change{Field: interpret.FieldSupervision, Have: f.File + " overrides " + list(f.Overrides), Want: "no such drop-in", Effect: interpret.Nothing})
		}
	}
	return out
}

// list is words for people, not too many of them.
func list(words []string) string {
	s := ""
	for i, w := range words {
		switch {
		case i == 5:
			return s + " and more"
		case i > 0:
			s += ", "
		}
		s += w
	}
	return s
}

// masked: nothing starts it, for good, whoever did that.
func (o Observed) masked() bool {
	return o.Load == topology.Masked && (o.file.Type == topology.Symlink || o.file.Type == topology.Regular)
}

// maskedByUs: the mask is the empty unit file that a manifest had written.
func (o Observed) maskedByUs() bool {
	return o.file.Type == topology.Regular && o.file.Size == 0 && o.mark != ""
}

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

// names of the drop-ins that the score wants, sorted.
func names(s score.Service) []string { return slices.Sorted(maps.Keys(s.AllDropIns())) }
