package agent_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

func sha256Of(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// An ear hears all that is told of a device: its plans, statuses and receipts, and its books as they are on the disk.
type ear struct {
	*rig
	said strings.Builder
	all  bool // also of what backups hold
}

func (e *ear) tell(v any) {
	e.t.Helper()
	b, err := score.Encode(v)
	if err != nil {
		e.t.Fatal(err)
	}
	e.said.Write(b)
	for name, b := range e.disk.Files() {
		if e.said.WriteString(name + "\n"); !strings.HasPrefix(name, "backups/") || e.all {
			e.said.Write(b)
		}
	}
}

func (e *ear) play(in agent.Intent) (st interpret.DeviceStatus) {
	e.t.Helper()
	p, err := e.runner.Plan(e.t.Context(), in)
	if err != nil {
		e.t.Fatal(err)
	}
	e.tell(p)
	st, err = e.runner.Observe(e.t.Context(), in)
	if err != nil {
		e.t.Fatal(err)
	}
	e.tell(st)
	st = e.apply(in)
	e.tell(st)
	return st
}

// heardDigests fails if the digest of a content was told. The content itself is in its backup, and its digest beside that.
func (e *ear) heardDigests(contents ...string) {
	e.t.Helper()
	all := e.said.String()
	for _, c := range contents {
		sum := sha256.Sum256([]byte(c))
		for _, what := range []string{hex.EncodeToString(sum[:4]), string(sum[:])} {
			if at := strings.Index(all, what); at >= 0 {
				e.t.Errorf("told of %q is %q, in %q", c, what, all[max(0, at-200):min(len(all), at+80)])
			}
		}
	}
}

// heard fails if a content, or a digest of it, was told.
func (e *ear) heard(contents ...string) {
	e.t.Helper()
	all := e.said.String()
	for _, c := range contents {
		sum := sha256.Sum256([]byte(c))
		for _, what := range []string{c, hex.EncodeToString(sum[:4]), string(sum[:])} {
			if at := strings.Index(all, what); at >= 0 {
				e.t.Errorf("told of %q is %q, in %q", c, what, all[max(0, at-200):min(len(all), at+80)])
			}
		}
	}
}

// What a score with a secret wrote is no less a secret because the next score names none: neither it nor a digest of it, which
// can be tried out, is told when another content comes in its place, when only its rights are managed, when it is to be gone, when
// that fails half way, or when a person has changed it or brings an old copy back (G58, cases 149).
func TestSecretIsKeptWhenItsScoreChanges(t *testing.T) {
	const secret, held, edited = "canary-52be", "KEY=canary-52be\n", "by hand canary-52be"
	with := score.File{Path: "/etc/x", Mode: 0o600, Template: &score.Template{Text: "KEY={{ secret \"key\" }}\n"}}
	blob := strings.Repeat("b", 100)
	next := map[string]score.File{
		"content":        {Path: "/etc/x", Mode: 0o600, Content: "no secret\n"},
		"public":         {Path: "/etc/x", Mode: 0o644, Content: "no secret\n"},
		"normalized":     {Path: "/etc/x", Mode: 0o600, Content: "no secret\n", Normalize: []score.Normalization{score.NormalizeCRLF}},
		"another text":   {Path: "/etc/x", Mode: 0o600, Template: &score.Template{Text: "{{ .vars.a }}", Vars: map[string]string{"a": "no secret\n"}}},
		"blob":           {Path: "/etc/x", Mode: 0o600, Blob: &score.BlobRef{SHA256: sha256Of(blob), Size: int64(len(blob))}},
		"attributesOnly": {Path: "/etc/x", Mode: 0o640, AttributesOnly: true},
		"once":           {Path: "/etc/x", Mode: 0o640, Content: "no secret\n", Create: score.CreateOnce},
		"absent":         {Path: "/etc/x", State: score.Absent},
	}
	for name, then := range next {
		t.Run(name, func(t *testing.T) {
			e := &ear{rig: newRig(t), all: true}
			e.dev.SetSecret("key", secret)
			e.dev.OfferBlob(blob)
			in := func(g uint64, id score.ID, f score.File) agent.Intent {
				m := manifest("m", score.Score{ID: id, Spec: f})
				m.Metadata.Generation = g
				return intent(g, m)
			}
			e.want(e.play(in(1, "x", with)), "m/x=changed")
			for _, op := range []memory.Op{memory.OpWriteFile, memory.OpSetAttributes, memory.OpRemoveFile} {
				e.dev.Fail(op, "file:/etc/x", topology.Faultf(topology.CodeIO, "bad sector"))
			}
			if st := e.play(in(2, "y", then)); st.State == interpret.StateConverged {
				t.Fatal("it did not fail")
			}
			e.dev.Put("/etc/x", edited)
			e.play(in(2, "y", then))
			e.restart() // what was known in memory only is not any more
			e.dev.Heal()
			e.tell(e.confirm(in(2, "y", then))) // and a person says that it may be changed
			e.play(in(2, "y", then))
			e.heard(secret, held, edited)
			if st := e.play(in(3, "x", with)); st.State != interpret.StateConverged { // and back
				t.Fatalf("%+v", st)
			}
			e.play(in(4, "y", then))
			e.play(intent(5, manifest("other", file("z", "/etc/z", "1")))) // collected
			e.heard(secret, held, edited)
		})
	}
}

// As soon as another content is there, it is told of as of any other.
func TestSealEnds(t *testing.T) {
	r := newRig(t)
	r.dev.SetSecret("key", "canary-52be")
	with := score.Score{ID: "x", Spec: score.File{Path: "/etc/x", Mode: 0o600, Template: &score.Template{Text: "KEY={{ secret \"key\" }}\n"}}}
	without := score.Score{ID: "x", Spec: score.File{Path: "/etc/x", Mode: 0o600, Content: "no secret\n"}}
	told := func(st interpret.DeviceStatus) bool {
		s, _ := scoreOf(st, "m", "x")
		return strings.Contains(string(s.Observed), sha256Of("no secret\n"))
	}
	r.want(r.apply(intent(1, manifest("m", with))), "m/x=changed")
	r.want(r.apply(intent(2, manifest("m", without))), "m/x=changed")
	st := r.apply(intent(2, manifest("m", without)))
	if r.want(st, "m/x=unchanged"); !told(st) {
		t.Errorf("%+v", st)
	}
	r.want(r.apply(intent(3, manifest("m", with))), "m/x=changed")
	r.dev.Put("/etc/x", "no secret\n") // a person did it
	r.apply(intent(4, manifest("m", without)))
	if st := r.apply(intent(4, manifest("m", without))); !told(st) {
		t.Errorf("%+v", st)
	}
	if notes := r.store.Notes("sealed/"); len(notes) > 0 {
		t.Errorf("left are %v", notes)
	}
	r.want(r.apply(intent(5, manifest("m", with))), "m/x=changed")
	if notes := r.store.Notes("sealed/"); len(notes) != 1 {
		t.Errorf("noted are %v", notes)
	}
	r.apply(intent(6, manifest("m", file("a", "/etc/a", "1"))))
	r.gone("/etc/x")
	if notes := r.store.Notes("sealed/"); len(notes) > 0 {
		t.Errorf("left are %v", notes)
	}
}

// Who brings an old copy of a file back is not told what it held meanwhile (G58).
func TestRestoreOverASecret(t *testing.T) {
	const secret, held = "canary-52be", "KEY=canary-52be\n"
	e := &ear{rig: newRig(t), all: true}
	e.dev.SetSecret("key", secret)
	e.dev.Put("/etc/x", "as it came")
	with := score.Score{ID: "x", Spec: score.File{Path: "/etc/x", Mode: 0o600, Template: &score.Template{Text: "KEY={{ secret \"key\" }}\n"}}}
	e.tell(e.confirm(intent(1, manifest("m", with))))
	kept, err := e.store.Backups()
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept are %v, %v", kept, err)
	}
	seen, err := e.runner.PreviewRestore(t.Context(), kept[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	e.tell(seen)
	st, err := e.runner.Restore(t.Context(), kept[0].Name, "by-hand")
	if err != nil || st.Outcome != interpret.Changed {
		t.Fatalf("%+v, %v", st, err)
	}
	e.tell(st)
	e.content("/etc/x", "as it came")
	e.heard(secret, held)
}

// A unit file that a template with a secret made is somebody else's to the service that runs it, which tells no digest of it
// either, nor a drop-in's (G58).
func TestUnitThatHoldsASecret(t *testing.T) {
	const secret = "canary-52be"
	e := &ear{rig: newRig(t), all: true}
	e.dev.SetSecret("key", secret)
	text := func(path, text string) score.Spec {
		return score.File{Path: path, Mode: 0o640, Template: &score.Template{Text: text}}
	}
	const unit, dropIn = "[Service]\nExecStart=/bin/app\nEnvironment=KEY={{ secret \"key\" }}\n", "[Service]\nEnvironment=OTHER={{ secret \"key\" }}\n"
	m := manifest("m",
		score.Score{ID: "a", Spec: text("/etc/systemd/system/app.service", unit)},
		score.Score{ID: "b", Spec: text("/etc/systemd/system/app.service.d/10-key.conf", dropIn)},
		score.Score{ID: "c", After: []score.ID{"a", "b"}, Spec: score.Service{Unit: "app.service", State: score.Running, RestartOn: []score.ID{"a", "b"}}})
	e.want(e.play(intent(1, m)), "m/a=changed m/b=changed m/c=changed")
	e.play(intent(1, m))
	e.dev.Put("/etc/systemd/system/app.service.d/10-key.conf", "[Service]\nEnvironment=OTHER="+secret+"\n# by hand\n")
	e.play(intent(1, m))
	filled := func(s string) string { return strings.ReplaceAll(s, "{{ secret \"key\" }}", secret) }
	e.heard(secret, filled(unit), filled(dropIn), "[Service]\nEnvironment=OTHER="+secret+"\n# by hand\n")
	e.dev.Chmod("/etc/systemd/system/app.service", 0o644) // by hand, and it is a secret all the same
	m.Spec.Policy.OnDrift = score.DriftReport
	if st := e.play(intent(2, m)); st.State == interpret.StateConverged {
		t.Error("nobody saw it")
	}
	e.heard(secret, filled(unit))
}

// A service whose unit file takes the place of one with a secret keeps no copy of that, tells no digest of it, and leaves
// nothing noted of it when it is true (G58).
func TestServiceTakesThePlaceOfASecret(t *testing.T) {
	const secret, unit = "canary-52be", "[Service]\nExecStart=/bin/app\nEnvironment=KEY={{ secret \"key\" }}\n"
	e := &ear{rig: newRig(t), all: true}
	e.dev.SetSecret("key", secret)
	in := func(g uint64, s score.Score) agent.Intent {
		m := manifest("m", s)
		m.Metadata.Generation = g
		return intent(g, m)
	}
	e.want(e.play(in(1, score.Score{ID: "a", Spec: score.File{Path: "/etc/systemd/system/app.service", Mode: 0o640, Template: &score.Template{Text: unit}}})), "m/a=changed")
	then := score.Score{ID: "b", Spec: score.Service{Unit: "app.service", State: score.Running, UnitFile: "[Service]\nExecStart=/bin/app\n"}}
	e.dev.Fail(memory.OpDefine, "unit:app.service", topology.Faultf(topology.CodeIO, "bad sector"))
	e.play(in(2, then))
	e.restart()
	if notes := e.store.Notes("sealed/"); len(notes) != 1 {
		t.Errorf("noted are %v", notes)
	}
	e.dev.Heal()
	e.tell(e.confirm(in(2, then)))
	e.want(e.play(in(2, then)), "m/b=unchanged")
	e.heard(secret, strings.ReplaceAll(unit, "{{ secret \"key\" }}", secret))
	if notes := e.store.Notes("sealed/"); len(notes) > 0 {
		t.Errorf("left are %v", notes)
	}
}

// What somebody else keeps in files that are not for everybody, and what nobody but a manifest says of our own, may be as
// short as a PIN: whoever reads statuses, plans and receipts gets no digest to try guesses on. What is told is the same in
// all of them, so that consent to what was seen counts (G58, G32).
func TestForeignPrivateContents(t *testing.T) {
	const pin, psk, unit, dropIn, edited, back = "4711\n", "psk=hunter2\n", "[Service]\nExecStart=/bin/app --pin 4711\n", "[Service]\nEnvironment=PIN=4711\n", "4712\n", "4713\n"
	const wanted = "0815\n"
	private := func(e *ear, path, content string) {
		e.dev.Put(path, content)
		e.dev.Chmod(path, 0o600)
	}
	blob := strings.Repeat("b", 100)
	files := map[string]score.File{
		"content":        {Path: "/etc/pin", Mode: 0o600, Content: wanted},
		"public":         {Path: "/etc/pin", Mode: 0o644, Content: wanted},
		"normalized":     {Path: "/etc/pin", Mode: 0o600, Content: wanted, Normalize: []score.Normalization{score.NormalizeCRLF}},
		"template":       {Path: "/etc/pin", Mode: 0o600, Template: &score.Template{Text: "{{ .vars.a }}", Vars: map[string]string{"a": wanted}}},
		"blob":           {Path: "/etc/pin", Mode: 0o600, Blob: &score.BlobRef{SHA256: sha256Of(blob), Size: int64(len(blob))}},
		"attributesOnly": {Path: "/etc/pin", Mode: 0o640, AttributesOnly: true},
		"once":           {Path: "/etc/pin", Mode: 0o640, Content: wanted, Create: score.CreateOnce},
		"absent":         {Path: "/etc/pin", State: score.Absent},
	}
	for name, f := range files {
		t.Run(name, func(t *testing.T) {
			e := &ear{rig: newRig(t)}
			e.dev.OfferBlob(blob)
			private(e, "/etc/pin", pin)
			in := func(g uint64) agent.Intent {
				m := manifest("m", score.Score{ID: "x", Spec: f})
				m.Metadata.Generation = g
				return intent(g, m)
			}
			e.play(in(1))
			e.tell(e.confirm(in(1))) // it is overwritten, after a backup
			e.play(in(1))
			private(e, "/etc/pin", edited) // our own, edited
			e.play(in(1))
			private(e, "/etc/pin", edited)
			e.tell(e.confirm(in(1)))
			private(e, "/etc/pin", back)
			kept, err := e.store.Backups()
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range kept { // and back
				seen, err := e.runner.PreviewRestore(t.Context(), b.Name)
				if err != nil {
					t.Fatal(err)
				}
				e.tell(seen)
				st, err := e.runner.Restore(t.Context(), b.Name, "by-hand-"+string(rune('a'+i)))
				if err != nil || !st.Outcome.Converged() {
					t.Fatalf("%+v, %v", st, err)
				}
				e.tell(st)
			}
			if f.State != score.Absent && !f.AttributesOnly && f.Create == "" && len(kept) == 0 {
				t.Error("nothing was kept")
			}
			e.play(intent(2, manifest("other", file("z", "/etc/z", "1")))) // collected, or given up
			e.heardDigests(pin, edited, back)
		})
	}
	t.Run("unit", func(t *testing.T) {
		e := &ear{rig: newRig(t)}
		private(e, "/etc/systemd/system/app.service", unit)
		private(e, "/etc/systemd/system/app.service.d/a.conf", dropIn)
		s := score.Service{Unit: "app.service", UnitFile: "[Service]\nExecStart=/bin/app\n", DropIns: map[string]string{"a": "[Service]\nEnvironment=A=1\n"}}
		in := intent(1, manifest("m", score.Score{ID: "x", Spec: s}))
		e.play(in)
		e.tell(e.confirm(in))
		if st := e.play(in); st.State != interpret.StateConverged {
			t.Errorf("%+v", st)
		}
		private(e, "/etc/systemd/system/app.service", psk+unit)
		e.play(in)
		e.heardDigests(unit, dropIn, psk+unit)
	})
	t.Run("looked at", func(t *testing.T) { // a unit that the score brings nothing to
		e := &ear{rig: newRig(t)}
		private(e, "/etc/systemd/system/app.service", unit)
		e.play(intent(1, manifest("m", score.Score{ID: "x", Spec: score.Service{Unit: "app.service", Enabled: new(false)}})))
		e.heardDigests(unit)
	})
}

// Consent to what was seen of a private file counts as long as it is that, and no longer: what is compared is fingerprints (G32).
func TestConsentToPrivateContents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		_, f, h, _ := r.running()
		r.dev.Put("/etc/pin", "4711\n")
		r.dev.Chmod("/etc/pin", 0o600)
		offer(t, h, intent(1, manifest("m", score.Score{ID: "x", Spec: score.File{Path: "/etc/pin", Mode: 0o600, Content: "0815\n"}})))
		later(time.Second)
		seen := f.plan(t, h)
		if c := seen.Actions[0].Changes[0]; c.Field != "content" || !strings.HasPrefix(c.Have, interpret.Keyed) || c.Want != sha256Of("0815\n") {
			t.Errorf("planned is %+v", c)
		}
		r.dev.Put("/etc/pin", "4712\n")
		if got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: seen.ID}); got.Code != interpret.CodePlanChanged {
			t.Errorf("%+v", got)
		}
		r.content("/etc/pin", "4712\n")
		r.dev.Put("/etc/pin", "4711\n")
		got := f.ask(t, h, interpret.Operation{Verb: interpret.VerbInstall, Plan: seen.ID})
		if a := got.Actions[0]; got.Result != interpret.ResultDone || a.Before != seen.Actions[0].Changes[0].Have || a.After != sha256Of("0815\n") || a.Diff != "" {
			t.Errorf("%+v", got)
		}
		r.content("/etc/pin", "0815\n")
	})
}
