package agent_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

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
}

func (e *ear) tell(v any) {
	e.t.Helper()
	b, err := score.Encode(v)
	if err != nil {
		e.t.Fatal(err)
	}
	e.said.Write(b)
	for name, b := range e.disk.Files() {
		e.said.WriteString(name + "\n")
		e.said.Write(b)
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
			e := &ear{rig: newRig(t)}
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
	e := &ear{rig: newRig(t)}
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
	e := &ear{rig: newRig(t)}
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
}
