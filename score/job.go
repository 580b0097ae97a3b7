package score

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

func init() {
	Register(Definition[Job]{
		Doc:   "Something that is run to its end, once.",
		Needs: []Capability{CapJobs},
		Sample: Job{
			Name: "migrate", Unit: &JobUnit{Exec: []string{"/usr/local/bin/migrate", "--all"}, User: "www-data", WorkingDir: "/srv/app", Env: map[string]string{"TZ": "UTC"}},
			Timeout: Duration(2 * time.Minute), Retries: 2, Success: []int{0},
		},
	})
}

// KindJob is the kind of Job.
const KindJob Kind = "job"

// Job is a program of the device, or a container, that is run to its end, once: when it is new,
// and again when what is run becomes another. One that ended well is not run again, also not
// after a reboot. One that was interrupted, because the device went down or somebody stopped
// it, is run again, at most three times; so what it does must bear to be begun twice. It leaves
// no unit installed: one that a timer, a person or another unit starts as well is a service with
// run: once.
type Job struct {
	// Name of the job, and of its unit, NAME.service: systemctl status NAME shows it, and journalctl -u NAME what it wrote.
	Name string `json:"name" effect:"create" jsonschema:"maxLength=63,pattern=^[a-z0-9][a-z0-9_.-]*$,example=migrate"`
	// Unit is a program of the device. A job has this or container.
	Unit *JobUnit `json:"unit,omitempty" effect:"disrupt"`
	// Container is a container that ends. A job has this or unit.
	Container *JobContainer `json:"container,omitempty" effect:"disrupt"`
	// Timeout after which it is killed, and has failed: whole seconds. If it is left out, 5m.
	Timeout Duration `json:"timeout,omitzero" effect:"none"`
	// Retries is how often it is run again after it failed, at the pace of the score: see engine. If it is left out, never.
	Retries int `json:"retries,omitzero" effect:"none" jsonschema:"minimum=0,maximum=10,example=2"`
	// Success lists the exit codes that mean that it went well. If it is left out, 0.
	Success []int `json:"success,omitempty" effect:"none" jsonschema:"example=0"`
}

// A JobUnit is a program of the device.
type JobUnit struct {
	// Exec is the absolute path of the program, and its arguments. No shell reads them.
	Exec []string `json:"exec" jsonschema:"minItems=1,example=/usr/local/bin/migrate"`
	// User that it runs as. If it is left out, root.
	User string `json:"user,omitempty" jsonschema:"maxLength=32,example=www-data"`
	// WorkingDir is where it starts. If it is left out, /.
	WorkingDir string `json:"workingDir,omitempty" jsonschema:"maxLength=4095,example=/srv/app"`
	// Env is its environment. Everybody on the device can read it: it is no place for a secret.
	Env map[string]string `json:"env,omitempty"`
}

// A JobContainer is a container that ends.
type JobContainer struct {
	// Image is a full reference with its registry, by tag or by digest.
	Image string `json:"image" jsonschema:"example=registry.example.org/tools:2"`
	// Entrypoint replaces the entrypoint of the image: a list of arguments, without a shell.
	Entrypoint []string `json:"entrypoint,omitempty" jsonschema:"example=/usr/bin/backup"`
	// Command replaces the command of the image: a list of arguments, without a shell.
	Command []string `json:"command,omitempty" jsonschema:"example=--all"`
	// User that the program runs as. If it is left out, the image decides.
	User string `json:"user,omitempty" jsonschema:"maxLength=65,example=1000:1000"`
	// WorkingDir is where the program starts: an absolute path in the container.
	WorkingDir string `json:"workingDir,omitempty" jsonschema:"maxLength=4095,example=/srv"`
	// Env is the environment: of each variable the text, or {secret: NAME}. Quote numbers.
	Env map[string]Value `json:"env,omitempty"`
	// Volumes are directories of the device, or named volumes, seen in the container.
	Volumes []Volume `json:"volumes,omitempty"`
	// Network is bridge (a network of its own, behind the device), host (that of the device), none, or the name of a network of containers.
	Network string `json:"network,omitempty" jsonschema:"maxLength=63,default=bridge,example=none"`
}

// DefaultJobTimeout is the timeout of a job that says none.
const DefaultJobTimeout = Duration(5 * time.Minute)

// Kind is KindJob.
func (Job) Kind() Kind { return KindJob }

// Claims is the job, its unit, and its container.
func (j Job) Claims() []Resource {
	out := []Resource{Resource("job:" + j.Name), Resource("unit:" + j.Name + ".service")}
	if j.Container != nil {
		out = append(out, Resource("container:"+j.Name))
	}
	return out
}

// SecretNames lists the secrets of the environment.
func (j Job) SecretNames() (out []string) {
	if j.Container != nil {
		for _, v := range j.Container.Env {
			if v.Secret != "" {
				out = append(out, v.Secret)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// AddJob adds a job to a draft.
func AddJob[P Jobs](d *Draft[P], id ID, j Job) Ref[Job] { return add(d, id, j) }

// shells read a script from their arguments: what is run would not be what is declared. Other interpreters can as well, and a
// program of any name can be a shell: this is an answer to whoever writes one down without a thought, and no wall. What may be run
// at all is the ceiling's to say.
var shells = []string{"ash", "bash", "busybox", "csh", "dash", "fish", "ksh", "sh", "tcsh", "zsh"}

// Check refuses what is no job.
func (j Job) Check(r *Report) {
	if !containerRE.MatchString(j.Name) {
		r.At("name").Errorf("name %q must be lower-case letters, digits, '_', '.' and '-', at most 63, a letter or digit first", j.Name)
	}
	if j.Name == "continuo-agent" {
		r.At("name").Errorf("continuo-agent is the agent itself")
	}
	switch {
	case j.Unit == nil && j.Container == nil:
		r.Errorf("a job has a unit or a container to run: this one has none")
	case j.Unit != nil && j.Container != nil:
		r.At("container").Errorf("a job has a unit or a container to run, not both")
	case j.Unit != nil:
		j.Unit.check(r.At("unit"))
	default:
		j.Container.check(r.At("container"), j.Name)
	}
	if d := time.Duration(j.Timeout); d != 0 && (d < time.Second || d%time.Second != 0 || d > 24*time.Hour) {
		r.At("timeout").Errorf("timeout %s must be whole seconds, from 1s to 24h", j.Timeout)
	}
	if j.Retries < 0 || j.Retries > 10 {
		r.At("retries").Errorf("retries is %d, and must be from 0 to 10", j.Retries)
	}
	for i, code := range j.Success {
		if code < 0 || code > 255 {
			r.At("success", i).Errorf("%d is no exit code: they are from 0 to 255", code)
		}
	}
}

// check looks at a container as it does at one that is kept running.
func (c JobContainer) check(r *Report, name string) {
	if hexRE.MatchString(name) {
		r.At("..", "name").Errorf("name %q has hexadecimal digits only: podman would take it for the beginning of the id of another container; add another character, such as %q", name, name+"-1")
	}
	like := Container{Name: name, Entrypoint: c.Entrypoint, Command: c.Command, User: c.User, WorkingDir: c.WorkingDir, Env: c.Env, Network: c.Network}
	checkImage(r.At("image"), c.Image)
	like.checkProgram(r)
	like.checkNetwork(r)
	checkVolumes(r.At("volumes"), c.Volumes)
}

func (u JobUnit) check(r *Report) {
	switch exec := r.At("exec"); {
	case len(u.Exec) == 0:
		exec.Errorf("exec needs a program")
	case !path.IsAbs(u.Exec[0]) || path.Clean(u.Exec[0]) != u.Exec[0]:
		exec.At(0).Errorf("program %q must be an absolute, clean path", u.Exec[0])
	}
	for i, arg := range u.Exec { // env, nice, timeout and others run what their arguments name
		if slices.Contains(shells, path.Base(arg)) && slices.ContainsFunc(u.Exec[i+1:], isScript) {
			r.At("exec", i).Errorf("%s would run a script from its arguments: put the script into a file score, and name that", path.Base(arg))
			break
		}
	}
	checkArguments(r.At("exec"), u.Exec)
	if u.User != "" && !accountRE.MatchString(u.User) {
		r.At("user").Errorf("user %q is no account name and no number", u.User)
	}
	if u.WorkingDir != "" && (!path.IsAbs(u.WorkingDir) || path.Clean(u.WorkingDir) != u.WorkingDir || strings.ContainsRune(u.WorkingDir, 0)) {
		r.At("workingDir").Errorf("directory %q must be absolute and clean", u.WorkingDir)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Env)) {
		if !envRE.MatchString(name) {
			r.At("env", name).Errorf("%q is no name of an environment variable", name)
		}
		if strings.ContainsAny(u.Env[name], "\x00\n") {
			r.At("env", name).Errorf("the value of %s has a line break or a NUL byte", name)
		}
	}
}

// isScript finds -c among the options of a shell.
func isScript(arg string) bool {
	return strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c")
}
