package standard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

const appKey = "canary-7c1e"

func secretFile() score.File {
	return score.File{Path: "/etc/app.env", Mode: 0o600, Template: &score.Template{
		Text: "KEY={{ secret \"app-key\" | quoteShell }}\nHOST={{ .facts.hostname }}\nURL={{ .vars.url }}\n", Vars: map[string]string{"url": "x"}}}
}

// told is everything that a status and the gate were told of a play, as text.
func told(t *testing.T, st interpret.ScoreStatus, g *open) string {
	var all []string
	all = append(all, encoded(t, st))
	for _, a := range g.actions {
		all = append(all, encoded(t, a.Changes))
		if a.Text != nil {
			all = append(all, a.Text.Before.Text, a.Text.After.Text)
		}
	}
	return strings.Join(all, "\n")
}

// keyed is what is told of a content that is not for everybody.
func keyed(t *testing.T, device any, content string) interpret.Digest {
	return interpret.TellerOf(device).Tell(t.Context(), topology.SumOf([]byte(content)), false, "")
}

// withheld wants neither a secret, nor the content that holds it, nor a digest of that to be told.
func withheld(t *testing.T, said string, contents ...string) {
	t.Helper()
	for _, c := range contents {
		if strings.Contains(said, sum(c)) || strings.Contains(said, sum(c)[:12]) {
			t.Errorf("the digest of a secret content is told: %s", said)
		}
	}
	if strings.Contains(said, appKey) || strings.Contains(said, "KEY=") {
		t.Errorf("a secret is told: %s", said)
	}
}

// TestFileSecret: a file is filled in with a secret, which is in the file and nowhere else (G58, G59, G60, cases 149).
func TestFileSecret(t *testing.T) {
	r := newRig(t)
	s := secretFile()
	r.want(r.play(s), interpret.Failed, topology.CodeSecret)
	if len(r.List("/etc")) != 0 {
		t.Fatalf("something was changed: %v", r.List("/etc"))
	}

	r.SetSecret("app-key", appKey)
	first := "KEY='" + appKey + "'\nHOST=raspberrypi\nURL=x\n"
	g := &open{}
	st := r.with(s, g, nil)
	r.want(st, interpret.Changed, "")
	if got, _ := r.Read(s.Path); got != first {
		t.Fatalf("the file is %q", got)
	}
	withheld(t, told(t, st, g), first, appKey)
	o := read[file.Observed](t, r.settled(s))
	if o.Fingerprint != keyed(t, r, first).Fingerprint() || o.SHA256 != "" || o.Size != 0 || o.Mode != "0600" {
		t.Errorf("got %+v", o)
	}

	// Rotation is a difference of the content, told by fingerprints.
	r.SetSecret("app-key", appKey+"-2")
	second := strings.Replace(first, appKey, appKey+"-2", 1)
	g = &open{}
	st = r.with(s, g, nil)
	r.want(st, interpret.Changed, "")
	if c := st.Changes[0]; c.Field != "content" || c.Have != keyed(t, r, first).String() || c.Want != keyed(t, r, second).String() {
		t.Errorf("the change is %+v", c)
	}
	withheld(t, told(t, st, g), first, second)
	if got, _ := r.Read(s.Path); got != second {
		t.Errorf("the file is %q", got)
	}

	// Edited by hand, dry run, failed write, and a secret that is gone: nothing is told either.
	r.Put(s.Path, "edited "+appKey)
	st = r.table.Observe(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: s}})
	r.want(st, interpret.Drifted, "")
	withheld(t, encoded(t, st), "edited "+appKey, second)
	r.FailOnce(memory.OpWriteFile, "", topology.Faultf(topology.CodeNoSpace, "no space left"))
	g = &open{}
	st = r.with(s, g, nil)
	r.want(st, interpret.Failed, topology.CodeNoSpace)
	withheld(t, told(t, st, g), "edited "+appKey, second)
	r.DropSecret("app-key")
	g = &open{}
	st = r.with(s, g, nil)
	r.want(st, interpret.Failed, topology.CodeSecret)
	if got, _ := r.Read(s.Path); got != "edited "+appKey || st.Path != "/template" || len(g.actions) > 0 {
		t.Errorf("without the secret something was changed: %q, %s", got, st.Path)
	}
	withheld(t, told(t, st, g), "edited "+appKey)

	// What was there before, and is no text, or much too large, gives no digest away either.
	r.SetSecret("app-key", appKey)
	for _, content := range []string{"\x00\xff" + appKey, strings.Repeat(appKey, 1<<18)} {
		r.Put(s.Path, content)
		g = &open{}
		st = r.with(s, g, nil)
		r.want(st, interpret.Changed, "")
		withheld(t, told(t, st, g), content, first)
		r.settled(s)
	}
}

// The file is replaced only if it is still the one whose fingerprint was seen.
func TestFileSecretChangedMeanwhile(t *testing.T) { // G37
	r := newRig(t)
	r.SetSecret("app-key", appKey)
	s := secretFile()
	r.Put(s.Path, "seen")
	r.Chmod(s.Path, 0o600)
	n := 0
	st := r.with(s, gateFunc(func() {
		n++
		r.Put(s.Path, "somebody else's")
	}), nil)
	r.want(st, interpret.Failed, topology.CodeChanged)
	if got, _ := r.Read(s.Path); got != "somebody else's" || n != 1 {
		t.Errorf("the file is %q", got)
	}
}

func TestFileTemplate(t *testing.T) {
	r := newRig(t)
	s := score.File{Path: "/etc/f", Mode: 0o644, Template: &score.Template{Text: `{"host": {{ quoteJSON .facts.hostname }}}`}}
	r.want(r.play(s), interpret.Changed, "")
	if got, _ := r.Read("/etc/f"); got != `{"host": "raspberrypi"}` {
		t.Errorf("the file is %q", got)
	}
	o := read[file.Observed](t, r.settled(s))
	if o.SHA256 != sum(`{"host": "raspberrypi"}`) || o.Fingerprint != "" || o.Size == 0 {
		t.Errorf("got %+v", o)
	}
	s.Template = &score.Template{Text: "{{ .facts.osCodename }}{{ .facts.kernel }}"} // the model may not tell one of them
	st := r.play(s)
	if st.Outcome != interpret.Changed && (st.Code != interpret.Code(topology.CodeInvalid) || !strings.Contains(st.Message, "does not know its fact")) {
		t.Errorf("got %s %s", st.Code, st.Message)
	}
	// A device without secrets, or without blobs, says so.
	plain := interpret.Bind(r.FilesOnly(), file.Kind)
	for _, s := range []score.File{secretFile(), {Path: "/etc/f", Mode: 0o600, Blob: &score.BlobRef{SHA256: sum("x"), Size: 1}}} {
		st, err := plain.Play(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: s}, Cause: interpret.CauseIntent}, &open{})
		if err != nil || st.Outcome != interpret.Unsupported {
			t.Errorf("got %s %s, %v", st.Outcome, st.Message, err)
		}
	}
}

// TestContentFromIsForAuthors: a content that is still in the fleet repository is refused, and nothing is touched.
func TestContentFromIsForAuthors(t *testing.T) {
	r := newRig(t)
	r.Put(motd, "old")
	st := r.play(score.File{Path: motd, ContentFrom: "files/motd", Mode: 0o644})
	r.want(st, interpret.Failed, topology.CodeInvalid)
	if got, _ := r.Read(motd); got != "old" || !strings.Contains(st.Message, "publish resolves contentFrom") {
		t.Errorf("the file is %q: %s", got, st.Message)
	}
}

// TestFileBlob: a large content is fetched before it is needed, streamed, and known by its digest.
func TestFileBlob(t *testing.T) {
	r := newRig(t)
	large := strings.Repeat("0123456789abcdef", 1<<16)
	s := score.File{Path: "/srv/model", Mode: 0o644, Blob: &score.BlobRef{SHA256: sum(large), Size: int64(len(large))}}
	x := score.Score{ID: "x", Spec: s}
	if f := topology.FaultOf(r.table.Stocked(t.Context(), x)); f.Code != topology.CodeUnreachable {
		t.Errorf("stocked: %v", f)
	}
	if st := r.table.Prefetch(t.Context(), x); st.Outcome != interpret.Failed || st.Path != "/blob" || topology.Code(st.Code) != topology.CodeUnreachable {
		t.Errorf("prefetch: %s %s", st.Outcome, st.Message)
	}
	r.OfferBlob(large)
	if st := r.table.Prefetch(t.Context(), x); st.Outcome != "" {
		t.Fatalf("prefetch: %s", st.Message)
	}
	if err := r.table.Stocked(t.Context(), x); err != nil {
		t.Errorf("stocked: %v", err)
	}
	r.WithdrawBlob(s.Blob.SHA256) // the fleet is not needed any more
	rec := r.Record()
	r.want(r.play(s), interpret.Changed, "")
	if got, _ := r.Read(s.Path); got != large || !slices.Equal(ops(rec), []memory.Op{memory.OpWriteFile}) {
		t.Errorf("%d bytes, %v", len(got), ops(rec))
	}
	o := read[file.Observed](t, r.settled(s))
	if o.SHA256 != s.Blob.SHA256 || o.Size != s.Blob.Size {
		t.Errorf("got %+v", o)
	}
	// Where the file holds it, the blob is not needed at all.
	r.DropBlob(s.Blob.SHA256)
	if err := r.table.Stocked(t.Context(), x); err != nil {
		t.Errorf("stocked: %v", err)
	}
	if st := r.table.Prefetch(t.Context(), x); st.Outcome != "" {
		t.Errorf("prefetch: %s", st.Message)
	}
	r.settled(s)
	// Drift is undone from the blob; without one, the old content stays.
	r.Put(s.Path, "edited")
	r.want(r.play(s), interpret.Failed, topology.CodeUnreachable)
	if got, _ := r.Read(s.Path); got != "edited" {
		t.Errorf("the file is %q", got)
	}
	r.OfferBlob(large)
	r.want(r.play(s), interpret.Changed, "")
	r.settled(s)
}

// TestFileNormalized: what is declared not to count is no drift, and the raw digest is told (K16, X50).
func TestFileNormalized(t *testing.T) {
	s := score.File{Path: motd, Content: "a\nb\n", Mode: 0o644, Normalize: []score.Normalization{score.NormalizeCRLF, score.NormalizeTrailingNewline}}
	r := newRig(t)
	r.want(r.play(s), interpret.Changed, "")
	normal := sum("a\nb")
	for _, same := range []string{"a\nb\n", "a\r\nb\r\n", "a\nb", "a\r\nb\n\n\n"} {
		r.Put(motd, same)
		o := read[file.Observed](t, r.settled(s))
		if o.SHA256 != sum(same) || o.Normalized != normal {
			t.Errorf("%q: got %+v", same, o)
		}
		if got, _ := r.Read(motd); got != same {
			t.Errorf("%q was touched: %q", same, got)
		}
	}
	for _, other := range []string{"a\nb \n", "\na\nb\n", "a\rb", ""} {
		r.Put(motd, other)
		st := r.play(s)
		r.want(st, interpret.Changed, "")
		if c := st.Changes[0]; c.Have != sum(other) || c.Want != sum(s.Content) {
			t.Errorf("%q: got %+v", other, c)
		}
	}
	s.Normalize = nil
	r.Put(motd, "a\r\nb\r\n")
	r.want(r.play(s), interpret.Changed, "")
}

func TestFileOnce(t *testing.T) {
	s := score.File{Path: motd, Content: "first\n", Mode: 0o640, Create: score.CreateOnce}
	r := newRig(t)
	r.want(r.play(s), interpret.Changed, "")
	r.settled(s)
	r.Put(motd, "the app's own\n")
	r.settled(s)
	s.Content = "another first\n"
	o := read[file.Observed](t, r.settled(s))
	if got, _ := r.Read(motd); got != "the app's own\n" || o.SHA256 != "" || o.Fingerprint != keyed(t, r, got).Fingerprint() {
		t.Errorf("the file is %q, %+v", got, o)
	}
	r.Chmod(motd, 0o666) // rights are kept
	rec := r.Record()
	r.want(r.play(s), interpret.Changed, "")
	if got, _ := r.Read(motd); got != "the app's own\n" || !slices.Equal(ops(rec), []memory.Op{memory.OpSetAttributes}) {
		t.Errorf("the file is %q, %v", got, ops(rec))
	}
	r.Delete(motd)
	r.want(r.play(s), interpret.Changed, "")
	if got, _ := r.Read(motd); got != "another first\n" {
		t.Errorf("the file is %q", got)
	}
	g := &open{}
	if _, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: s}, interpret.CauseAbsent, g); err != nil || g.actions[0].Effect != interpret.Destroy {
		t.Errorf("its removal is %s, %v", g.actions[0].Effect, err)
	}
}

func TestFileAttributesOnly(t *testing.T) {
	s := score.File{Path: motd, AttributesOnly: true, Mode: 0o600, Owner: "pi"}
	r := newRig(t)
	st := r.play(s)
	r.want(st, interpret.Failed, topology.CodeInvalid)
	if !strings.Contains(st.Message, "manages only the rights of a file that is") || len(r.List("/etc")) > 0 {
		t.Errorf("got %s", st.Message)
	}
	r.Put(motd, "of a package")
	rec := r.Record()
	r.want(r.play(s), interpret.Changed, "")
	if got, _ := r.Read(motd); got != "of a package" || !slices.Equal(ops(rec), []memory.Op{memory.OpSetAttributes}) {
		t.Errorf("the file is %q, %v", got, ops(rec))
	}
	r.Put(motd, "of the next version")
	r.settled(s)
	s.Mode = 0 // and only the owner counts
	r.Chmod(motd, 0o4755)
	r.settled(s)
	r.Chown(motd, 0, 0)
	r.want(r.play(s), interpret.Changed, "")
	if o := read[file.Observed](t, r.settled(s)); o.Mode != "4755" || o.Owner != "pi" {
		t.Errorf("got %+v", o)
	}
	st, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: s}, interpret.CauseAbsent, &open{})
	if got, there := r.Read(motd); err != nil || st.Outcome != interpret.Changed || !there || got != "of the next version" {
		t.Errorf("removed with the score: %q, %s, %v", got, st.Message, err)
	}
}

// TestFileAbsent: to be gone is a state, and its effect is a removal.
func TestFileAbsent(t *testing.T) {
	s := score.File{Path: motd, State: score.Absent}
	r := newRig(t)
	r.settled(s)
	r.Put(motd, "x")
	g := &open{}
	st := r.with(s, g, nil)
	r.want(st, interpret.Changed, "")
	if got := fields(st); !slices.Equal(got, []string{"state remove"}) || !g.actions[0].Changes[0].Replaces || len(r.List("/etc")) > 0 {
		t.Errorf("changes are %v, left is %v", got, r.List("/etc"))
	}
	r.settled(s)
	r.Symlink("/x", motd)
	r.want(r.play(s), interpret.Failed, topology.CodeSymlink)
	g = &open{}
	if _, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: score.File{Path: "/etc/none", State: score.Absent}}, interpret.CauseAbsent, g); err != nil || g.actions[0].Effect != interpret.Nothing {
		t.Errorf("its removal is %s, %v", g.actions[0].Effect, err)
	}
}
