package conform

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// pouring is a source of a content, which gives something else instead if it is told to.
func pouring(content, instead string) *topology.Source {
	return &topology.Source{SHA256: string(sum(content)), Size: int64(len(content)), Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(iotestHalf{strings.NewReader(instead)}), nil
	}}
}

// iotestHalf gives less than it is asked for.
type iotestHalf struct{ r io.Reader }

func (h iotestHalf) Read(b []byte) (int, error) { return h.r.Read(b[:(len(b)+1)/2]) }

// sourceTests are about contents that are not held.
var sourceTests = []test[FileBench]{
	{"streamed", func(t *testing.T, b FileBench) {
		p, content := b.path("large/f"), strings.Repeat("0123456789abcdef", 1<<18)
		for range 2 { // new, and over another one
			b.write(t, topology.FileWrite{Path: p, Source: pouring(content, content), Mode: 0o640, Owner: b.Owner, Group: b.Group, Mark: "m/s"})
			st := b.state(t, p)
			equal(t, "sha256", st.SHA256, sum(content))
			equal(t, "size", st.Size, int64(len(content)))
			equal(t, "mode", st.Mode, 0o640)
			equal(t, "owner", st.Owner, b.Owner)
			equal(t, "mark", st.Mark, "m/s")
			got, err := b.Files.Digest(t.Context(), p, int64(len(content)))
			ok(t, err)
			equal(t, "digest", got, sum(content))
			b.put(t, p, "old")
		}
		b.write(t, topology.FileWrite{Path: p, Source: pouring("", ""), Mode: 0o644})
		b.content(t, p, "")
	}},
	{"what comes is something else", func(t *testing.T, b FileBench) {
		p, content := b.path("f"), strings.Repeat("x", 300<<10)
		b.put(t, p, "old")
		for name, instead := range map[string]string{
			"less": content[1:], "more": content + "x", "other": strings.Repeat("y", len(content)), "nothing": "",
			"very much more": strings.Repeat(content, 10),
		} {
			for _, at := range []string{p, b.path("new")} {
				err := b.Files.WriteFile(t.Context(), topology.FileWrite{Path: at, Source: pouring(content, instead), Mode: 0o644})
				if err == nil {
					t.Fatalf("%s: it was written", name)
				}
				fails(t, err, topology.CodeInvalid)
			}
		}
		b.content(t, p, "old")
		b.names(t, b.Dir, "f")
	}},
	{"the source fails", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.put(t, p, "old")
		broken := topology.Faultf(topology.CodeIO, "the source is broken")
		for _, s := range []*topology.Source{
			{SHA256: string(sum("x")), Size: 1, Open: func(context.Context) (io.ReadCloser, error) { return nil, broken }},
			{SHA256: string(sum("x")), Size: 1, Open: func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(bytes.NewReader(nil), failing{broken})), nil
			}},
		} {
			fails(t, b.Files.WriteFile(t.Context(), topology.FileWrite{Path: p, Source: s, Mode: 0o644}), topology.CodeIO)
		}
		b.content(t, p, "old")
		b.names(t, b.Dir, "f")
	}},
	{"stopped while it streams", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.put(t, p, "old")
		ctx, cancel := context.WithCancel(t.Context())
		s := pouring("two pieces", "two pieces")
		s.Open = func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("two "), calling(cancel), strings.NewReader("pieces"))), nil
		}
		fails(t, b.Files.WriteFile(ctx, topology.FileWrite{Path: p, Source: s, Mode: 0o644}), topology.CodeCanceled)
		b.content(t, p, "old")
		b.names(t, b.Dir, "f")
	}},
	{"digest", func(t *testing.T, b FileBench) {
		p := b.path("f")
		b.put(t, p, "0123456789")
		for range 2 {
			got, err := b.Files.Digest(t.Context(), p, 10)
			ok(t, err)
			equal(t, "digest", got, sum("0123456789"))
		}
		_, err := b.Files.Digest(t.Context(), p, 9)
		fails(t, err, topology.CodeInvalid)
		hands(t, b.Hands.Symlink(p, b.path("link")))
		_, err = b.Files.Digest(t.Context(), b.path("link"), 10)
		fails(t, err, topology.CodeSymlink)
		_, err = b.Files.Digest(t.Context(), b.Dir, 10)
		fails(t, err, topology.CodeNotRegular)
		if _, err = b.Files.Digest(t.Context(), b.path("no"), 10); err == nil {
			t.Error("what is not there has a digest")
		}
	}},
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// calling calls a function when it is read, and is empty.
type calling func()

func (c calling) Read([]byte) (int, error) { c(); return 0, io.EOF }
