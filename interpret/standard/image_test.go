package standard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/container"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const moving = "registry.example.org/web:latest"

func webOf(pull score.Pull) score.Container {
	return score.Container{Name: "web", Image: moving, Pull: pull}
}

func prefetch(r rig, s score.Spec) interpret.ScoreStatus {
	return r.table.Prefetch(r.Context(), score.Score{ID: "x", Spec: s})
}

// The registry has another image under the same tag by now (cases 77).
func TestTagThatMoved(t *testing.T) {
	one, two := "sha256:"+strings.Repeat("1", 64), "sha256:"+strings.Repeat("2", 64)
	for _, tt := range []struct {
		name  string
		c     score.Container
		want  interpret.Outcome
		runs  string
		other string // what the status says of the registry
	}{
		{"missing", webOf(score.PullMissing), interpret.Unchanged, one, ""},
		{"default", webOf(""), interpret.Unchanged, one, ""},
		{"never", webOf(score.PullNever), interpret.Unchanged, one, ""},
		{"always", webOf(score.PullAlways), interpret.Changed, two, two},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.Publish(moving, memory.Image{Digest: one})
			if tt.c.Pull == score.PullNever {
				r.LoadImage(moving, memory.Image{Digest: one})
			}
			r.want(prefetch(r, tt.c), "", "")
			r.want(r.play(tt.c), interpret.Changed, "")
			first := read[container.Observed](t, r.settled(tt.c))
			r.Publish(moving, memory.Image{Digest: two})
			r.settled(tt.c) // nobody has asked yet

			r.want(prefetch(r, tt.c), "", "")
			before := read[container.Observed](t, r.settledOrDiffers(tt.c))
			if before.ID != first.ID || before.HereDigest != one || before.Digest != one {
				t.Errorf("to ask the registry has changed what runs: %+v", before)
			}
			if tt.other != "" && before.NewestDigest != tt.other {
				t.Errorf("the registry has %s, the state says %q", tt.other, before.NewestDigest)
			}
			rec := r.Record()
			st := r.play(tt.c)
			r.want(st, tt.want, "")
			if tt.want == interpret.Changed && !slices.Equal(fields(st), []string{"digest disrupt"}) {
				t.Errorf("changes: %v", st.Changes)
			}
			o := read[container.Observed](t, r.settled(tt.c))
			if o.Digest != tt.runs || (o.ID == first.ID) != (tt.want == interpret.Unchanged) {
				t.Errorf("now %+v, calls %v", o, rec.Mutations())
			}
			r.want(prefetch(r, tt.c), "", "") // the same again
			if again := read[container.Observed](t, r.settled(tt.c)); again.ID != o.ID {
				t.Error("it was made anew twice")
			}
		})
	}
}

// settledOrDiffers observes.
func (r rig) settledOrDiffers(s score.Spec) interpret.ScoreStatus {
	return r.table.Observe(r.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: s}})
}

// A restart after the registry was asked, and before the change was allowed, runs what ran (cases 77).
func TestAskingSwitchesNothing(t *testing.T) {
	r := newRig(t)
	c := webOf(score.PullAlways)
	r.want(prefetch(r, c), "", "")
	r.want(r.play(c), interpret.Changed, "")
	first := read[container.Observed](t, r.settled(c)).Digest
	r.Publish(moving, memory.Image{Digest: "sha256:" + strings.Repeat("2", 64)})
	r.want(prefetch(r, c), "", "")
	if err := r.Containers().Restart(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	if o := read[container.Observed](t, r.settledOrDiffers(c)); o.Digest != first {
		t.Errorf("it runs %s, and ran %s", o.Digest, first)
	}
}

// What cannot be asked is not gone, and what runs goes on (cases 79, 80).
func TestRegistryThatCannotBeAsked(t *testing.T) {
	r := newRig(t)
	c := webOf(score.PullAlways)
	c.Restart = score.RestartNever
	r.want(prefetch(r, c), "", "")
	r.want(r.play(c), interpret.Changed, "")
	o := read[container.Observed](t, r.settled(c))
	r.Offline(true)
	st := prefetch(r, c)
	r.want(st, interpret.Failed, topology.CodeImageCheck)
	if !strings.Contains(st.Message, "cannot check image "+moving) || !strings.Contains(st.Message, o.Digest) {
		t.Errorf("message: %s", st.Message)
	}
	if now := read[container.Observed](t, r.settled(c)); now.ID != o.ID {
		t.Error("it was made anew")
	}
	r.RemoveByHand("web") // and is repaired all the same, with what is here
	if st := r.play(c); st.Outcome != interpret.Changed {
		t.Errorf("%s %s", st.Outcome, st.Message)
	}
	other := c
	other.Image = "registry.example.org/other:1"
	r.want(prefetch(r, other), interpret.Failed, topology.CodeImage)
	r.want(r.play(other), interpret.Failed, topology.CodeImage)
	if now := read[container.Observed](t, r.settled(c)); now.Digest != o.Digest {
		t.Errorf("a new image that cannot be had has changed what runs: %+v", now)
	}
}

func TestPullNever(t *testing.T) {
	r := newRig(t)
	c := webOf(score.PullNever)
	r.want(prefetch(r, c), interpret.Failed, topology.CodeImage)
	r.want(r.play(c), interpret.Failed, topology.CodeImage)
	r.LoadImage(moving, memory.Image{})
	r.want(prefetch(r, c), "", "")
	r.want(r.play(c), interpret.Changed, "")
}

// A damaged image is fetched again as it was fetched first: who asks says so, to its own registry and to no other (94).
func TestDamagedPrivateImage(t *testing.T) {
	r := newRig(t)
	r.Publish(moving, memory.Image{Username: "fleet", Password: "c4n4ry"})
	r.SetSecret("registry-token", "c4n4ry")
	c := webOf("")
	c.Restart = score.RestartNever
	c.Registry = &score.Registry{Username: "fleet", Password: score.SecretRef{Secret: "registry-token"}}
	r.want(r.play(c), interpret.Changed, "")
	for range 2 {
		r.RemoveByHand("web")
		r.DamageImage(moving)
		st := r.play(c)
		r.want(st, interpret.Changed, "")
		if text := encoded(t, st) + fmt.Sprint(r.Config("web")); strings.Contains(text, "c4n4ry") {
			t.Errorf("the password is in %s", text)
		}
	}
	// Another registry does not get to see it.
	for image, want := range map[string]string{moving: "fleet", "other.example/x:1": "", "localhost/x": ""} {
		config := topology.ContainerConfig{Image: moving, Login: &topology.Login{Username: "fleet", Password: []byte("c4n4ry")}}
		if got, err := config.Request(image); got.Username != want || (len(got.Password) > 0) != (want != "") || (err == nil) == (image == "localhost/x") {
			t.Errorf("%s is asked for by %q, %v", image, got.Username, err)
		}
	}
	r.DropSecret("registry-token")
	r.RemoveByHand("web")
	r.DamageImage(moving)
	r.want(r.play(c), interpret.Failed, topology.CodeImageStore)
	// What nobody may fetch stays, and a person is told.
	r.SetSecret("registry-token", "c4n4ry")
	c.Pull = score.PullNever
	for range 2 {
		st := r.play(c)
		if r.want(st, interpret.Failed, topology.CodeImageStore); !strings.Contains(st.Message, "pull is never") {
			t.Errorf("message: %s", st.Message)
		}
	}
	c.Pull = ""
	r.want(r.play(c), interpret.Changed, "")
}

// A registry that wants to know who asks gets it from a secret of the device, which is in nothing that is reported (G58, G60).
func TestPrivateRegistry(t *testing.T) {
	const canary = "c4n4ry-t0ken"
	r := newRig(t)
	r.Publish(moving, memory.Image{Username: "fleet", Password: canary})
	c := webOf("")
	c.Restart = score.RestartNever
	r.want(prefetch(r, c), interpret.Failed, topology.CodeImage)
	c.Registry = &score.Registry{Username: "fleet", Password: score.SecretRef{Secret: "registry-token"}}
	st := prefetch(r, c)
	r.want(st, interpret.Failed, topology.CodeSecret)
	if !strings.Contains(st.Message, "cannot ask the registry of "+moving) || !strings.Contains(st.Message, "registry-token") {
		t.Errorf("message: %s", st.Message)
	}
	r.SetSecret("registry-token", "wrong-"+canary)
	st = prefetch(r, c)
	r.want(st, interpret.Failed, topology.CodeImage)
	r.SetSecret("registry-token", canary)
	r.want(prefetch(r, c), "", "")
	done := r.play(c)
	r.want(done, interpret.Changed, "")
	for _, text := range []string{encoded(t, st), encoded(t, done), encoded(t, r.settled(c)), strings.Join(r.Config("web").Env, " ")} {
		if strings.Contains(text, canary) {
			t.Errorf("the secret is in %s", text)
		}
	}
	r.DropSecret("registry-token") // of an image that is here no secret is needed
	r.settled(c)
	r.RemoveByHand("web")
	r.want(r.play(c), interpret.Changed, "")
}
