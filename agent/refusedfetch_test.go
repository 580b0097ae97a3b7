package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// Nothing is fetched for what the ceiling refuses: a manifest could else have a secret of the device sent to any registry as
// its password, images come from where none may, and the disk be filled with contents that nothing may hold (G58, H80).
func TestNothingIsFetchedForWhatIsRefused(t *testing.T) {
	scores := map[string]score.Score{
		"secret_not_allowed": {ID: "x", Spec: score.Container{Name: "web", Image: "evil.example.net/web:1", Restart: score.RestartAlways,
			Registry: &score.Registry{Username: "x", Password: score.SecretRef{Secret: "wifi-psk"}}}},
		"image_not_allowed": {ID: "x", Spec: score.Container{Name: "web", Image: "other.example.net/web:1", Restart: score.RestartAlways}},
		"path_not_allowed":  {ID: "x", Spec: score.File{Path: "/etc/x", Mode: 0o644, Blob: &score.BlobRef{SHA256: strings.Repeat("0", 64), Size: 10}}},
	}
	ceiling := authority.Ceiling{
		Paths: []string{"/srv"}, Images: []string{"evil.example.net"}, Secrets: []string{"app-*"},
	}
	fetches := func(rec *memory.Recorder) (ops []memory.Op) {
		for _, c := range rec.Calls() {
			switch c.Op {
			case memory.OpEnsureImage, memory.OpUseNewest, memory.OpFetchBlob, memory.OpImage, memory.OpHasBlob:
				ops = append(ops, c.Op)
			}
		}
		return ops
	}
	for code, s := range scores {
		t.Run(code, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.dev.SetSecret("wifi-psk", "canary-77")
				r.runner.Ceiling = ceiling
				rec := r.dev.Record()
				r.want(r.apply(intent(1, manifest("m", s))), "m/x=refused/"+code) // in the pass itself
				_, f, h, _ := r.running()
				offer(t, h, intent(2, manifest("m", s))) // in the background
				later(time.Hour)
				if got := outcomes(f.last()); got != "m/x=refused/"+code+" " {
					t.Errorf("got %s", got)
				}
				if ops := fetches(rec); len(ops) > 0 {
					t.Errorf("the device was asked for %v", ops)
				}
			})
		})
	}
	// A device that is told to be stricter asks no more whether a tag has moved.
	t.Run("a tag that was followed", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			r := newRig(t)
			s := score.Score{ID: "x", Spec: score.Container{Name: "web", Image: "other.example.net/web:1", Pull: score.PullAlways, Restart: score.RestartAlways}}
			r.want(r.apply(intent(1, manifest("m", s))), "m/x=changed")
			r.runner.Ceiling = ceiling
			rec := r.dev.Record()
			_, _, h, _ := r.running()
			offer(t, h, intent(1, manifest("m", s)))
			later(48 * time.Hour)
			if ops := fetches(rec); len(ops) > 0 {
				t.Errorf("the device was asked for %v", ops)
			}
		})
	})
}
