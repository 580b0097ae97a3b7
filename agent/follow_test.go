package agent_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const stable = "registry.example.org/web:stable"

// following is a container that follows a tag.
func following() score.Score {
	return score.Score{ID: "web", Spec: score.Container{Name: "web", Image: stable, Pull: score.PullAlways}}
}

func imageDigest(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func (r *rig) container(t *testing.T) topology.ContainerState {
	t.Helper()
	st, err := r.dev.Containers().Container(t.Context(), "web")
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// asks counts how often the registry was asked.
func asks(rec *memory.Recorder) (n int) {
	for _, c := range rec.Calls() {
		if c.Op == memory.OpEnsureImage && c.Mutates {
			n++
		}
	}
	return n
}

// A tag that moves makes the container anew: about an hour later, and once (cases 77).
func TestTagIsFollowed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Publish(stable, memory.Image{Digest: imageDigest("1")})
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", following())))
		later(time.Minute)
		first := r.container(t)
		if first.Digest != imageDigest("1") {
			t.Fatalf("it runs %+v: %s", first, outcomes(f.last()))
		}
		rec := r.dev.Record()
		r.dev.Publish(stable, memory.Image{Digest: imageDigest("2")})
		later(45 * time.Minute)
		if now := r.container(t); now.ID != first.ID || asks(rec) > 0 {
			t.Errorf("asked %d times within the hour", asks(rec))
		}
		later(30 * time.Minute)
		second := r.container(t)
		if second.Digest != imageDigest("2") || asks(rec) != 1 {
			t.Errorf("after an hour, asked %d times, it runs %s: %s", asks(rec), second.Digest, outcomes(f.last()))
		}
		later(24 * time.Hour)
		if now := r.container(t); now.ID != second.ID {
			t.Error("it was made anew without a reason")
		}
		if n := asks(rec); n < 18 || n > 32 {
			t.Errorf("asked %d times in a day", n)
		}
		if st := f.last(); outcomes(st) != "m/web=unchanged " {
			t.Errorf("at the end: %s", outcomes(st))
		}
	})
}

// What a person has to allow is not done because a tag has moved, and is told with both digests (cases 77).
func TestTagThatMovedIsReported(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Publish(stable, memory.Image{Digest: imageDigest("1")})
		_, f, h, _ := r.running()
		offer(t, h, intent(1, under(score.Policy{OnDrift: score.DriftReport}, manifest("m", following()))))
		later(time.Minute)
		first := r.container(t)
		r.dev.Publish(stable, memory.Image{Digest: imageDigest("2")})
		later(2 * time.Hour)
		st := f.last().Manifests[0].Scores[0]
		if now := r.container(t); now.ID != first.ID || len(st.Changes) != 1 || st.Changes[0].Have != imageDigest("1") || st.Changes[0].Want != imageDigest("2") {
			t.Errorf("%s: %+v", st.Outcome, st.Changes)
		}
	})
}

// A registry that does not answer changes nothing: what runs goes on and is repaired, what comes after it is kept true,
// the score says so with the digest, and it is asked for with growing pauses (cases 80).
func TestRegistryDoesNotAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		offer(t, h, intent(1, manifest("m", following(), file("after", "/etc/after", "1", "web"))))
		later(time.Minute)
		first := r.container(t)
		r.dev.Offline(true)
		rec := r.dev.Record()
		later(75 * time.Minute)
		st := f.last()
		web := st.Manifests[0].Scores[1]
		if outcomes(st) != "m/after=unchanged m/web=failed/image_check " || !strings.Contains(web.Message, "cannot check image "+stable) ||
			!strings.Contains(web.Message, first.Digest) || web.NextTry.IsZero() {
			t.Fatalf("%s: %+v", outcomes(st), web)
		}
		if now := r.container(t); now.ID != first.ID {
			t.Error("the container was made anew")
		}
		r.dev.Put("/etc/after", "by hand")
		r.dev.StopUnit("web.service")
		later(time.Second)
		r.content("/etc/after", "1")
		if !r.active(t, "web.service") {
			t.Error("the container was stopped, and stays so while nobody can be asked")
		}
		later(10 * time.Hour)
		if n := asks(rec); n < 12 || n > 22 {
			t.Errorf("asked %d times", n)
		}
		r.dev.Offline(false)
		later(2 * time.Hour)
		if st := f.last(); outcomes(st) != "m/after=unchanged m/web=unchanged " || st.State != interpret.StateConverged {
			t.Errorf("at the end: %s", outcomes(st))
		}
	})
}

// Images that only we have fetched and nothing needs go when what came in their place holds; what is accepted, in force
// or would be rolled back to stays.
func TestImagesThatNothingNeeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Program("/usr/bin/broken", memory.Program{Exits: true, Status: 3})
		web := func(digit string) score.Score {
			ref := "registry.example.org/web:" + digit
			r.dev.Publish(ref, memory.Image{Digest: imageDigest(digit)})
			return score.Score{ID: "web", Spec: score.Container{Name: "web", Image: ref}}
		}
		want := func(when string, digits ...string) {
			t.Helper()
			var all []string
			for _, d := range digits {
				all = append(all, imageDigest(d))
			}
			if have := r.dev.Digests(); !slices.Equal(have, all) {
				t.Errorf("%s the device has %.9q", when, have)
			}
		}
		r.dev.LoadImage("registry.example.org/theirs:1", memory.Image{Digest: imageDigest("9")})
		_, _, h, _ := r.running(func(c *agent.Config) { c.Images = r.dev.Containers() })
		offer(t, h, intent(1, version(1, manifest("m", web("1")))))
		later(time.Minute)
		offer(t, h, intent(2, version(2, manifest("m", web("2"), brokenUnit("app", "app.service")))))
		later(10 * time.Minute)
		want("while the second is condemned", "1", "9")
		offer(t, h, intent(3, version(3, manifest("m", web("3")))))
		later(3 * time.Hour)
		want("when the third is good", "3", "9")
		offer(t, h, intent(4, version(4, manifest("m", file("a", "/etc/a", "1")))))
		later(3 * time.Hour)
		if r.container(t).State == "absent" {
			want("when nothing is wanted", "9")
		} else {
			want("while it still runs", "3", "9")
		}
	})
}
