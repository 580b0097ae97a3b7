package fleet_test

import (
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

// actions writes a publication as "generation: name action generation, …".
func actions(p fleet.Publication) string {
	var parts []string
	for _, c := range p.Manifests {
		parts = append(parts, fmt.Sprintf("%s %s %d", c.Name, c.Action, c.Generation))
	}
	return fmt.Sprintf("%d: %s", p.Generation, strings.Join(parts, ", "))
}

// js is JetStream as the operator has it.
func (r *rig) js() jetstream.JetStream {
	r.t.Helper()
	js, err := jetstream.New(r.srv.ConnectUnbound())
	if err != nil {
		r.t.Fatal(err)
	}
	return js
}

// revision is that of what is published for d.
func (r *rig) revision(d fleet.Device) uint64 {
	r.t.Helper()
	s, err := r.js().Stream(r.t.Context(), wire.StreamDesired)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(r.t.Context(), wire.DesiredSubject(wire.DeviceKey(d)))
	if err != nil {
		r.t.Fatal(err)
	}
	return m.Sequence
}

// Manifests of one device come, change and go one by one; what does not change is not written (X15, X17).
func TestPublishMerges(t *testing.T) {
	r := newRig(t)
	a := func(content string) score.Manifest { return manifest("a", "pi-1", file("f", "/etc/a", content)) }
	b := manifest("b", "pi-1", file("f", "/etc/b", "b"))
	want := func(p []fleet.Publication, err error, written bool, text string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if len(p) != 1 || actions(p[0]) != text || p[0].Written != written || p[0].Device != pi1 {
			t.Errorf("got %+v, want %s", p, text)
		}
	}
	publish := func(ms ...score.Manifest) ([]fleet.Publication, error) {
		return r.Publish(t.Context(), ms, r.options())
	}
	p, err := publish(b, a("1"))
	want(p, err, true, "1: b added 1, a added 1")
	revision := r.revision(pi1)
	p, err = publish(a("1"), b)
	want(p, err, false, "1: a unchanged 1, b unchanged 1")
	if now := r.revision(pi1); now != revision {
		t.Errorf("revision %d after %d", now, revision)
	}
	dry := r.options()
	dry.DryRun = true
	p, err = r.Publish(t.Context(), []score.Manifest{a("2")}, dry)
	want(p, err, false, "2: a replaced 2")
	if now := r.revision(pi1); now != revision {
		t.Error("a dry run wrote")
	}
	p, err = publish(a("2"))
	want(p, err, true, "2: a replaced 2")
	p, err = r.Remove(t.Context(), pi1, "b", r.options())
	want(p, err, true, "3: b removed 1")
	if _, err := r.Remove(t.Context(), pi1, "b", r.options()); err == nil || !strings.Contains(err.Error(), `no manifest "b"`) {
		t.Errorf("got %v", err)
	}
}

// Everything is checked before anything is written (X105, cases 114, 115).
func TestPublishRefusals(t *testing.T) {
	r := newRig(t)
	fine := manifest("fine", "pi-10", file("f", "/etc/f", "x"))
	noise := make([]byte, 300<<10)
	crand.Read(noise)
	selector := manifest("class", "", file("f", "/etc/f", "x"))
	selector.Spec.Target = score.Target{Selector: &score.Selector{MatchLabels: map[string]string{"role": "kiosk"}}}
	tests := []struct {
		name      string
		manifests []score.Manifest
		want      []string
	}{
		{"invalid", []score.Manifest{fine, manifest("bad", "pi-1", file("f", "etc/f", "x"))}, []string{`manifest "bad"`, "/spec/scores/0/spec/path"}},
		{"several at once", []score.Manifest{manifest("bad", "pi-1", file("f", "etc/f", "x")), manifest("worse", "pi-1")}, []string{`manifest "bad"`, `manifest "worse"`}},
		{"selector", []score.Manifest{fine, selector}, []string{"class manifests come later"}},
		{"device id", []score.Manifest{fine, manifest("m", "b8:27", file("f", "/etc/f", "x"))}, []string{"b8:27"}},
		{"twice", []score.Manifest{fine, fine}, []string{"given twice"}},
		{"both own a file", []score.Manifest{fine, manifest("other", "pi-10", file("f", "/etc/f", "y"))}, []string{`"fine" and "other" both own file:/etc/f`}},
		{"too large", []score.Manifest{fine, manifest("big", "pi-1", file("f", "/etc/f", strings.Repeat("x", 5<<20)))}, []string{"bytes of manifests", "at most 4194304"}},
		{"too large when compressed", []score.Manifest{fine, manifest("big", "pi-1", file("f", "/etc/f", base64.StdEncoding.EncodeToString(noise)))}, []string{"bytes of manifests", "as carried", "at most 262144"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := r.Publish(t.Context(), tt.manifests, r.options())
			if err == nil || len(p) > 0 || !strings.Contains(err.Error(), "nothing was published") {
				t.Fatalf("got %+v, %v", p, err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
	if states, err := r.Status(t.Context()); err != nil || len(states) > 0 {
		t.Errorf("something was published: %+v, %v", states, err)
	}
	if _, err := r.Publish(t.Context(), []score.Manifest{fine}, fleet.PublishOptions{}); err == nil || !strings.Contains(err.Error(), "no operator key") {
		t.Errorf("got %v", err)
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Publish(t.Context(), []score.Manifest{fine}, fleet.PublishOptions{Signer: user}); err == nil || !strings.Contains(err.Error(), "connection keys (U) sign no documents") {
		t.Errorf("got %v", err)
	}
}

// What another key signed is not built upon.
func TestPublishOverAnotherKey(t *testing.T) {
	r := newRig(t)
	m := manifest("a", "pi-1", file("f", "/etc/a", "1"))
	r.publish(m)
	other, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Publish(t.Context(), []score.Manifest{m}, fleet.PublishOptions{Signer: other}); err == nil || !strings.Contains(err.Error(), "was not signed by this key") {
		t.Errorf("got %v", err)
	}
}

// A publisher that lost the race hears what the other one did, and has written nothing.
func TestStaleBase(t *testing.T) {
	r := newRig(t)
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	raced := false
	o := r.options()
	o.Signer = meanwhile{r.keys.Operator, func() {
		if !raced {
			raced = true
			r.publish(manifest("theirs", "pi-1", file("f", "/etc/theirs", "1")))
		}
	}}
	_, err := r.Publish(t.Context(), []score.Manifest{manifest("mine", "pi-1", file("f", "/etc/mine", "1"))}, o)
	var stale *fleet.StaleError
	if !errors.As(err, &stale) || stale.Now != 2 || stale.Device != pi1 || !strings.Contains(err.Error(), "theirs added") {
		t.Fatalf("got %v", err)
	}
	p := r.publish(manifest("mine", "pi-1", file("f", "/etc/mine", "1")))
	if actions(p[0]) != "3: mine added 1" {
		t.Errorf("got %s", actions(p[0]))
	}
}

// meanwhile is a signer during whose work something else happens.
type meanwhile struct {
	wire.Signer
	happens func()
}

func (m meanwhile) Sign(b []byte) ([]byte, error) {
	m.happens()
	return m.Signer.Sign(b)
}

// A store that was made again publishes above what the devices hold: their statuses and heartbeats say what that is
// (case 132, X24).
func TestPublishAfterLossOfTheStore(t *testing.T) {
	r := newRig(t, pi1)
	stop := r.serve(fleet.ServeOptions{})
	dv := r.device(pi1)
	for i := range 4 {
		r.publish(manifest("a", "pi-1", file("f", "/etc/a", fmt.Sprint(i))))
	}
	r.wait(pi1, 4)
	stop()
	r.srv.Stop()
	r.srv.Wipe()
	r.srv.Restart()
	r.srv.CreateStreams()
	r.serve(fleet.ServeOptions{})
	r.srv.Stop() // the device reports again as soon as it is connected to a server that has the streams
	r.srv.Restart()
	r.until(pi1, "reported again", func(s fleet.DeviceState) bool { return s.Reported() == 4 })
	if content, _ := dv.Read("/etc/a"); content != "3" {
		t.Errorf("the loss of the store changed the device: %q", content)
	}
	s := r.until(pi1, "pending", func(s fleet.DeviceState) bool { return s.Verdict == fleet.Pending && s.Status != nil })
	if !strings.Contains(s.Reason, "any more") {
		t.Errorf("got %s", s.Reason)
	}
	p := r.publish(manifest("a", "pi-1", file("f", "/etc/a", "again")))
	if actions(p[0]) != "5: a added 5" {
		t.Errorf("got %s", actions(p[0]))
	}
	if s := r.wait(pi1, 5); s.Verdict != fleet.Converged {
		t.Errorf("got %+v", s)
	}
}

// An older document, validly signed, is refused, and the device says so (H36, cases 132).
func TestReplayIsRefused(t *testing.T) {
	r := newRig(t, pi1)
	dv := r.device(pi1)
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "1")))
	s, err := r.js().Stream(t.Context(), wire.StreamDesired)
	if err != nil {
		t.Fatal(err)
	}
	old, err := s.GetLastMsgForSubject(t.Context(), wire.DesiredSubject(wire.DeviceKey(pi1)))
	if err != nil {
		t.Fatal(err)
	}
	r.publish(manifest("a", "pi-1", file("f", "/etc/a", "2")))
	r.wait(pi1, 2)
	if _, err := r.js().Publish(t.Context(), old.Subject, old.Data); err != nil {
		t.Fatal(err)
	}
	state := r.until(pi1, "refused", func(s fleet.DeviceState) bool { return s.Status != nil && len(s.Status.Problems) > 0 })
	p := state.Status.Problems
	if !slices.ContainsFunc(p, func(p interpret.Problem) bool { return p.Code == "generation_regressed" }) || state.Status.Generation != 2 || state.Status.State != interpret.StateConverged {
		t.Errorf("got %+v at generation %d, %s", p, state.Status.Generation, state.Status.State)
	}
	if content, _ := dv.Read("/etc/a"); content != "2" {
		t.Errorf("content %q", content)
	}
}

// Setup creates what is missing, tells what differs, and touches nothing that is there.
func TestSetup(t *testing.T) {
	r := newRig(t)
	if s, err := r.Setup(t.Context(), 0); err != nil || len(s.Created)+len(s.Differences) > 0 {
		t.Fatalf("on a whole server: %+v, %v", s, err)
	}
	js := r.js()
	s, err := js.Stream(t.Context(), wire.StreamActual)
	if err != nil {
		t.Fatal(err)
	}
	config := s.CachedInfo().Config
	config.AllowDirect, config.MaxMsgSize = false, 1000
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), wire.StreamJournal); err != nil {
		t.Fatal(err)
	}
	for i, created := range []int{1, 0} {
		got, err := r.Setup(t.Context(), 1)
		if err != nil || len(got.Created) != created || len(got.Differences) != 2 {
			t.Fatalf("time %d: %+v, %v", i+1, got, err)
		}
		if d := got.Differences[0].String(); d != "stream ACTUAL: max_msg_size is 1000, and must be 65536" {
			t.Errorf("got %s", d)
		}
	}
	if f := r.connect(r.srv.Controller); f != nil { // a user that may not
		if err := js.DeleteStream(t.Context(), wire.StreamJournal); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		begun := time.Now()
		if _, err := f.Setup(ctx, 1); err == nil || !strings.Contains(err.Error(), "not allowed by the server") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(begun); waited > 8*time.Second { // the limit of a request is 10 s
			t.Errorf("it waited %s for an answer that cannot come", waited)
		}
	}
}
