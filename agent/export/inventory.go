package export

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// An Entry is one thing that is on the device.
type Entry struct {
	// Path of it.
	Path string `json:"path"`
	// Type of it: regular, directory, symlink or special.
	Type topology.FileType `json:"type"`
	// Class of the path: only what is versionable is exported.
	Class score.PathClass `json:"class"`
	// Size in bytes, of a file.
	Size int64 `json:"size,omitzero"`
	// SHA256 of a file that everybody may read.
	SHA256 string `json:"sha256,omitempty"`
	// Fingerprint of another one: it tells whether it changed, and nothing else.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Mode as octal text.
	Mode string `json:"mode"`
	// Owner and group, by name if they have one.
	Owner string `json:"owner"`
	// Group of it.
	Group string `json:"group"`
	// Target of a symbolic link.
	Target string `json:"target,omitempty"`
	// Manifest that owns it, by the books; empty: it is foreign.
	Manifest string `json:"manifest,omitempty"`
	// Score of the manifest.
	Score string `json:"score,omitempty"`
	// Provenance is created, adopted or foreign.
	Provenance string `json:"provenance"`
	// Note says what was not looked at, and why.
	Note string `json:"note,omitempty"`
}

// Inventory lists what is at some paths and below, sorted by path. What is not read at all, such as what programs write
// while they run, has no digest. Its limits are those of Export, but for files that are too large to be exported, which
// are listed without a digest.
func (r *Reader) Inventory(ctx context.Context, paths []string) ([]Entry, error) {
	var last error
	for range tries {
		out, err := r.inventory(ctx, paths)
		if last = err; err == nil || topology.FaultOf(err).Code != topology.CodeChanged {
			return out, err
		}
	}
	return nil, &Refusal{[]Finding{{Path: strings.Join(paths, " "), Code: CodeChanged, Why: fmt.Sprintf("it was read %d times, and each time: %v", tries, last)}}}
}

func (r *Reader) inventory(ctx context.Context, paths []string) ([]Entry, error) {
	x := r.begin()
	all := map[string]Entry{}
	for _, p := range paths {
		if err := x.list(ctx, all, p, true); err != nil {
			return nil, x.end(err)
		}
	}
	if err := x.snap.Settle(ctx); err != nil {
		return nil, err
	}
	if len(x.refused) > 0 {
		return nil, &Refusal{x.refused}
	}
	out := make([]Entry, 0, len(all))
	for _, e := range all {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// list adds what is at p, and below it. What comes with it that programs make is listed and not entered.
func (x *reading) list(ctx context.Context, all map[string]Entry, p string, named bool) error {
	if _, known := all[p]; known {
		return nil
	}
	st, err := x.snap.Look(ctx, p)
	switch {
	case err != nil:
		return x.unread(p, "", err)
	case st.Type == topology.Absent:
		return x.refuse(Finding{p, "", CodeMissing, "it is not there"})
	}
	e := Entry{Path: p, Type: st.Type, Class: classOf(p, st), Mode: score.Mode(st.Mode).String(), Owner: st.Owner, Group: st.Group, Target: st.Target, Provenance: "foreign"}
	o, owned := x.owner(fileResource(p))
	if owned {
		e.Manifest, e.Score, e.Provenance = o.Manifest, o.Score, o.Provenance
	}
	passing := e.Class == score.PathRuntime || e.Class == score.PathCache || e.Class == score.PathUnsupported
	switch {
	case st.Type == topology.Regular:
		if err := x.weigh(ctx, &e, st, o, passing); err != nil {
			return err
		}
	case st.Type == topology.Directory && passing && !named:
		e.Note = "what is in it is not listed: name it by itself"
	}
	if all[p] = e; len(all) > x.limits.Things {
		return x.full(Finding{p, "", CodeTooMany, fmt.Sprintf("with it there are more than %d files, directories and links", x.limits.Things)})
	}
	if st.Type != topology.Directory || e.Note != "" {
		return nil
	}
	names, more, err := x.snap.Entries(ctx, p, x.limits.Things)
	if err != nil {
		return x.unread(p, "", err)
	}
	if len(all)+len(names)+more > x.limits.Things {
		return x.full(Finding{p, "", CodeTooMany, fmt.Sprintf("with it there are more than %d files, directories and links", x.limits.Things)})
	}
	for _, name := range names {
		if err := x.list(ctx, all, path.Join(p, name), false); err != nil {
			return err
		}
	}
	return nil
}

// weigh fills in the size of a file, and a digest. That of what not everybody may read, or of what may hold a secret, is
// keyed.
func (x *reading) weigh(ctx context.Context, e *Entry, st topology.FileState, o Owner, passing bool) error {
	e.Size = st.Size
	switch {
	case passing:
		return nil
	case st.Size > x.limits.File:
		e.Note = fmt.Sprintf("it was not read: at most %d bytes of a file are", x.limits.File)
		return nil
	}
	content, err := x.snap.Content(ctx, e.Path, x.limits.File)
	if err != nil {
		return x.unread(e.Path, "", err)
	}
	if x.total += int64(len(content)); x.total > x.limits.Total {
		return x.full(Finding{e.Path, "", CodeTooMuch, fmt.Sprintf("with it there are more than %d bytes: name less at a time", x.limits.Total)})
	}
	u, is := o.Applied.Spec.(score.SecretUser)
	public := interpret.Public(st.Mode) && e.Class != score.PathSecret && !(is && len(u.SecretNames()) > 0)
	told := x.Teller.Tell(ctx, topology.SumOf(content), public, "")
	e.SHA256, e.Fingerprint = told.SHA256(), told.Fingerprint()
	return nil
}
