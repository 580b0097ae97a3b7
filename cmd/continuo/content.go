package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/score"
)

// besides are the files that manifests take contents from. They are read again when they are
// stored, so that what holds their folders is closed last.
type besides struct {
	contents []fleet.Content
	roots    []*os.Root
}

func (b *besides) close() {
	for _, r := range b.roots {
		_ = r.Close()
	}
}

// resolver puts the files that a manifest names in their place. They are below the folder of
// the manifest, or, of one that comes from standard input, the folder that the command runs in.
func (b *besides) resolver(file string) func(*score.Manifest) []score.Problem {
	return func(m *score.Manifest) []score.Problem {
		if !slices.ContainsFunc(m.Spec.Scores, takesContent) {
			return nil
		}
		folder := "."
		if file != "-" {
			folder = filepath.Dir(file)
		}
		root, err := os.OpenRoot(folder)
		if err != nil {
			return []score.Problem{{Path: "/spec/scores", Severity: score.Error, Text: fmt.Sprintf("cannot open the folder of the manifest: %v", err)}}
		}
		b.roots = append(b.roots, root)
		resolved, contents, problems := fleet.ResolveContent(*m, root)
		*m = resolved
		b.contents = append(b.contents, contents...)
		return problems
	}
}

func takesContent(s score.Score) bool {
	f, is := s.Spec.(score.File)
	return is && f.ContentFrom != ""
}

// store stores what is to be there before the manifests are.
func (b *besides) store(ctx context.Context, f *fleet.Fleet) error {
	stored := map[string]bool{}
	for _, c := range b.contents {
		if stored[c.SHA256] {
			continue
		}
		in, err := c.Open()
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", c.File, err)
		}
		ref, err := f.PutBlob(ctx, in)
		_ = in.Close()
		if err != nil {
			return fmt.Errorf("cannot store %s: %w; nothing was published", c.File, err)
		}
		if ref != c.BlobRef {
			return fmt.Errorf("cannot store %s: it was changed meanwhile; nothing was published: publish again", c.File)
		}
		stored[c.SHA256] = true
	}
	return nil
}
