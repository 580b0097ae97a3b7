package score

import (
	"maps"
	"slices"
)

func init() {
	Register(Definition[Service]{
		Doc:   "A unit of the service manager in a given state, with its unit file and drop-ins if the manifest brings them.",
		Needs: []Capability{CapServices},
		Sample: Service{
			Unit: "kiosk.service", Enabled: new(true), State: Running,
			UnitFile: "[Unit]\nDescription=Kiosk\n\n[Service]\nExecStart=/usr/bin/kiosk\nExecReload=/bin/kill -HUP $MAINPID\n\n[Install]\nWantedBy=multi-user.target\n",
			DropIns:  map[string]string{"10-display": "[Service]\nEnvironment=DISPLAY=:0\n"},
		},
	})
}

// KindService is the kind of Service.
const KindService Kind = "service"

// A RunState says whether a service runs.
type RunState string

// Run states.
const (
	Running RunState = "running"
	Stopped RunState = "stopped"
)

// RunOnce is the word of Service.Run.
const RunOnce = "once"

// Words of Service.Log.
const (
	LogExcerpt = "excerpt"
	NoLog      = "none"
)

// Service is a unit of the service manager: a service, a timer, a socket, a path, a mount or
// a target. What is left out is not managed; something has to be said. A service that a
// timer, a socket or a path starts is written without state: it is started by that, and not
// running in between is right.
type Service struct {
	// Unit is the full name of the unit, such as kiosk.service.
	Unit string `json:"unit" effect:"remove" jsonschema:"maxLength=255,example=kiosk.service"`
	// User is the account whose service manager has the unit. If it is left out, the unit is the system's. Its files are
	// written for all users, and started for this one. It runs when he is not logged in if he lingers: see Linger.
	User string `json:"user,omitempty" effect:"remove" jsonschema:"maxLength=32,pattern=^[a-z_][a-z0-9_-]*$,example=pi"`
	// Linger says whether the service manager of User runs from boot on, and not only while he is logged in. If it is left
	// out, that is not managed. It stays when the score goes.
	Linger *bool `json:"linger,omitempty" effect:"mutate" jsonschema:"example=true"`
	// UnitFile is the whole text of the unit file. If it is left out, the unit comes with the system.
	UnitFile string `json:"unitFile,omitempty" effect:"disrupt"`
	// DropIns are parts that are added to the unit file, whoever brought that, by name: NAME becomes UNIT.d/NAME.conf. One
	// that is taken out of the score is removed.
	DropIns map[string]string `json:"dropIns,omitempty" effect:"disrupt"`
	// Limits bound what the unit may use. They are written as the drop-in 50-continuo-limits and hold at once.
	Limits *Limits `json:"limits,omitempty" effect:"mutate"`
	// Enabled says whether the unit is started at boot, or by what it is installed for: for every boot to come, so that a
	// unit that is enabled until the next boot is neither true nor false.
	Enabled *bool `json:"enabled,omitempty" effect:"mutate"`
	// Masked: true makes every start of the unit impossible. False lifts a mask, also one that an administrator made. If it
	// is left out, a mask of an administrator stays, and is a conflict with a unit that is to run.
	Masked *bool `json:"masked,omitempty" effect:"mutate" jsonschema:"example=true"`
	// State says whether the unit runs now. A timer, a socket or a path runs while it waits.
	State RunState `json:"state,omitempty" effect:"disrupt" jsonschema:"enum=running,enum=stopped"`
	// Run says that a oneshot is run to its end, once: when it never ran, and again when its unit file or a drop-in has
	// changed. Its exit code and the end of its output are in the status. One that failed is run again when the score, or a
	// score of restartOn, is new. It may run twice if the power goes, or the agent, before its end was seen. It is for a unit
	// that stays installed, because a timer, a person or another unit starts it as well; what is only to be done once is a job.
	Run string `json:"run,omitempty" effect:"mutate" jsonschema:"enum=once,example=once"`
	// RestartOn lists scores whose change restarts the unit, once per pass, if it is to run.
	RestartOn []ID `json:"restartOn,omitempty" effect:"disrupt"`
	// ReloadOn lists scores whose change makes the unit read its configuration again, once per pass, if it is to run. The
	// unit must know how: ExecReload= or Type=notify-reload. When it is restarted anyway it is not reloaded as well.
	ReloadOn []ID `json:"reloadOn,omitempty" effect:"mutate"`
	// Log says whether the last lines that a unit wrote before it failed are in the status, which is excerpt, the default, or
	// none. What a program writes may be anything: use none where it may be a secret.
	Log string `json:"log,omitempty" effect:"none" jsonschema:"enum=excerpt,enum=none,example=none"`
}

// Kind is KindService.
func (Service) Kind() Kind { return KindService }

// Where the unit files of manifests live: those of the system, and those of users.
const (
	UnitDir     = "/etc/systemd/system/"
	UserUnitDir = "/etc/systemd/user/"
)

// Ref names the unit on the device: kiosk.service, or pi/kiosk.service for the unit of a user.
func (s Service) Ref() string {
	if s.User != "" {
		return s.User + "/" + s.Unit
	}
	return s.Unit
}

// UnitPath is where the unit file is, if the score brings one.
func (s Service) UnitPath() string {
	if s.User != "" {
		return UserUnitDir + s.Unit
	}
	return UnitDir + s.Unit
}

// DropInPath is where a drop-in is.
func (s Service) DropInPath(name string) string { return s.UnitPath() + ".d/" + name + ".conf" }

// DropInHeader is the first line of every drop-in that a manifest brings.
const DropInHeader = "# Written by continuo; do not edit.\n"

// LimitsDropIn is the name of the drop-in that holds Limits.
const LimitsDropIn = "50-continuo-limits"

// AllDropIns are the texts of the drop-ins as they are written, that of the limits included, by name.
func (s Service) AllDropIns() map[string]string {
	out := make(map[string]string, len(s.DropIns)+1)
	for name, text := range s.DropIns {
		out[name] = DropInHeader + text
	}
	if s.Limits != nil {
		out[LimitsDropIn] = DropInHeader + s.Limits.text()
	}
	return out
}

// Written are the texts of all files that the score brings, by path.
func (s Service) Written() map[string]string {
	out := map[string]string{}
	if s.UnitFile != "" {
		out[s.UnitPath()] = s.UnitFile
	}
	for name, text := range s.AllDropIns() {
		out[s.DropInPath(name)] = text
	}
	return out
}

// Claims is the unit, and the files that are written for it.
func (s Service) Claims() []Resource {
	c := []Resource{Resource("unit:" + s.Ref())}
	if s.UnitFile != "" || s.masked() {
		c = append(c, fileResource(s.UnitPath()))
	}
	for _, name := range slices.Sorted(maps.Keys(s.AllDropIns())) {
		c = append(c, fileResource(s.DropInPath(name)))
	}
	return c
}

func (s Service) masked() bool { return s.Masked != nil && *s.Masked }

// RestartTriggers is RestartOn.
func (s Service) RestartTriggers() []ID { return s.RestartOn }

// ReloadTriggers is ReloadOn.
func (s Service) ReloadTriggers() []ID { return s.ReloadOn }

func (s Service) withTriggers(rename func([]ID) []ID) Spec {
	s.RestartOn, s.ReloadOn = rename(s.RestartOn), rename(s.ReloadOn)
	return s
}

// AddService adds a service to a draft.
func AddService[P Services](d *Draft[P], id ID, s Service) Ref[Service] { return add(d, id, s) }
