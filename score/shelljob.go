//go:build shelljob

package score

import (
	"path"
	"time"
)

func init() {
	Register(Definition[ShellJob]{
		Doc:       "The escape hatch: any command, with a check that says whether it is needed. Every run is signed by itself.",
		Needs:     []Capability{CapJobs},
		Stability: Experimental,
		Sample:    ShellJob{Name: "flash-radio", Exec: []string{"/usr/local/sbin/flash-radio", "--firmware", "2.1"}, Verify: []string{"/usr/local/sbin/flash-radio", "--is", "2.1"}},
	})
}

// KindShellJob is the kind of ShellJob.
const KindShellJob Kind = "shellJob"

// ShellJob is any command, for what no kind covers. It is in no release: only in builds with the tag
// shelljob, on devices whose own configuration has ceiling.shellJobs, and each run needs an approval
// that is signed for just it. No shell reads its arguments; who wants one names it.
type ShellJob struct {
	// Name of the job, and of its unit, NAME.service.
	Name string `json:"name" effect:"destroy" jsonschema:"maxLength=55,pattern=^[a-z0-9][a-z0-9_.-]*$,example=flash-radio"`
	// Exec is the absolute path of the program, and its arguments.
	Exec []string `json:"exec" effect:"destroy" jsonschema:"minItems=1,example=/usr/local/sbin/flash-radio"`
	// Verify is a program that ends with 0 if what exec does is done already, within 8 s. It is run before exec, which is left
	// out then, and after it.
	Verify []string `json:"check" effect:"destroy" jsonschema:"minItems=1,example=/usr/local/sbin/flash-radio"`
	// Timeout after which it is killed, and has failed: whole seconds, 4m at most. If it is left out, 1m.
	Timeout Duration `json:"timeout,omitzero" effect:"none"`
}

// DefaultShellJobTimeout is the timeout of one that says none.
const DefaultShellJobTimeout = Duration(time.Minute)

// Kind is KindShellJob.
func (ShellJob) Kind() Kind { return KindShellJob }

// CheckName is the name of the job that is its check.
func (s ShellJob) CheckName() string { return s.Name + "-check" }

// Claims is the job and its check, with their units.
func (s ShellJob) Claims() []Resource {
	return []Resource{
		Resource("job:" + s.Name), Resource("unit:" + s.Name + ".service"),
		Resource("job:" + s.CheckName()), Resource("unit:" + s.CheckName() + ".service"),
	}
}

// AddShellJob adds one to a draft.
func AddShellJob[P Jobs](d *Draft[P], id ID, s ShellJob) Ref[ShellJob] { return add(d, id, s) }

// Check refuses what is no command.
func (s ShellJob) Check(r *Report) {
	if !containerRE.MatchString(s.Name) || len(s.Name) > 55 || s.Name == "continuo-agent" {
		r.At("name").Errorf("name %q must be lower-case letters, digits, '_', '.' and '-', at most 55, a letter or digit first", s.Name)
	}
	for _, c := range []struct {
		field string
		argv  []string
	}{{"exec", s.Exec}, {"check", s.Verify}} {
		if len(c.argv) == 0 || !path.IsAbs(c.argv[0]) || path.Clean(c.argv[0]) != c.argv[0] {
			r.At(c.field).Errorf("%s needs a program by its absolute, clean path, and its arguments", c.field)
		}
		checkArguments(r.At(c.field), c.argv)
	}
	if d := time.Duration(s.Timeout); d != 0 && (d < time.Second || d%time.Second != 0 || d > 4*time.Minute) {
		r.At("timeout").Errorf("timeout %s must be whole seconds, from 1s to 4m", s.Timeout)
	}
}
