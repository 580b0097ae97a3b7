package standard_test

import (
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/tool"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// TestTool: what is told of a program, whatever is wrong with it (G08, G51).
func TestTool(t *testing.T) {
	good := topology.ToolCopy{Path: "/usr/bin/podman", Version: "5.4.2", Works: true}
	dead := topology.ToolCopy{Path: "/usr/local/bin/podman", Why: "exit status 127: not found"}
	tests := []struct {
		name      string
		copies    []topology.ToolCopy
		version   score.VersionRange
		path      string
		condition topology.ToolCondition
		have      []string // field: and words that must be told
	}{
		{"missing", nil, ">= 4.4", "", topology.ToolMissing, []string{"condition:missing"}},
		{"as it should be", []topology.ToolCopy{good}, ">= 4.4", "/usr/bin/podman", topology.ToolPresent, nil},
		{"any", []topology.ToolCopy{good}, "", "", topology.ToolPresent, nil},
		{"too old", []topology.ToolCopy{good}, ">= 6", "", topology.ToolPresent, []string{"version:/usr/bin/podman (5.4.2)"}},
		{"elsewhere", []topology.ToolCopy{good}, "", "/opt/podman", topology.ToolPresent, []string{"path:/usr/bin/podman"}},
		{"a link to where it should be", []topology.ToolCopy{{Path: "/usr/bin/podman", Target: "/opt/podman", Version: "5.4.2", Works: true}}, "", "/opt/podman", topology.ToolPresent, nil},
		{"broken", []topology.ToolCopy{dead}, ">= 4.4", "", topology.ToolBroken, []string{"condition:exit status 127"}},
		{"a dead launcher before a good one", []topology.ToolCopy{dead, good}, ">= 4.4", "", topology.ToolShadowed,
			[]string{"condition:shadowed: /usr/local/bin/podman (does not work: exit status 127: not found), before /usr/bin/podman (5.4.2)"}},
		{"an old one before a good one", []topology.ToolCopy{{Path: "/usr/local/bin/podman", Version: "4.3.1", Works: true}, good}, ">= 4.4", "", topology.ToolPresent,
			[]string{"version:/usr/local/bin/podman (4.3.1), before /usr/bin/podman (5.4.2)"}},
		{"says no version", []topology.ToolCopy{{Path: "/usr/bin/podman", Works: true}}, ">= 4.4", "", topology.ToolPresent, []string{"version:no version"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.SetTool("podman", tt.copies...)
			s := score.Tool{Name: "podman", Version: tt.version, Path: tt.path}
			if tt.have == nil {
				r.settled(s)
				return
			}
			st := r.play(s)
			r.want(st, interpret.Drifted, topology.Code(interpret.CodeObserved))
			if o := read[tool.Observed](t, st); o.Condition != tt.condition || len(o.Copies) != len(tt.copies) {
				t.Errorf("got %+v", o)
			}
			if len(st.Changes) != len(tt.have) {
				t.Fatalf("got %+v, want %v", st.Changes, tt.have)
			}
			for i, want := range tt.have {
				field, words, _ := strings.Cut(want, ":")
				if c := st.Changes[i]; c.Field != field || !strings.Contains(c.Have, words) {
					t.Errorf("got %+v, want %s", c, want)
				}
			}
		})
	}
}
