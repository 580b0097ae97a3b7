package agent

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/agent/authority"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Restore makes a file as a backup has it, with the consent of a person who stands before the
// device. What was done is kept as a receipt under name, which is used once, and what is there
// as a backup. An error is about the books or the backup.
func (r *Runner) Restore(ctx context.Context, backup, name string) (interpret.ScoreStatus, error) {
	began := now()
	st, path, err := r.restore(ctx, backup, authority.Plan, name)
	if err != nil {
		return st, err
	}
	var actions []interpret.ReceiptAction
	if st.Outcome != interpret.Unchanged {
		actions = append(actions, r.restored(path, st))
	}
	return st, r.keepByHand(name, interpret.VerbRestore, actions, !st.Outcome.Converged(), began)
}

// restored is a file that was made again from a backup, as receipts tell it, with who owns it.
func (r *Runner) restored(path string, st interpret.ScoreStatus) interpret.ReceiptAction {
	e, _ := r.Store.Owner("file:" + path)
	return interpret.ReceiptAction{Manifest: e.Manifest, Score: score.ID(e.Score), Kind: score.File{}.Kind(), Outcome: st.Outcome, Code: st.Code, Message: st.Message,
		Authority: st.Authority, Resources: []score.Resource{score.Resource("file:" + path)}, Changes: st.Changes, Backup: st.Backup}
}

// PreviewRestore compares a file with a backup, and changes nothing.
func (r *Runner) PreviewRestore(ctx context.Context, backup string) (interpret.ScoreStatus, error) {
	w, _, err := r.wishOf(backup)
	if err != nil {
		return interpret.ScoreStatus{}, err
	}
	if code, why, refused := r.Ceiling.Refuses(w.Score); refused {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: code, Message: why}, nil
	}
	ctx, _ = r.seal(ctx, w.Score.Spec, w.Score.Spec.Claims(), "")
	return r.Table.Observe(interpret.Unstated(ctx), w), nil
}

// restore makes a file as a backup has it. What is there is kept first. An error is about the
// books or the backup.
func (r *Runner) restore(ctx context.Context, backup string, given authority.Given, name string) (st interpret.ScoreStatus, path string, err error) {
	w, path, err := r.wishOf(backup)
	if err != nil {
		return st, "", err
	}
	if code, why, refused := r.Ceiling.Refuses(w.Score); refused {
		return interpret.ScoreStatus{Outcome: interpret.Refused, Code: code, Message: why}, path, nil
	}
	ctx, sealed := r.seal(ctx, w.Score.Spec, w.Score.Spec.Claims(), "")
	st, err = r.Table.Play(interpret.Unstated(ctx), w, restoring{r, path, given, name, len(sealed) > 0})
	return st, path, err
}

// wishOf is what a backup says of a file.
func (r *Runner) wishOf(backup string) (w interpret.Wish, path string, err error) {
	b, content, err := r.Store.ReadBackup(backup)
	if err != nil {
		return w, "", err
	}
	s := score.Score{ID: "restore", Spec: score.File{
		Path: b.Path, Content: string(content), Mode: score.Mode(b.Mode), Owner: strconv.Itoa(b.UID), Group: strconv.Itoa(b.GID),
	}}
	return interpret.Wish{Score: s, Cause: interpret.CauseIntent}, b.Path, nil // not what a manifest states: see interpret.Unstated
}

// restoring is the gate in front of a backup that is put back. The ledger does not change:
// whose the file is, and whether anybody wants it otherwise, is for the next pass to say.
type restoring struct {
	*Runner
	path  string
	given authority.Given
	name  string
	// sealed: what is there holds a secret, which its score can put there again, and no copy of it is kept.
	sealed bool
}

func (g restoring) Admit(ctx context.Context, a interpret.Action) (interpret.Verdict, error) {
	d := authority.Decide(authority.Question{
		Policy: authority.Effective(g.Ceiling.Policy, score.Policy{}, nil), Cause: a.Cause, Effect: a.Effect,
		Provenance: interpret.Foreign, Replaces: replaces(a), Given: g.given, Name: g.name,
	})
	if d.Decision != interpret.DecideApply {
		return interpret.Verdict{Outcome: outcomeOf(d), Code: d.Code, Message: d.Reason}, nil
	}
	name := ""
	if a.Found && !g.sealed {
		var err error
		name, err = g.backUpFile(ctx, g.path)
		if refusal := unkept(err); refusal != nil {
			return *refusal, nil
		}
	}
	var mark topology.Mark // none on what nobody will own
	if e, owned := g.Store.Owner("file:" + g.path); owned && g.given != authority.None {
		mark = markOf(e.Manifest, e.Score)
	}
	return interpret.Verdict{Allow: true, Authority: d.Authority, Backup: name, Mark: mark}, nil
}

func (restoring) Done(context.Context, interpret.Action, interpret.ScoreStatus) error { return nil }
func (restoring) Holds(context.Context, score.Score, topology.Mark) error             { return nil }

// markOf is the mark of a score; empty if there is none.
func markOf(manifest, id string) topology.Mark {
	if manifest == "" {
		return ""
	}
	return topology.Mark(manifest + "/" + id)
}

// backUp copies the files that the score claims into the store: those that are foreign, or all, if a
// person is about to overwrite what may be somebody's work. Content that cannot be kept is not overwritten.
func (g *gate) backUp(ctx context.Context, all bool) (name string, err error) {
	for _, c := range g.it.claims {
		path, ok := strings.CutPrefix(string(c), "file:")
		if !ok {
			continue
		}
		if _, owned := g.Store.Owner(string(c)); owned && !all {
			continue
		}
		if n, err := g.backUpFile(ctx, path); err != nil {
			return "", err
		} else if n != "" {
			name = n
		}
	}
	return name, nil
}

// edited reports whether a text may be another than the one that was written for a score last.
func edited(e store.Entry, t *interpret.Text) bool {
	var last score.Score
	if t == nil || len(e.Spec) == 0 || score.Decode(e.Spec, &last) != nil {
		return true
	}
	spec, ok := last.Spec.(score.File)
	if !ok {
		return true
	}
	sum, known := spec.ContentDigest()
	return !known || digestOf(t.Before.Text) != sum
}

// holdsSecret reports whether a score writes a file with a secret in it. The device can put that there
// again, so that no copy of it is kept: it would outlive the secret, and its name has a part of its digest.
func holdsSecret(s score.Score) bool {
	f, ok := s.Spec.(score.File)
	return ok && len(f.SecretNames()) > 0
}

// keepEdited copies the files that s brought into the store before they go, if somebody has edited them:
// no manifest could make that again. The last copy is named.
func (r *Runner) keepEdited(ctx context.Context, s score.Score) (name string, refusal *interpret.Verdict) {
	sums := map[string]string{} // by path; empty if nobody knows what it was: then it is kept
	switch spec := s.Spec.(type) {
	case score.File:
		if !spec.AttributesOnly && spec.State != score.Absent && !holdsSecret(s) && !r.isSealed("file:"+spec.Path, "") { // nothing goes otherwise
			sums[spec.Path], _ = spec.ContentDigest()
		}
	case score.Service:
		for path, text := range spec.Written() {
			sums[path] = digestOf(text)
		}
	}
	if r.Files == nil {
		return "", nil
	}
	for _, path := range slices.Sorted(maps.Keys(sums)) {
		st, err := r.Files.File(ctx, path)
		if err == nil && st.Type == topology.Regular && st.SHA256 != topology.Sum(sums[path]) {
			name, err = r.backUpFile(ctx, path)
		}
		if err != nil {
			return "", unkept(err)
		}
	}
	return name, nil
}

// unkept is what becomes of a change because what is there cannot be kept; nil if it can.
func unkept(err error) *interpret.Verdict {
	if err == nil {
		return nil
	}
	f := topology.FaultOf(err)
	return &interpret.Verdict{Outcome: interpret.Failed, Code: interpret.Code(f.Code),
		Message: "cannot back up what is there, so nothing was changed: " + f.Text}
}

// backUpFile keeps a regular file, if there is one, and names the copy.
func (r *Runner) backUpFile(ctx context.Context, path string) (string, error) {
	const limit = 64 << 20
	if r.Files == nil {
		return "", topology.Faultf(topology.CodeForeign, "nobody can read %s", path)
	}
	st, err := r.Files.File(ctx, path)
	if err != nil || st.Type != topology.Regular {
		return "", err
	}
	content, err := r.Files.Content(ctx, path, limit)
	if err != nil {
		return "", err
	}
	r.backedUp.Store(true)
	b, err := r.Store.SaveBackup(store.Backup{Path: path, Mode: st.Mode, UID: int(st.UID), GID: int(st.GID)}, content)
	return b.Name, err
}
