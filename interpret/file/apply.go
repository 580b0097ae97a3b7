package file

import (
	"context"
	"io"
	"strconv"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

func (interpreter) Diff(s score.File, o Observed) []interpret.Change {
	switch {
	case !o.wanted && !o.Present:
		return nil
	case !o.wanted:
		return []interpret.Change{{Field: "state", Have: string(score.Present), Want: string(score.Absent), Effect: interpret.Remove, Replaces: true}}
	case !o.Present:
		return []interpret.Change{{Field: "present", Have: "false", Want: "true", Effect: interpret.Create}}
	}
	var out []interpret.Change
	differ := func(field, have, want string) {
		// of a file that is there, rights and owner are lost as well as content
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Mutate, Replaces: true})
	}
	if o.have != o.want && s.Create != score.CreateOnce {
		differ("content", o.have, o.want)
		if o.Links > 1 { // said for people: the other names keep the old content
			differ("links", strconv.FormatUint(o.Links, 10), "1")
		}
	}
	if want := s.Mode.String(); want != o.Mode && !(s.AttributesOnly && s.Mode == 0) {
		differ("mode", o.Mode, want)
	}
	if s.Owner != "" && s.Owner != o.Owner && s.Owner != o.uid {
		differ("owner", o.Owner, s.Owner)
	}
	if s.Group != "" && s.Group != o.Group && s.Group != o.gid {
		differ("group", o.Group, s.Group)
	}
	return out
}

func (interpreter) Apply(ctx context.Context, w writer, s score.File, t interpret.Task) error {
	fw := topology.FileWrite{Path: s.Path, Mode: uint32(s.Mode), Owner: s.Owner, Group: s.Group, Mark: t.Mark}
	for _, c := range t.Changes {
		switch c.Field {
		case "state":
			return w.RemoveFile(ctx, s.Path)
		case "present":
			fw.Replaces = topology.Sum(topology.Absent)
			return w.write(ctx, s, fw)
		case "content":
			if o, ok := t.Found.(Observed); ok { // what is there now may be worth a backup, and was not asked about
				fw.Replaces = o.is
			}
			return w.write(ctx, s, fw)
		}
	}
	if s.AttributesOnly && s.Mode == 0 {
		st, err := w.File(ctx, s.Path)
		if err != nil {
			return err
		}
		fw.Mode = st.Mode
	}
	return w.SetAttributes(ctx, fw)
}

// write writes the content.
func (w writer) write(ctx context.Context, s score.File, fw topology.FileWrite) error {
	c, err := w.content(ctx, s)
	if err != nil {
		return err
	}
	if fw.Content = c.bytes; s.Blob != nil {
		if err := w.prefetched(ctx, *s.Blob); err != nil {
			return err
		}
		fw.Source = &topology.Source{SHA256: s.Blob.SHA256, Size: c.size, Open: func(ctx context.Context) (io.ReadCloser, error) {
			return w.blobs.OpenBlob(ctx, s.Blob.SHA256)
		}}
	}
	return w.WriteFile(ctx, fw)
}

// prefetched brings the blob here, if it is not.
func (s sources) prefetched(ctx context.Context, b score.BlobRef) error {
	if s.blobs == nil {
		return topology.Faultf(topology.CodeUnavailable, "this device cannot fetch large contents")
	}
	here, err := s.blobs.HasBlob(ctx, b.SHA256)
	if err != nil || here {
		return err
	}
	return s.blobs.FetchBlob(ctx, b.SHA256, b.Size)
}

// Prefetch brings the blob here, unless the file holds it already.
func (interpreter) Prefetch(ctx context.Context, w writer, s score.File) error {
	if len(s.BlobRefs()) == 0 || holds(ctx, w, s) {
		return nil
	}
	return w.prefetched(ctx, *s.Blob)
}

// Stocked reports a blob that Prefetch would have to fetch.
func (interpreter) Stocked(ctx context.Context, r reader, s score.File) error {
	if len(s.BlobRefs()) == 0 || holds(ctx, r, s) {
		return nil
	}
	if r.blobs == nil {
		return topology.Faultf(topology.CodeUnavailable, "this device cannot fetch large contents")
	}
	here, err := r.blobs.HasBlob(ctx, s.Blob.SHA256)
	if err == nil && !here {
		err = topology.Faultf(topology.CodeUnreachable, "the content of %s, %d bytes with the sha256 %.12s…, is not here yet", s.Path, s.Blob.Size, s.Blob.SHA256)
	}
	return err
}

// holds reports whether the file is there with its blob. What is in its way is for Observe to say.
func holds(ctx context.Context, r topology.FileReader, s score.File) bool {
	st, err := r.File(ctx, s.Path)
	if err != nil || st.Type != topology.Regular || st.Size != s.Blob.Size {
		return false
	}
	if st.SHA256 == "" {
		st.SHA256, err = r.Digest(ctx, s.Path, s.Blob.Size)
	}
	return err == nil && st.SHA256 == topology.Sum(s.Blob.SHA256)
}

// RemovalEffect: what a score does not bring stays, and what the device made its own cannot be
// made again.
func (interpreter) RemovalEffect(last score.File) interpret.Effect {
	switch {
	case last.AttributesOnly || last.State == score.Absent:
		return interpret.Nothing
	case last.Create == score.CreateOnce:
		return interpret.Destroy
	}
	return interpret.Remove
}

func (interpreter) Remove(ctx context.Context, w writer, last score.File) error {
	if last.AttributesOnly || last.State == score.Absent {
		return nil
	}
	return w.RemoveFile(ctx, last.Path)
}
