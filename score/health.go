package score

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
	Unit string `json:"unit,omitempty"`
	// Container succeeds if this container runs and its own health check, if it has one, says healthy.
	Container string `json:"container,omitempty"`
	// File succeeds if a file is there and was written lately.
	File *FileProbe `json:"file,omitempty"`
	// Delay before the first look. If it is left out, none.
	Delay Duration `json:"delay,omitzero"`
	// Period between looks. If it is left out, 10 s.
	Period Duration `json:"period,omitzero"`
	// Timeout of one look. If it is left out, 1 s.
	Timeout Duration `json:"timeout,omitzero"`
	// FailureThreshold is how many looks in a row must fail before it counts as unhealthy. If it is left out, 3.
	FailureThreshold int `json:"failureThreshold,omitzero" jsonschema:"minimum=1"`
	// SuccessThreshold is how many looks in a row must succeed before it counts as healthy. If it is left out, 1.
	SuccessThreshold int `json:"successThreshold,omitzero" jsonschema:"minimum=1"`
}

// A TCPProbe opens a connection.
type TCPProbe struct {
	// Host to connect to. If it is left out, 127.0.0.1.
	Host string `json:"host,omitempty"`
	// Port to connect to.
	Port uint16 `json:"port" jsonschema:"minimum=1"`
}

// An HTTPProbe asks a URL. Redirects are not followed, certificates are not checked, and no proxy is used.
type HTTPProbe struct {
	// URL to get: http or https.
	URL string `json:"url"`
}

// A FileProbe looks at a file.
type FileProbe struct {
	// Path of the file.
	Path string `json:"path"`
	// MaxAge of its content.
	MaxAge Duration `json:"maxAge"`
}

// Engine is how the agent plays one score, whatever its kind.
type Engine struct {
	// Noop makes the agent only look at the score and report what differs.
	Noop bool `json:"noop,omitempty"`
	// Retries is how often a failed try is repeated before the score is left alone until something about it is new. If
	// it is left out, for ever.
	Retries *int `json:"retries,omitempty" jsonschema:"minimum=0"`
	// Delay is the pause after the first failure; it doubles with each one, up to 5 minutes. If it is left out, 1 s.
	Delay Duration `json:"delay,omitzero"`
	// Timeout of one try. If it is left out, 15 minutes.
	Timeout Duration `json:"timeout,omitzero"`
	// Poll makes the agent look at the score at least so often, besides the full passes.
	Poll Duration `json:"poll,omitzero"`
	// Limit bounds how often the score may be changed.
	Limit *Limit `json:"limit,omitempty"`
	// Group names a lock: of the scores of one device that name the same one, one at a time is played.
	Group string `json:"group,omitempty"`
}

// A Limit is a number of changes in a time.
type Limit struct {
	// Changes that may be made in the time.
	Changes int `json:"changes" jsonschema:"minimum=1"`
	// Per is the time.
	Per Duration `json:"per"`
}

func (h Health) clone() Health {
	for _, p := range []**Probe{&h.Readiness, &h.Liveness} {
		if *p = clonePointer(*p); *p != nil {
			(*p).TCP, (*p).HTTP, (*p).File = clonePointer((*p).TCP), clonePointer((*p).HTTP), clonePointer((*p).File)
		}
	}
	return h
}

func (e Engine) clone() Engine {
	e.Retries, e.Limit = clonePointer(e.Retries), clonePointer(e.Limit)
	return e
}
