package agent_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// What a container is shown by a link on the device is refused as it is by its name, also in an init container and in a job.
func TestVolumeThatLeadsToTheAgent(t *testing.T) {
	tests := []struct {
		name, target, code string
		readOnly           bool
	}{
		{"elsewhere", "/mnt/ssd", "", false},
		{"state", "/var/lib/continuo", string(interpret.CodeInvalid), true},
		{"below the state", "../var/lib/continuo/secrets.key", string(interpret.CodeInvalid), true},
		{"keys", "/etc/continuo", string(interpret.CodeInvalid), true},
		{"all of it", "/", string(interpret.CodeInvalid), true},
		{"by another link", "/opt/here", string(interpret.CodeInvalid), true},
		{"by going up", "/opt/here/../continuo", string(interpret.CodeInvalid), true},
		{"on the way to it", "/usr/bin", string(interpret.CodeInvalid), false},
		{"past the ceiling", "/home/pi", "path_not_allowed", true},
	}
	for _, tt := range tests {
		volumes := []score.Volume{{Source: "/srv/link/data", Target: "/data", ReadOnly: tt.readOnly}, {Source: "/srv/link", Target: "/all", ReadOnly: tt.readOnly}, {Source: "named", Target: "/n"}}
		web := score.Container{Name: "web", Image: "example.org/web:1", Volumes: volumes}
		prepared := score.Container{Name: "web", Image: "example.org/web:1", Init: []score.InitContainer{{Name: "first", Volumes: volumes}}}
		job := score.Job{Name: "backup", Container: &score.JobContainer{Image: "example.org/web:1", Volumes: volumes}}
		for what, spec := range map[string]score.Spec{"container": web, "init": prepared, "job": job} {
			t.Run(tt.name+" "+what, func(t *testing.T) {
				r := newRig(t)
				r.runner.Ceiling = authority.Ceiling{Paths: []string{"/srv", "/mnt", "/var", "/etc", "/usr", "/data"}}
				r.dev.LoadImage("example.org/web:1", memory.Image{})
				r.dev.Symlink(tt.target, "/srv/link")
				r.dev.Symlink("/var/lib/continuo/", "/opt/here")
				st := r.apply(intent(1, manifest("m", score.Score{ID: "s", Spec: spec})))
				got := st.Manifests[0].Scores[0]
				if tt.code == "" {
					if got.Outcome == interpret.Refused {
						t.Errorf("%s %s: %s", got.Outcome, got.Code, got.Message)
					}
					return
				}
				if got.Outcome != interpret.Refused || string(got.Code) != tt.code || !strings.Contains(got.Message, "leads to") {
					t.Errorf("%s %s: %s", got.Outcome, got.Code, got.Message)
				}
			})
		}
	}
}
