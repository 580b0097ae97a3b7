package fleet_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/continuo-fleet/continuo/agent/natslink"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/internal/trust"
	"github.com/continuo-fleet/continuo/internal/wire"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

func newKey(t *testing.T) (nkeys.KeyPair, string) {
	t.Helper()
	kp, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return kp, public
}

// A rooted rig is a fleet with a trust root.
type rooted struct {
	*rig
	key  nkeys.KeyPair // the root key
	last fleet.SignedRoot
}

func newRooted(t *testing.T, devices ...fleet.Device) *rooted {
	r := &rooted{rig: newRig(t, devices...)}
	r.key, _ = newKey(t)
	var err error
	if r.last, err = fleet.FirstRoot("home", r.key, r.keys, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PublishRoot(t.Context(), fleet.Root{}, r.last.Envelope); err != nil {
		t.Fatal(err)
	}
	return r
}

// draft is the next version, signed by the root key.
func (r *rooted) draft(change func(*fleet.Root)) fleet.Envelope {
	r.t.Helper()
	next := r.last.Draft()
	change(&next)
	e, err := next.Seal(1, r.key)
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// next publishes another version.
func (r *rooted) next(change func(*fleet.Root)) {
	r.t.Helper()
	e := r.draft(change)
	root, err := r.PublishRoot(r.t.Context(), r.last.Root, e)
	if err != nil {
		r.t.Fatal(err)
	}
	r.last = fleet.SignedRoot{Root: root, Envelope: e}
}

// follows makes the agent of a device follow the trust root.
func (r *rooted) follows(o *natslink.Options) {
	r.t.Helper()
	var err error
	if o.Trust, err = natslink.TrustRoot(r.last.Envelope, nil, func([]byte) error { return nil }); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rooted) by(signer wire.Signer) fleet.PublishOptions {
	return fleet.PublishOptions{Signer: signer, Root: r.last.Root}
}

func manifestA(content string) []score.Manifest {
	return []score.Manifest{manifest("a", "pi-1", file("f", "/etc/a", content))}
}

// What devices would refuse is not published, and the error names the key and what it may not: G16, G62.
func TestPublishUnderATrustRoot(t *testing.T) {
	r := newRooted(t, pi1)
	office, officeKey := newKey(t)
	asker, askerKey := newKey(t)
	late, lateKey := newKey(t)
	gone, goneKey := newKey(t)
	stranger, _ := newKey(t)
	r.next(func(n *fleet.Root) {
		n.Set(trust.Key{Name: "anna", Key: officeKey, Roles: []trust.Role{trust.RolePublisher}, Scope: trust.Scope{Devices: []string{"office.*"}}})
		n.Set(trust.Key{Name: "otto", Key: askerKey, Roles: []trust.Role{trust.RoleOperator}})
		n.Set(trust.Key{Name: "lena", Key: lateKey, Roles: []trust.Role{trust.RolePublisher}, NotAfter: time.Now().Add(-time.Hour)})
		n.Revoke(trust.Key{Key: goneKey})
	})
	r.device(pi1, r.follows)
	p, err := r.Publish(t.Context(), manifestA("1"), r.by(r.keys.Operator))
	if err != nil {
		t.Fatal(err)
	}
	r.wait(pi1, p[0].Generation)
	st, _, err := p[0].Envelope.Peek()
	if err != nil || st.Epoch != 2 {
		t.Errorf("signed under version %d, %v", st.Epoch, err)
	}
	revision := r.revision(pi1)
	for name, tt := range map[string]struct {
		signer wire.Signer
		want   string
	}{
		"another device": {office, "the key of anna may not sign documents of device main.pi-1 (out_of_scope)"},
		"another role":   {asker, "the key of otto is no publisher (out_of_scope)"},
		"too late":       {late, "the key of lena may sign only until"},
		"revoked":        {gone, "the key " + goneKey + " was revoked"},
		"unknown":        {stranger, "is not in version 2 of the trust root"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, hold := range []bool{false, true} {
				o := r.by(tt.signer)
				o.Hold = hold
				if _, err := r.Publish(t.Context(), manifestA("2"), o); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	if now := r.revision(pi1); now != revision {
		t.Error("something was stored")
	}
}

// A device that was told its two keys, and knows of no trust root, goes on.
func TestDeviceWithoutATrustRoot(t *testing.T) {
	r := newRooted(t, pi1)
	r.device(pi1)
	p, err := r.Publish(t.Context(), manifestA("1"), r.by(r.keys.Operator))
	if err != nil {
		t.Fatal(err)
	}
	r.wait(pi1, p[0].Generation)
	if _, err := r.Plan(t.Context(), pi1, "me", fleet.OperateOptions{Signer: r.keys.Operator, Root: r.last.Root}); err != nil {
		t.Error(err)
	}
}

// Roles of keys and what is asked for: exactly the declared pairs are let through, X46, X80, G75.
func TestOperateUnderATrustRoot(t *testing.T) {
	r := newRooted(t)
	signers := map[trust.Role]nkeys.KeyPair{}
	r.next(func(n *fleet.Root) {
		for _, role := range trust.Roles() {
			kp, public := newKey(t)
			signers[role] = kp
			n.Set(trust.Key{Name: "the " + string(role), Key: public, Roles: []trust.Role{role}})
		}
	})
	for role, signer := range signers {
		for _, verb := range interpret.Verbs() {
			op := interpret.Operation{ID: fleet.NewOperationID(), Device: "pi-1", Verb: verb}
			err := r.Operate(t.Context(), op, fleet.OperateOptions{Signer: signer, Root: r.last.Root, Replace: true})
			answers := verb == interpret.VerbApprove || verb == interpret.VerbReject
			may := role == trust.RoleApprover && answers || role == trust.RoleOperator && !answers
			switch {
			case may && err != nil:
				t.Errorf("%s, %s: %v", role, verb, err)
			case !may && (err == nil || !strings.Contains(err.Error(), "the key of the "+string(role)+" is no ")):
				t.Errorf("%s, %s: %v", role, verb, err)
			}
			if !may {
				continue
			}
			if st, stored := r.waiting(); st.Epoch != 2 || stored.ID != op.ID {
				t.Errorf("%s, %s: under version %d", role, verb, st.Epoch)
			}
		}
	}
	destroy := interpret.Operation{ID: "d", Device: "pi-1", Verb: interpret.VerbApprove, Approvals: []interpret.Approval{{Manifest: "m", Score: "s", Action: "remove", Effect: interpret.Destroy, Resources: []score.Resource{}}}}
	if err := r.Operate(t.Context(), destroy, fleet.OperateOptions{Signer: signers[trust.RoleApprover], Root: r.last.Root, Replace: true}); err == nil || !strings.Contains(err.Error(), "may not sign the destruction of data") {
		t.Errorf("got %v", err)
	}
}

// What a thief had signed is not signed again by somebody else: only what devices take is a base.
func TestNothingOfAThiefIsSignedAgain(t *testing.T) {
	r := newRooted(t, pi1)
	thief, thiefKey := newKey(t)
	r.next(func(n *fleet.Root) {
		n.Set(trust.Key{Name: "anna", Key: thiefKey, Roles: []trust.Role{trust.RolePublisher}})
	})
	d := r.device(pi1, r.follows)
	p, err := r.Publish(t.Context(), []score.Manifest{manifest("hers", "pi-1", file("f", "/etc/hers", "x"))}, r.by(thief))
	if err != nil {
		t.Fatal(err)
	}
	r.wait(pi1, p[0].Generation)
	r.next(func(n *fleet.Root) {
		k, err := n.Find("anna")
		if err != nil {
			t.Fatal(err)
		}
		n.Revoke(k)
		n.Spec.Restart = n.Metadata.Version
	})
	_, err = r.Publish(t.Context(), manifestA("1"), r.by(r.keys.Operator))
	if err == nil || !strings.Contains(err.Error(), "--anew") {
		t.Fatalf("got %v", err)
	}
	anew := r.by(r.keys.Operator)
	anew.Anew = true
	if p, err = r.Publish(t.Context(), manifestA("1"), anew); err != nil || len(p[0].Manifests) != 1 {
		t.Fatalf("got %+v, %v", p, err)
	}
	r.until(pi1, "taken", func(s fleet.DeviceState) bool {
		return s.Verdict == fleet.Converged && s.Status.Generation == p[0].Generation
	})
	if content, _ := d.Read("/etc/a"); content != "1" {
		t.Errorf("/etc/a is %q", content)
	}
	// Generations of a store that anybody filled do not count up to the end.
	if p[0].Generation > 10 {
		t.Errorf("generation %d", p[0].Generation)
	}
}

// Two publishers sign a document, and two operators an operation; one alone is told so.
func TestTwoSignatures(t *testing.T) {
	r := newRooted(t, pi1)
	second, secondKey := newKey(t)
	other, _ := newKey(t)
	r.next(func(n *fleet.Root) {
		n.Set(trust.Key{Name: "anna", Key: secondKey, Roles: []trust.Role{trust.RolePublisher, trust.RoleOperator}})
		n.Spec.Required.Documents, n.Spec.Required.Operations = 2, 2
	})
	r.device(pi1, r.follows)
	if _, err := r.Publish(t.Context(), manifestA("1"), r.by(r.keys.Operator)); err == nil || !strings.Contains(err.Error(), "signed by 1 keys of role publisher, 2 needed") || !strings.Contains(err.Error(), "--out") {
		t.Fatalf("got %v", err)
	}
	hold := r.by(r.keys.Operator)
	hold.Hold = true
	p, err := r.Publish(t.Context(), manifestA("1"), hold)
	if err != nil || p[0].Written {
		t.Fatalf("got %+v, %v", p, err)
	}
	e := p[0].Envelope
	if _, err := r.PublishSigned(t.Context(), e, r.last.Root, false); err == nil || !strings.Contains(err.Error(), "2 needed") {
		t.Fatalf("one signature: %v", err)
	}
	s, err := fleet.ReadSigned(e)
	if err != nil || s.For != "main.pi-1" || len(s.Assignment.Spec.Manifests) != 1 {
		t.Fatalf("got %+v, %v", s, err)
	}
	if err := fleet.MaySign(r.last.Root, other, s); err == nil || !strings.Contains(err.Error(), "is not in version 2") {
		t.Errorf("a stranger: %v", err)
	}
	if err := errors.Join(fleet.MaySign(r.last.Root, second, s), e.Sign(second)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PublishSigned(t.Context(), e, fleet.Root{}, false); err == nil || !strings.Contains(err.Error(), "no trust root") {
		t.Errorf("without a trust root: %v", err)
	}
	if _, err := r.PublishSigned(t.Context(), e, r.last.Root, true); err != nil {
		t.Fatal(err)
	}
	if states, err := r.Status(t.Context(), pi1); err != nil || states[0].Desired != 0 {
		t.Fatalf("a preview published: %+v, %v", states, err)
	}
	if _, err := r.PublishSigned(t.Context(), e, r.last.Root, false); err != nil {
		t.Fatal(err)
	}
	r.wait(pi1, p[0].Generation)
	if _, err := r.PublishSigned(t.Context(), e, r.last.Root, false); err == nil || !strings.Contains(err.Error(), "is published for it meanwhile") {
		t.Errorf("the same again: %v", err)
	}

	op := interpret.Operation{ID: "one", Device: "pi-1", Verb: interpret.VerbPlan, Actor: "anna"}
	o := fleet.OperateOptions{Signer: r.keys.Operator, Root: r.last.Root}
	if err := r.Operate(t.Context(), op, o); err == nil || !strings.Contains(err.Error(), "2 needed") {
		t.Errorf("got %v", err)
	}
	if e, err = fleet.SignOperation(op, o); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PublishSigned(t.Context(), e, r.last.Root, false); err == nil || !strings.Contains(err.Error(), "2 needed") {
		t.Errorf("got %v", err)
	}
	if err := e.Sign(second); err != nil {
		t.Fatal(err)
	}
	if _, err := r.PublishSigned(t.Context(), e, r.last.Root, false); err != nil {
		t.Fatal(err)
	}
	receipt, err := r.WaitReceipt(t.Context(), pi1, "one")
	if err != nil || receipt.Result != interpret.ResultDone {
		t.Errorf("got %+v, %v", receipt, err)
	}
	if _, err := r.PublishSigned(t.Context(), r.last.Envelope, r.last.Root, false); err == nil || !strings.Contains(err.Error(), "keys publish") {
		t.Errorf("a trust root: %v", err)
	}
}

// Versions are written once, in their order, and whoever writes rubbish in their place is written over.
func TestRootsInTheStore(t *testing.T) {
	r := newRooted(t)
	first := r.last
	rubbish := func(n uint64, b []byte) {
		t.Helper()
		if _, err := r.js().PublishMsg(t.Context(), &nats.Msg{Subject: wire.DesiredSubject(wire.RootKey(n)), Data: b}); err != nil {
			t.Fatal(err)
		}
	}
	thief, thiefKey := newKey(t)
	forged := first.Draft()
	forged.Spec.Keys[0].Key = thiefKey
	e, err := forged.Seal(1, thief)
	if err != nil {
		t.Fatal(err)
	}
	frame, err := e.Frame()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range [][]byte{[]byte("rubbish"), frame} {
		rubbish(2, b)
		if c, err := r.FollowRoots(t.Context(), first.Root); err != nil || len(c) != 0 {
			t.Errorf("followed %v, %v", c, err)
		}
	}
	if _, err := r.PublishRoot(t.Context(), first.Root, e); err == nil || !strings.Contains(err.Error(), "no device would follow it") {
		t.Errorf("what a thief signed: %v", err)
	}
	r.next(func(n *fleet.Root) { n.Spec.Required.Documents = 1 })
	second := r.last
	if _, err := r.PublishRoot(t.Context(), first.Root, second.Envelope); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if _, err := r.PublishRoot(t.Context(), first.Root, func() fleet.Envelope {
		n := first.Draft()
		n.Metadata.Name, n.Spec.Required.Approvals = "home", 1
		e, err := n.Seal(2, r.key)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}()); func() bool { _, ok := errors.AsType[*fleet.RootTakenError](err); return !ok }() {
		t.Errorf("another one: %v", err)
	}
	r.next(func(n *fleet.Root) { n.Spec.Required.Root = 1 })
	c, err := r.FollowRoots(t.Context(), first.Root)
	if err != nil || len(c) != 2 || c.Last().Metadata.Version != 3 {
		t.Fatalf("followed %d, %v", len(c), err)
	}
	// A store that was lost, or came back from a backup, is filled again from the files.
	rubbish(1, []byte("x"))
	rubbish(3, []byte("x"))
	if err := r.KeepRoots(t.Context(), slices.Concat(fleet.Chain{first}, c)); err != nil {
		t.Fatal(err)
	}
	if c, err := r.FollowRoots(t.Context(), first.Root); err != nil || len(c) != 2 {
		t.Errorf("followed %d, %v", len(c), err)
	}
}

// A control service announces what a new publisher signed, as soon as the trust root names him.
func TestServeFollowsTheTrustRoot(t *testing.T) {
	r := newRooted(t, pi1)
	r.serve(fleet.ServeOptions{Root: r.last.Root, Interval: time.Second})
	second, secondKey := newKey(t)
	r.next(func(n *fleet.Root) {
		n.Set(trust.Key{Name: "anna", Key: secondKey, Roles: []trust.Role{trust.RolePublisher}})
	})
	p, err := r.Publish(t.Context(), manifestA("1"), r.by(second))
	if err != nil {
		t.Fatal(err)
	}
	r.beatUntil(r.srv.ConnectDevice(pi1), pi1, "announced", func(c wire.ControlEnvelope) bool { return c.Generation == p[0].Generation })
}

// The versions are files: each follows the one before, and none is replaced by another.
func TestRootDir(t *testing.T) {
	r := newRooted(t)
	dir := fleet.RootDir(t.TempDir())
	if c, err := dir.Read(); err != nil || len(c) != 0 || c.Last().Metadata.Version != 0 {
		t.Fatalf("got %v, %v", c, err)
	}
	if _, ok, err := dir.Draft(); ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	e := r.draft(func(n *fleet.Root) { n.Spec.Required.Root = 1 })
	if err := errors.Join(dir.Keep(r.last), dir.Keep(r.last), dir.KeepDraft(e), dir.KeepDraft(e)); err != nil {
		t.Fatal(err)
	}
	draft, ok, err := dir.Draft()
	if err != nil || !ok || draft.Metadata.Version != 2 {
		t.Fatalf("got %v, %v", ok, err)
	}
	other, err := r.last.Seal(99, r.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Keep(fleet.SignedRoot{Root: r.last.Root, Envelope: other}); err == nil || !strings.Contains(err.Error(), "there already") {
		t.Errorf("replaced: %v", err)
	}
	if err := errors.Join(dir.Keep(draft), dir.DropDraft(), dir.DropDraft()); err != nil {
		t.Fatal(err)
	}
	if c, err := dir.Read(); err != nil || c.Last().Metadata.Version != 2 || len(c) != 2 {
		t.Fatalf("got %v, %v", c, err)
	}
	// A device and a command can begin with any version; one that is missing in between is an error.
	if err := fleet.WriteEnvelope(dir.File(4), e); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Read(); err == nil || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("got %v", err)
	}
}
