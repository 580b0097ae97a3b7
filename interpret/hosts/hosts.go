// Package hosts interprets score.Hosts: one block of lines in the hosts file, between two
// comments. Whatever is outside of them stays as it is, byte for byte.
package hosts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasFiles }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	f := t.Files()
	return interpret.Of[score.Hosts, Observed, topology.FileReader, topology.FileWriter](interpreter{}, f, f)
}

// Observed is the actual state of the block.
type Observed struct {
	// Present is true if the block is there.
	Present bool `json:"present"`
	// Entries of the block, as they are written.
	Entries []score.HostEntry `json:"entries,omitempty"`
	// Duplicates are names of the block that lines of others have, too, with their address, at most twenty.
	Duplicates []string `json:"duplicates,omitempty"`
	// DuplicatesMore counts those that were found beyond the twenty.
	DuplicatesMore int `json:"duplicatesMore,omitzero"`

	mark   topology.Mark
	text   string // the block
	hidden bool   // a line of somebody else comes first, and gives another address
}

// Exists reports whether the block is there.
func (o Observed) Exists() bool { return o.Present }

// OwnedBy returns the mark of the block.
func (o Observed) OwnedBy() topology.Mark { return o.mark }

// Conditions: the block is in force unless lines of others before it say something else.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Written: new(o.Present), Effective: new(o.Present && !o.hidden)}
}

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "entries" }

// maxFile bounds the hosts file. Lists that block advertisers have some megabytes.
const maxFile = 16 << 20

// read returns the hosts file, and what is there.
func read(ctx context.Context, r topology.FileReader) ([]byte, topology.FileState, error) {
	st, err := r.File(ctx, score.HostsFile)
	if err != nil {
		return nil, st, err
	}
	switch st.Type {
	case topology.Absent:
		return nil, st, nil
	case topology.Regular:
		b, err := r.Content(ctx, score.HostsFile, maxFile)
		return b, st, err
	case topology.Symlink:
		return nil, st, topology.Faultf(topology.CodeSymlink, "%s is a symbolic link to %s; links are not followed: remove it", score.HostsFile, st.Target)
	}
	return nil, st, topology.Faultf(topology.CodeNotRegular, "%s is a %s, not a regular file", score.HostsFile, st.Type)
}

func (interpreter) Observe(ctx context.Context, r topology.FileReader, s score.Hosts) (Observed, error) {
	b, _, err := read(ctx, r)
	if err != nil {
		return Observed{}, err
	}
	f, err := split(b)
	if err != nil {
		return Observed{}, err
	}
	o := Observed{Present: f.found, mark: f.mark, text: string(f.block), Entries: entries(f.block)}
	var all []string
	all, o.hidden = duplicates(s, f)
	o.Duplicates = all[:min(len(all), 20)]
	o.DuplicatesMore = len(all) - len(o.Duplicates)
	o.Entries = o.Entries[:min(len(o.Entries), maxEntries)]
	for i, e := range o.Entries {
		o.Entries[i].Names = e.Names[:min(len(e.Names), maxNames)]
	}
	return o, nil
}

// Bounds of what a status says of a block that somebody else made long.
const (
	maxEntries = 1000
	maxNames   = 50
)

func (interpreter) Diff(s score.Hosts, o Observed) []interpret.Change {
	if !o.Present {
		return []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}
	}
	if want := lines(s); want != o.text {
		return append(differences(s, o), interpret.Change{Field: "entries", Have: digest(o.text), Want: digest(want), Effect: interpret.Mutate})
	}
	return nil
}

// differences tells which names get another address, the first ten of them.
func differences(s score.Hosts, o Observed) (out []interpret.Change) {
	have, want := addresses(o.Entries), addresses(s.Entries)
	for _, name := range names(o.Entries, s.Entries) {
		if have[name] == want[name] {
			continue
		}
		if len(out) == 10 {
			return out
		}
		out = append(out, interpret.Change{Field: "entries." + name, Have: have[name], Want: want[name], Effect: interpret.Mutate})
	}
	return out
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("sha256:%.12s…", hex.EncodeToString(sum[:]))
}

func (interpreter) Apply(ctx context.Context, w topology.FileWriter, s score.Hosts, t interpret.Task) error {
	return rewrite(ctx, w, func(f file) []byte { return f.with(t.Mark, lines(s)) })
}

// Remove takes the block away, and leaves the file.
func (interpreter) Remove(ctx context.Context, w topology.FileWriter, _ score.Hosts) error {
	return rewrite(ctx, w, func(f file) []byte { return f.without() })
}

// rewrite changes the file as a whole, if it is still the one that was read.
func rewrite(ctx context.Context, w topology.FileWriter, change func(file) []byte) error {
	b, st, err := read(ctx, w)
	if err != nil {
		return err
	}
	f, err := split(b)
	if err != nil {
		return err
	}
	to := change(f)
	if string(to) == string(b) {
		return nil
	}
	fw := topology.FileWrite{Path: score.HostsFile, Content: to, Mode: 0o644, Mark: st.Mark, Replaces: topology.Sum(topology.Absent)}
	if st.Type == topology.Regular {
		fw.Mode, fw.Replaces = st.Mode, topology.SumOf(b)
	}
	return w.WriteFile(ctx, fw)
}
