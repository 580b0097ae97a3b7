package fleet

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/continuo-fleet/continuo/score"
)

// MaxInline is the most bytes of a text that become a part of the document.
const MaxInline = 64 << 10

// A Content is a file of the fleet repository that is too large for a document, or no text. It
// is stored, with PutBlob, before the manifests that need it are published.
type Content struct {
	score.BlobRef
	File string // from the folder of the manifest
	Open func() (io.ReadSeekCloser, error)

	secret string // where it looks like one is written; empty: nowhere
}

// ResolveContent puts the files that scores of m name in contentFrom in the place of the field:
// text up to MaxInline into the document, anything else as a blob, which is returned to be stored.
// root is the folder of the manifest; no file outside of it is read, whatever links lead there.
// It must stay open as long as contents are. What is wrong with a file is an error at the field
// that names it, and no score of m is changed then. m itself is not changed.
func ResolveContent(m score.Manifest, root *os.Root) (score.Manifest, []Content, []score.Problem) {
	r, out := score.NewReport(), m.Clone()
	var contents []Content
	for i, s := range out.Spec.Scores {
		f, is := s.Spec.(score.File)
		if !is || f.ContentFrom == "" {
			continue
		}
		text, c, err := load(root, f.ContentFrom)
		class := score.ClassOfPath(f.ContentFrom)
		switch {
		case class == score.PathBackup:
			r.At("spec", "scores", i, "spec", "contentFrom").Errorf("%s is a copy that an editor or a package manager left: name the file itself", f.ContentFrom)
			continue
		case class == score.PathSecret && !s.NoSecrets:
			r.At("spec", "scores", i, "spec", "contentFrom").Errorf("%s holds keys or passwords, as its name says: keep them on the device and name them, as in {secret: NAME}; if it holds none, say so with noSecrets: true on the score", f.ContentFrom)
			continue
		case err != nil:
			r.At("spec", "scores", i, "spec", "contentFrom").Errorf("cannot take the content of score %q from %q: %v", s.ID, f.ContentFrom, err)
			continue
		case c != nil && len(f.Normalize) > 0:
			r.At("spec", "scores", i, "spec", "normalize").Errorf("normalize is for texts of up to %d bytes, and %s is none", MaxInline, f.ContentFrom)
			continue
		case c != nil && !s.NoSecrets && c.secret != "":
			r.At("spec", "scores", i, "spec", "contentFrom").Errorf("it looks like a secret is written in %s (%s): keep the value on the device and name it, as in {secret: NAME}, or in a template; if it is none, say so with noSecrets: true on the score", f.ContentFrom, c.secret)
			continue
		case c != nil:
			f.Blob = &c.BlobRef
			if !slices.ContainsFunc(contents, func(o Content) bool { return o.SHA256 == c.SHA256 }) {
				contents = append(contents, *c)
			}
		}
		f.ContentFrom, f.Content = "", text
		out.Spec.Scores[i].Spec = f
	}
	if problems := r.Problems(); len(problems) > 0 {
		return m, nil, problems
	}
	return out, contents, nil
}

// load reads a file that is text, or describes it.
func load(root *os.Root, name string) (text string, c *Content, err error) {
	if !fs.ValidPath(name) || name == "." {
		return "", nil, errors.New("it must be the path of a file from the folder of the manifest")
	}
	path := filepath.FromSlash(name)
	st, err := root.Stat(path)
	if err != nil {
		return "", nil, plain(err)
	}
	if !st.Mode().IsRegular() {
		return "", nil, errors.New("it is no regular file")
	}
	open := func() (io.ReadSeekCloser, error) { return root.Open(path) }
	in, err := open()
	if err != nil {
		return "", nil, plain(err)
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, MaxInline+1))
	if err != nil {
		return "", nil, plain(err)
	}
	if len(b) <= MaxInline && utf8.Valid(b) {
		return string(b), nil, nil
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", nil, plain(err)
	}
	ref, err := DescribeBlob(in)
	if err != nil {
		return "", nil, err
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return "", nil, plain(err)
	}
	return "", &Content{BlobRef: ref, File: name, Open: open, secret: secretIn(in, b)}, nil
}

// secretIn says where a content that is text looks like it holds a secret. head is its beginning. A line that is longer
// than any that a person writes is looked at in pieces.
func secretIn(content io.Reader, head []byte) string {
	if bytes.IndexByte(head, 0) >= 0 {
		return "" // a program, an image: anything may be in it
	}
	lines := bufio.NewReaderSize(content, 16<<10)
	for n := 1; ; {
		piece, err := lines.ReadSlice('\n')
		if what := score.LooksSecret(string(bytes.TrimRight(piece, "\r\n"))); what != "" {
			return fmt.Sprintf("%s, line %d", what, n)
		}
		switch {
		case err == nil:
			n++
		case !errors.Is(err, bufio.ErrBufferFull):
			return ""
		}
	}
}

// plain is an error of a file without the path, which is named already.
func plain(err error) error {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such file beside the manifest")
	case !errors.As(err, &pe):
		return err
	case pe.Err.Error() == "path escapes from parent":
		return errors.New("it leads out of the folder of the manifest, and nothing outside of it is read")
	}
	return fmt.Errorf("cannot read it: %w", pe.Err)
}

// unresolved finds a content that is not resolved.
func unresolved(m score.Manifest) (at string, is bool) {
	for i, s := range m.Spec.Scores {
		if f, ok := s.Spec.(score.File); ok && f.ContentFrom != "" {
			return fmt.Sprintf("/spec/scores/%d/spec/contentFrom", i), true
		}
	}
	return "", false
}
