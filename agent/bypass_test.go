package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/score"
)

// X47: whoever signs what no validation has seen gets no further: what a device is told is judged again on the device, a
// document as a document and each score by itself.
func TestUnvalidatedDocuments(t *testing.T) {
	good := file("good", "/etc/good", "1")
	bad := func(path string) score.Score {
		return score.Score{ID: "bad", Spec: score.File{Path: path, Mode: 0o644, Content: "bad"}}
	}
	for name, in := range map[string]agent.Intent{
		"two scores of one id":          intent(1, manifest("m", good, file("good", "/etc/other", "2"))),
		"two manifests of one name":     intent(1, manifest("m", good), manifest("m", file("b", "/etc/b", "2"))),
		"an id that is a path":          intent(1, manifest("m", good, file("../x", "/etc/other", "2"))),
		"an id of nothing":              intent(1, manifest("m", good, file("", "/etc/other", "2"))),
		"a long id":                     intent(1, manifest("m", good, file(score.ID(strings.Repeat("x", 100_000)), "/etc/other", "2"))),
		"a name that is a path":         intent(1, manifest("../../etc", good)),
		"a name of nothing":             intent(1, manifest("", good)),
		"a long name":                   intent(1, manifest(strings.Repeat("x", 100_000), good)),
		"a name of two lines":           intent(1, manifest("a\nb", good)),
		"a name that moves the cursor":  intent(1, manifest("a\x1b[2J", good)),
		"a name of the fleet's subject": intent(1, manifest("a.>", good)),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				_, f, h, _ := r.running()
				err := h.Offer(in)
				if err == nil || len(err.Error()) > 300 {
					t.Errorf("it was accepted, or the error is long: %v", err)
				}
				later(time.Minute)
				for _, path := range []string{"/etc/good", "/etc/other", "/etc/b"} {
					if _, there := r.dev.Read(path); there {
						t.Errorf("%s was written", path)
					}
				}
				if st := f.last(); len(st.Manifests) > 0 || len(st.Problems) != 1 {
					t.Errorf("it is told as %+v %+v", st.Manifests, st.Problems)
				}
			})
		})
	}
	for _, path := range []string{"/etc/../root/x", "etc/x", "/etc/x/", "/etc//x", "/etc/continuo/agent.yaml", "/var/lib/continuo/x", "/proc/sys/x"} {
		r := newRig(t)
		st := r.apply(intent(1, manifest("m", good, bad(path))))
		r.want(st, "m/bad=refused/invalid_spec m/good=changed")
	}
}
