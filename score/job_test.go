package score_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// TestJobProblems: what is no job, and what would be a shell in the clothes of one (X34, H49).
func TestJobProblems(t *testing.T) {
	unit := func(exec ...string) score.Job { return score.Job{Name: "migrate", Unit: &score.JobUnit{Exec: exec}} }
	with := func(change func(*score.Job)) score.Job {
		j := unit("/usr/bin/migrate")
		change(&j)
		return j
	}
	box := func(change func(*score.JobContainer)) score.Job {
		c := score.JobContainer{Image: "a.b/c:1"}
		change(&c)
		return score.Job{Name: "migrate", Container: &c}
	}
	tests := []struct {
		job  score.Job
		want []string
	}{
		{unit("/usr/bin/migrate", "--all", "$HOME"), nil},
		{unit("/bin/sh", "/usr/local/lib/migrate.sh"), nil},
		{box(func(c *score.JobContainer) {
			c.Entrypoint, c.Env, c.Network = []string{"/bin/x"}, map[string]score.Value{"A": score.FromSecret("b")}, "none"
		}), nil},
		{score.Job{Name: "migrate"}, []string{": a job has a unit or a container to run: this one has none"}},
		{with(func(j *score.Job) { j.Container = &score.JobContainer{Image: "a.b/c:1"} }), []string{"/container: a job has a unit or a container to run, not both"}},
		{with(func(j *score.Job) { j.Name = "Migrate it" }), []string{`/name: name "Migrate it" must be lower-case letters, digits, '_', '.' and '-', at most 63, a letter or digit first`}},
		{with(func(j *score.Job) { j.Name = "continuo-agent" }), []string{"/name: continuo-agent is the agent itself"}},
		{with(func(j *score.Job) { j.Timeout = 1 }), []string{"/timeout: timeout 1ns must be whole seconds, from 1s to 24h"}},
		{with(func(j *score.Job) { j.Timeout = score.Duration(25 * time.Hour) }), []string{"/timeout: timeout 25h must be whole seconds, from 1s to 24h"}},
		{with(func(j *score.Job) { j.Retries = 11 }), []string{"/retries: retries is 11, and must be from 0 to 10"}},
		{with(func(j *score.Job) { j.Success = []int{0, 256} }), []string{"/success/1: 256 is no exit code: they are from 0 to 255"}},
		{unit(), []string{"/unit/exec: exec needs a program"}},
		{unit("migrate"), []string{`/unit/exec/0: program "migrate" must be an absolute, clean path`}},
		{unit("/bin/sh", "-c", "rm -rf /"), []string{"/unit/exec/0: sh would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/bin/bash", "-ec", "rm -rf /"), []string{"/unit/exec/0: bash would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/usr/bin/env", "sh", "-c", "x"), []string{"/unit/exec/1: sh would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/usr/bin/env", "-S", "A=1", "/bin/bash", "-lc", "x"), []string{"/unit/exec/3: bash would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/bin/busybox", "sh", "-c", "x"), []string{"/unit/exec/0: busybox would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/usr/bin/nice", "-n", "5", "sh", "-c", "x"), []string{"/unit/exec/3: sh would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/usr/bin/timeout", "5", "sh", "-c", "x"), []string{"/unit/exec/2: sh would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/usr/bin/xargs", "sh", "-c", "x"), []string{"/unit/exec/1: sh would run a script from its arguments: put the script into a file score, and name that"}},
		{unit("/usr/bin/env", "sh", "/usr/local/lib/migrate.sh"), nil},
		{with(func(j *score.Job) { j.Unit.User = "Me!" }), []string{`/unit/user: user "Me!" is no account name and no number`}},
		{with(func(j *score.Job) { j.Unit.WorkingDir = "srv" }), []string{`/unit/workingDir: directory "srv" must be absolute and clean`}},
		{with(func(j *score.Job) { j.Unit.Env = map[string]string{"A B": "x", "C": "x\ny"} }),
			[]string{`/unit/env/A B: "A B" is no name of an environment variable`, "/unit/env/C: the value of C has a line break or a NUL byte"}},
		{box(func(c *score.JobContainer) { c.Image = "nginx" }), []string{`/container/image: image "nginx" must be a full reference with its registry, such as docker.io/library/nginx:1.27`}},
		{score.Job{Name: "db", Container: &score.JobContainer{Image: "a.b/c:1"}},
			[]string{`/name: name "db" has hexadecimal digits only: podman would take it for the beginning of the id of another container; add another character, such as "db-1"`}},
	}
	for _, tt := range tests {
		if got := checked(tt.job); !slices.Equal(got, tt.want) {
			t.Errorf("%+v\ngot  %q\nwant %q", tt.job, got, tt.want)
		}
	}
	// What one job is, no other score of the device can be.
	m := manifest(score.Score{ID: "a", Spec: unit("/usr/bin/migrate")}, score.Score{ID: "b", Spec: score.Service{Unit: "migrate.service", State: score.Running}})
	if ps := m.Validate(); len(ps) != 1 || !strings.Contains(ps[0].Text, "claims unit:migrate.service") {
		t.Errorf("got %v", ps)
	}
}
