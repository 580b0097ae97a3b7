package score

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Health says how to find out whether what a score describes works. Nothing is executed on the device for it.
type Health struct {
	// Readiness tells whether it works: until it does, scores that come after this one wait, and its generation has not
	// succeeded.
	Readiness *Probe `json:"readiness,omitempty"`
	// Liveness tells whether it hangs: a service or container whose liveness fails is restarted, as far as the policy
	// lets drift be corrected, and with longer and longer pauses.
	Liveness *Probe `json:"liveness,omitempty"`
}

// A Probe is one way to look. Exactly one of TCP, HTTP, Unit, Container and File is given.
type Probe struct {
	// TCP succeeds if a connection can be opened.
	TCP *TCPProbe `json:"tcp,omitempty"`
	// HTTP succeeds if a GET is answered with a status from 200 to 399.
	HTTP *HTTPProbe `json:"http,omitempty"`
	// Unit succeeds if this unit is active.
	Unit string `json:"unit,omitempty" jsonschema:"maxLength=255,example=kiosk.service"`
	// Container succeeds if this container runs and its own health check, if it has one, says healthy.
	Container string `json:"container,omitempty" jsonschema:"maxLength=63,example=web"`
	// File succeeds if a file is there and was written lately.
	File *FileProbe `json:"file,omitempty"`
	// Delay before the first look. If it is left out, none.
	Delay Duration `json:"delay,omitzero"`
	// Period between looks: a second at least. If it is left out, 10 s.
	Period Duration `json:"period,omitzero"`
	// Timeout of one look, at most as long as the period. If it is left out, 1 s.
	Timeout Duration `json:"timeout,omitzero"`
	// FailureThreshold is how many looks in a row must fail before it counts as unhealthy. If it is left out, 3.
	FailureThreshold int `json:"failureThreshold,omitzero" jsonschema:"minimum=1,maximum=1000"`
	// SuccessThreshold is how many looks in a row must succeed before it counts as healthy. If it is left out, 1.
	SuccessThreshold int `json:"successThreshold,omitzero" jsonschema:"minimum=1,maximum=1000"`
}

// A TCPProbe opens a connection.
type TCPProbe struct {
	// Host to connect to: a name or an address. If it is left out, 127.0.0.1.
	Host string `json:"host,omitempty" jsonschema:"maxLength=253,example=127.0.0.1"`
	// Port to connect to.
	Port uint16 `json:"port" jsonschema:"minimum=1,maximum=65535"`
}

// An HTTPProbe asks a URL. Redirects are not followed, certificates are not checked, and no proxy is used.
type HTTPProbe struct {
	// URL to get: http or https, with the host, and without a user or password.
	URL string `json:"url" jsonschema:"maxLength=2048,example=http://127.0.0.1:8080/healthz"`
}

// A FileProbe looks at a file.
type FileProbe struct {
	// Path of the file: absolute and clean.
	Path string `json:"path" jsonschema:"pattern=^/,maxLength=4095,example=/run/kiosk/alive"`
	// MaxAge of its content: a second at least.
	MaxAge Duration `json:"maxAge"`
}

func (h Health) clone() Health {
	for _, p := range []**Probe{&h.Readiness, &h.Liveness} {
		if *p = clonePointer(*p); *p != nil {
			(*p).TCP, (*p).HTTP, (*p).File = clonePointer((*p).TCP), clonePointer((*p).HTTP), clonePointer((*p).File)
		}
	}
	return h
}

// What counts if a probe leaves it out.
const (
	defaultPeriod           = Duration(10 * time.Second)
	defaultTimeout          = Duration(time.Second)
	defaultFailureThreshold = 3
	defaultSuccessThreshold = 1
)

// Filled returns p with what is left out filled in.
func (p Probe) Filled() Probe {
	p.Period = cmp.Or(p.Period, defaultPeriod)
	p.Timeout = cmp.Or(p.Timeout, defaultTimeout)
	p.FailureThreshold = cmp.Or(p.FailureThreshold, defaultFailureThreshold)
	p.SuccessThreshold = cmp.Or(p.SuccessThreshold, defaultSuccessThreshold)
	return p
}

// quickest is how long the first success takes at least.
func (p Probe) quickest() Duration {
	p = p.Filled()
	return p.Delay + Duration(p.SuccessThreshold-1)*p.Period
}

func (h Health) check(r *Report, of Spec) {
	if h.Readiness == nil && h.Liveness == nil {
		r.Errorf("health says nothing: give readiness or liveness, or leave it out")
	}
	if h.Readiness != nil {
		h.Readiness.check(r.At("readiness"))
	}
	if h.Liveness == nil {
		return
	}
	at := r.At("liveness")
	h.Liveness.check(at)
	switch _, restarts := of.(Restarter); {
	case isOpaque(of): // nothing is known of it
	case !restarts:
		at.Errorf("liveness goes with what can be restarted; a %s cannot", of.Kind())
	default:
		if s, is := of.(Service); is && s.State != Running {
			at.Errorf("liveness goes with state running")
		}
	}
}

func isOpaque(s Spec) bool {
	_, is := s.(Opaque)
	return is
}

const (
	shortestPeriod  = Duration(time.Second)
	shortestTimeout = Duration(10 * time.Millisecond)
	longestDelay    = Duration(time.Hour)
	longestPeriod   = Duration(24 * time.Hour)
	mostLooks       = 1000 // of a threshold
)

func (p Probe) check(r *Report) {
	var ways []string
	for _, w := range []struct {
		name  string
		given bool
	}{{"tcp", p.TCP != nil}, {"http", p.HTTP != nil}, {"unit", p.Unit != ""}, {"container", p.Container != ""}, {"file", p.File != nil}} {
		if w.given {
			ways = append(ways, w.name)
		}
	}
	switch len(ways) {
	case 0:
		r.Errorf("a probe needs one of tcp, http, unit, container and file")
	case 1:
	default:
		r.Errorf("a probe is one of tcp, http, unit, container and file, and this one is %s", strings.Join(ways, " and "))
	}
	if p.TCP != nil {
		p.TCP.check(r.At("tcp"))
	}
	if p.HTTP != nil {
		p.HTTP.check(r.At("http", "url"))
	}
	if p.Unit != "" && (len(p.Unit) > 255 || !unitRE.MatchString(p.Unit) || strings.Contains(p.Unit, "@.")) {
		r.At("unit").Errorf("unit %q must be a full unit name such as kiosk.service", p.Unit)
	}
	if p.Container != "" && !containerRE.MatchString(p.Container) {
		r.At("container").Errorf("container %q must be lower-case letters, digits, '_', '.' and '-', at most 63", p.Container)
	}
	if p.File != nil {
		checkPath(r.At("file", "path"), p.File.Path)
		if p.File.MaxAge < Duration(time.Second) {
			r.At("file", "maxAge").Errorf("maxAge is %s, and must be a second at least", p.File.MaxAge)
		}
	}
	p.checkPace(r)
}

func (p Probe) checkPace(r *Report) {
	if p.Delay < 0 || p.Delay > longestDelay {
		r.At("delay").Errorf("delay %s must be from 0s to %s", p.Delay, longestDelay)
	}
	f := p.Filled()
	if f.Period < shortestPeriod || f.Period > longestPeriod {
		r.At("period").Errorf("period %s must be from %s to %s", f.Period, shortestPeriod, longestPeriod)
	} else if f.Timeout > f.Period {
		period := f.Period.String()
		if p.Period == 0 {
			period = "10s if it is left out"
		}
		r.At("timeout").Errorf("timeout %s is longer than the period, which is %s", f.Timeout, period)
	}
	if f.Timeout < shortestTimeout {
		r.At("timeout").Errorf("timeout %s must be %s at least", f.Timeout, shortestTimeout)
	}
	for _, t := range []struct {
		field string
		n     int
	}{{"failureThreshold", f.FailureThreshold}, {"successThreshold", f.SuccessThreshold}} {
		if t.n < 1 || t.n > mostLooks {
			r.At(t.field).Errorf("%s %d must be from 1 to %d", t.field, t.n, mostLooks)
		}
	}
}

var hostRE = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*\.?$`)

func isHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return len(s) <= 253 && hostRE.MatchString(s)
}

func (t TCPProbe) check(r *Report) {
	if t.Host != "" && !isHost(t.Host) {
		r.At("host").Errorf("host %q is no host name and no address", t.Host)
	}
	if t.Port == 0 {
		r.At("port").Errorf("port must be from 1 to 65535")
	}
}

func (h HTTPProbe) check(r *Report) {
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !isHost(u.Hostname()) || len(h.URL) > 2048:
		r.Errorf("url %q must be a full http or https address, such as http://127.0.0.1:8080/healthz", h.URL)
	case u.User != nil:
		r.Errorf("url holds a user or password: a manifest is no place for secrets, and a probe needs none")
	case u.Fragment != "":
		r.Errorf("url %q has a fragment, which no server ever sees: leave out what is behind '#'", h.URL)
	case u.Port() != "" && !isPort(u.Port()):
		r.Errorf("url %q has the port %s, which is not of 1 to 65535", h.URL, u.Port())
	}
}

func isPort(s string) bool {
	first, _, ok := parseSpan(s)
	return ok && first > 0
}
