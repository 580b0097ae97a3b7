package score

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A Signal is the name of a signal, without SIG.
type Signal string

var (
	stopSignals   = []string{"TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL"}
	reloadSignals = []string{"HUP", "USR1", "USR2", "WINCH"}
)

// An InitContainer runs to completion before each start of a container. One that fails, or
// takes too long, keeps what comes after it from starting.
type InitContainer struct {
	// Name of the step. Its container is called NAME-init-STEP while it runs.
	Name string `json:"name" jsonschema:"maxLength=40,pattern=^[a-z0-9][a-z0-9-]*$,example=migrate"`
	// Image is a full reference. If it is left out, it is that of the container.
	Image string `json:"image,omitempty" jsonschema:"example=registry.example.org/tools:2"`
	// Entrypoint replaces the entrypoint of the image: a list of arguments, without a shell.
	Entrypoint []string `json:"entrypoint,omitempty" jsonschema:"example=/usr/bin/migrate"`
	// Command replaces the command of the image: a list of arguments, without a shell.
	Command []string `json:"command,omitempty" jsonschema:"example=up"`
	// User that the program runs as. If it is left out, the image decides.
	User string `json:"user,omitempty" jsonschema:"maxLength=65,example=1000:1000"`
	// Env is the environment: of each variable the text, or {secret: NAME}. Quote numbers.
	Env map[string]Value `json:"env,omitempty"`
	// Volumes are directories of the device, or named volumes, seen in the container.
	Volumes []Volume `json:"volumes,omitempty"`
	// Timeout after which it is killed, and has failed: whole seconds. If it is left out, 5m.
	Timeout Duration `json:"timeout,omitzero"`
}

// DefaultInitTimeout is the timeout of an init container that says none.
const DefaultInitTimeout = Duration(5 * time.Minute)

// ContainerName is what i is called while it runs before c.
func (i InitContainer) ContainerName(c Container) string { return c.Name + "-init-" + i.Name }

// A HealthCheck is run in the container, again and again. What it says is in the status, and
// a container counts as well only when it says healthy.
type HealthCheck struct {
	// Command that succeeds if all is well: a list of arguments, without a shell. If it is left out, the image must have a check of its own.
	Command []string `json:"command,omitempty" jsonschema:"example=/usr/bin/healthcheck"`
	// Interval between runs: three seconds at least. If it is left out, 30s.
	Interval Duration `json:"interval,omitzero"`
	// Timeout of one run: a second at least. If it is left out, 30s.
	Timeout Duration `json:"timeout,omitzero"`
	// Retries is how many runs in a row must fail before it is unhealthy. If it is left out, 3.
	Retries int `json:"retries,omitzero" jsonschema:"minimum=1,maximum=100,example=3"`
	// StartPeriod is how long failures do not count after the start. If it is left out, they do.
	StartPeriod Duration `json:"startPeriod,omitzero"`
}

var (
	userRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$`)
	initRE = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)
)

const (
	longestStop = Duration(10 * time.Minute)
	longestInit = Duration(time.Hour)
	mostArgs    = 1000 // of one list
	mostInits   = 20
	longestArg  = 128<<10 - 1 // also of a variable with its name
)

// checkProgram looks at what runs, and how it starts and ends.
func (c Container) checkProgram(r *Report) {
	checkArguments(r.At("entrypoint"), c.Entrypoint)
	checkArguments(r.At("command"), c.Command)
	checkUser(r.At("user"), c.User)
	if d := c.WorkingDir; d != "" && (!path.IsAbs(d) || d != path.Clean(d) || strings.ContainsAny(d, "\"\\") || strings.ContainsFunc(d, unicode.IsControl) || strings.HasSuffix(d, " ")) {
		r.At("workingDir").Errorf("workingDir %q must be an absolute, clean path in the container, without '\"' and '\\\\'", d)
	}
	checkEnv(r.At("env"), c.Env)
	checkSignal(r.At("stopSignal"), c.StopSignal, stopSignals)
	checkSignal(r.At("reloadSignal"), c.ReloadSignal, reloadSignals)
	if c.StopTimeout != 0 {
		checkSeconds(r.At("stopTimeout"), "stopTimeout", c.StopTimeout, longestStop)
	}
	if c.HealthCheck != nil {
		c.HealthCheck.check(r.At("healthCheck"))
	}
	if len(c.Init) > mostInits {
		r.At("init").Errorf("%d init containers are more than %d", len(c.Init), mostInits)
	}
	for i, in := range c.Init {
		in.check(r.At("init", i))
		for j, before := range c.Init[:i] {
			if in.Name == before.Name {
				r.At("init", i, "name").Errorf("init container %d has the name %s too", j+1, in.Name)
			}
		}
	}
}

func (i InitContainer) check(r *Report) {
	if !initRE.MatchString(i.Name) {
		r.At("name").Errorf("name %q must be lower-case letters, digits and '-', at most 40", i.Name)
	}
	if i.Image != "" {
		checkImage(r.At("image"), i.Image)
	}
	checkArguments(r.At("entrypoint"), i.Entrypoint)
	checkArguments(r.At("command"), i.Command)
	checkUser(r.At("user"), i.User)
	checkEnv(r.At("env"), i.Env)
	checkVolumes(r.At("volumes"), i.Volumes)
	if i.Timeout != 0 {
		checkSeconds(r.At("timeout"), "timeout", i.Timeout, longestInit)
	}
}

func (h HealthCheck) check(r *Report) {
	checkArguments(r.At("command"), h.Command)
	if len(h.Command) == 0 {
		if h.Interval != 0 || h.Timeout != 0 || h.Retries != 0 || h.StartPeriod != 0 {
			r.Errorf("interval, timeout, retries and startPeriod go with a command: the check of the image has its own")
		}
		return
	}
	if slices.ContainsFunc([]string{"CMD", "CMD-SHELL", "NONE"}, func(w string) bool { return strings.EqualFold(w, h.Command[0]) }) {
		r.At("command").Errorf("the runtime takes %q for a word of its own: give the path of the program", h.Command[0])
	}
	if len(h.Command) == 1 && strings.ContainsFunc(h.Command[0], func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c) || strings.ContainsRune("\"'\\", c)
	}) {
		r.At("command").Errorf("a command of one word cannot have a space, a quote, a backslash or a control character in it: the runtime would take it apart")
	}
	for _, d := range []struct {
		field   string
		d       Duration
		longest Duration
	}{{"interval", h.Interval, longestPeriod}, {"timeout", h.Timeout, longestDelay}, {"startPeriod", h.StartPeriod, longestDelay}} {
		if d.d != 0 {
			checkSeconds(r.At(d.field), d.field, d.d, d.longest)
		}
	}
	if h.Interval > 0 && h.Interval < Duration(3*time.Second) {
		r.At("interval").Errorf("interval %s is too short: the service manager, which starts each run, takes more than five in ten seconds for a loop and stops them; 3s is the least", h.Interval)
	}
	if h.Retries < 0 || h.Retries > 100 {
		r.At("retries").Errorf("retries %d must be from 1 to 100", h.Retries)
	}
}

func checkArguments(r *Report, args []string) {
	for i, a := range args {
		switch {
		case strings.ContainsRune(a, 0):
			r.At(i).Errorf("argument has a NUL byte")
		case len(a) > longestArg:
			r.At(i).Errorf("argument is %d bytes long, and a kernel takes %d", len(a), longestArg)
		case i >= mostArgs:
			r.Errorf("%d arguments are more than %d", len(args), mostArgs)
			return
		}
	}
}

func checkUser(r *Report, user string) {
	if user != "" && !userRE.MatchString(user) {
		r.Errorf("user %q must be a name or a number, with a group behind ':' if there is one, such as 1000:1000", user)
	}
}

func checkEnv(r *Report, env map[string]Value) {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		v := env[k]
		if !envRE.MatchString(k) {
			r.At(k).Errorf("%q is no name of an environment variable", k)
		}
		if strings.ContainsAny(v.Text, "\x00\n") {
			r.At(k).Errorf("the value of %s has a line break or a NUL byte", k)
		}
		if len(k)+1+len(v.Text) > longestArg {
			r.At(k).Errorf("the value of %s is %d bytes long, and a kernel takes %d with the name", k, len(v.Text), longestArg)
		}
		if v.Secret != "" {
			SecretRef{v.Secret}.check(r.At(k))
		}
		if v.Secret != "" && v.Text != "" {
			r.At(k).Errorf("the value of %s is either text or a secret", k)
		}
	}
}

func checkSignal(r *Report, s Signal, known []string) {
	if s != "" && !slices.Contains(known, string(s)) {
		r.Errorf("unknown signal %q%s", s, didYouMean(strings.TrimPrefix(string(s), "SIG"), known))
	}
}

// checkSeconds wants whole seconds.
func checkSeconds(r *Report, field string, d, longest Duration) {
	if d < Duration(time.Second) || d > longest || d%Duration(time.Second) != 0 {
		r.Errorf("%s %s must be from 1s to %s, in whole seconds", field, d, longest)
	}
}
