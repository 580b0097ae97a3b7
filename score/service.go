package score

import (
	"regexp"
	"slices"
	"strings"
)

func init() {
	Register(Definition[Service]{
		Doc:   "A service in a given state, with its unit file if the manifest brings one.",
		Needs: []Capability{CapServices},
		Sample: Service{
			Unit: "kiosk.service", Enabled: new(true), State: Running,
			UnitFile: "[Unit]\nDescription=Kiosk\n\n[Service]\nExecStart=/usr/bin/kiosk\n\n[Install]\nWantedBy=multi-user.target\n",
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

// Service is a unit of the service manager. At least one of unitFile, enabled and
// state says something; what is left out is not managed.
type Service struct {
	// Unit is the full name of the unit, such as kiosk.service.
	Unit string `json:"unit" effect:"remove" jsonschema:"maxLength=255,example=kiosk.service"`
	// UnitFile is the whole text of the unit file. If it is left out, the unit comes with the system.
	UnitFile string `json:"unitFile,omitempty" effect:"disrupt"`
	// Enabled says whether the unit is started at boot.
	Enabled *bool `json:"enabled,omitempty" effect:"mutate"`
	// State says whether the unit runs now.
	State RunState `json:"state,omitempty" effect:"disrupt" jsonschema:"enum=running,enum=stopped"`
	// RestartOn lists scores whose change restarts the unit, once per pass, if it is to run.
	RestartOn []ID `json:"restartOn,omitempty" effect:"disrupt"`
}

// Kind is KindService.
func (Service) Kind() Kind { return KindService }

// UnitDir is where the unit files of manifests live.
const UnitDir = "/etc/systemd/system/"

// Claims is the unit, and the file it is written to.
func (s Service) Claims() []Resource {
	c := []Resource{Resource("unit:" + s.Unit)}
	if s.UnitFile != "" {
		c = append(c, fileResource(UnitDir+s.Unit))
	}
	return c
}

// RestartTriggers is RestartOn.
func (s Service) RestartTriggers() []ID { return s.RestartOn }

func (s Service) withTriggers(rename func([]ID) []ID) Spec {
	s.RestartOn = rename(s.RestartOn)
	return s
}

// AddService adds a service to a draft.
func AddService[P Services](d *Draft[P], id ID, s Service) Ref[Service] { return add(d, id, s) }

var (
	unitRE = regexp.MustCompile(`^[A-Za-z0-9:_.\\-]+(@[A-Za-z0-9:_.\\-]*)?\.(service|socket|timer|path|mount|automount|swap|target)$`)
	// a setting of a unit file, at the start of a line
	oneshotRE = regexp.MustCompile(`(?mi)^\s*Type\s*=\s*oneshot\s*$`)
	remainRE  = regexp.MustCompile(`(?mi)^\s*RemainAfterExit\s*=\s*(1|yes|true|on)\s*$`)
	installRE = regexp.MustCompile(`(?m)^\s*\[Install\]\s*$`)
	sectionRE = regexp.MustCompile(`(?m)^\s*\[(Unit|Service|Socket|Timer|Path|Mount|Automount|Swap|Install)\]\s*$`)
)

// Check refuses units that no service manager would take, and wishes that contradict
// themselves.
func (s Service) Check(r *Report) {
	switch {
	case len(s.Unit) > 255 || !unitRE.MatchString(s.Unit):
		r.At("unit").Errorf("unit %q must be a full unit name such as kiosk.service", s.Unit)
	case strings.Contains(s.Unit, "@."):
		r.At("unit").Errorf("unit %q is a template; name an instance, such as %s", s.Unit, strings.Replace(s.Unit, "@.", "@1.", 1))
	case s.Unit == "continuo-agent.service":
		r.At("unit").Errorf("continuo-agent.service is the agent itself")
	}
	if s.UnitFile == "" && s.Enabled == nil && s.State == "" {
		r.Errorf("the score asks for nothing: give unitFile, enabled or state")
	}
	if states := []string{string(Running), string(Stopped)}; s.State != "" && !slices.Contains(states, string(s.State)) {
		r.At("state").Errorf("unknown state %q%s", s.State, didYouMean(string(s.State), states))
	}
	if len(s.RestartOn) > 0 && s.State != Running {
		r.At("restartOn").Errorf("restartOn goes with state running")
	}
	if s.UnitFile == "" {
		return
	}
	if !sectionRE.MatchString(s.UnitFile) {
		r.At("unitFile").Errorf("unitFile has no section such as [Service]")
	}
	if strings.ContainsRune(s.UnitFile, 0) {
		r.At("unitFile").Errorf("unitFile has a NUL byte")
	}
	if s.State == Running && oneshotRE.MatchString(s.UnitFile) && !remainRE.MatchString(s.UnitFile) {
		r.At("state").Errorf("a oneshot without RemainAfterExit=yes does not stay running: add it, or leave state out and enable the unit")
	}
	if s.Enabled != nil && *s.Enabled && !installRE.MatchString(s.UnitFile) {
		r.At("enabled").Errorf("a unit without an [Install] section cannot be enabled")
	}
}
