package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// sources are what contents are made of. A part that the device lacks is nil.
type sources struct {
	secrets topology.Secrets
	facts   topology.FactReader
	blobs   topology.Blobs
}

func sourcesOf(t any) (s sources) {
	if h, ok := t.(topology.HasSecrets); ok {
		s.secrets = h.Secrets()
	}
	if h, ok := t.(topology.HasFacts); ok {
		s.facts = h.Facts()
	}
	if h, ok := t.(topology.HasBlobs); ok {
		s.blobs = h.Blobs()
	}
	return s
}

// A content is what a file is to hold.
type content struct {
	bytes  []byte // nil of a blob
	sha256 string
	size   int64
	secret bool // it holds one
	sealed bool // what it takes the place of may hold one
}

// hides reports whether nobody is told the digest of what is in the place of c.
func (c content) hides() bool { return c.secret || c.sealed }

// content finds out what s is to hold.
func (s sources) content(ctx context.Context, f score.File) (content, error) {
	sealed := interpret.Sealed(ctx)
	switch {
	case f.ContentFrom != "":
		return content{}, topology.Faultf(topology.CodeInvalid, "the content of %s is in the fleet repository, as %s: publish resolves contentFrom, and no device can", f.Path, f.ContentFrom)
	case f.Blob != nil:
		return content{sha256: f.Blob.SHA256, size: f.Blob.Size, sealed: sealed}, nil
	case f.Template != nil:
		text, err := s.render(ctx, *f.Template)
		if err != nil {
			return content{}, err
		}
		return content{[]byte(text), digest([]byte(text)), int64(len(text)), len(f.SecretNames()) > 0, sealed}, nil
	}
	return content{[]byte(f.Content), digest([]byte(f.Content)), int64(len(f.Content)), false, sealed}, nil
}

// render fills in a template. No error of it holds a value of a secret.
func (s sources) render(ctx context.Context, t score.Template) (string, error) {
	facts := map[string]string{}
	if names := t.FactNames(); len(names) > 0 {
		if s.facts == nil {
			return "", topology.Faultf(topology.CodeUnavailable, "the template uses facts of the device, and this device tells none")
		}
		f, err := s.facts.Facts(ctx)
		if err != nil {
			return "", err
		}
		facts = f.Text()
	}
	secrets := map[string][]byte{}
	for _, name := range t.SecretNames() {
		if s.secrets == nil {
			return "", topology.Faultf(topology.CodeUnavailable, "the template uses the secret %s, and this device keeps no secrets", name)
		}
		v, err := s.secrets.Secret(ctx, name)
		if err != nil {
			return "", err
		}
		secrets[name] = v
	}
	text, err := t.Render(facts, secrets)
	if err != nil {
		return "", topology.Faultf(topology.CodeInvalid, "cannot fill in the template: %v", err)
	}
	return text, nil
}

// maxCompared is how much of a file is held to compare it. A text that a document or a template
// can make is smaller.
const maxCompared = 2 << 20

// compare fills in what is told of the content of a file, which is as st says, beside the one
// that it is to have.
func (o *Observed) compare(ctx context.Context, r reader, f score.File, st topology.FileState, want content) error {
	same := o.Present && st.SHA256 == want.sha256
	if o.Present && st.SHA256 == "" && st.Size == want.size { // too large to be known without being asked for
		sum, err := r.Digest(ctx, f.Path, want.size)
		if err != nil {
			return err
		}
		if same = sum == want.sha256; !want.hides() {
			o.SHA256 = sum
		}
	}
	held := want.bytes // what the file holds; nil if that is not to be known
	if !same {
		held = nil
	}
	if o.Present && !same && (want.hides() || len(f.Normalize) > 0) && st.Size <= maxCompared {
		b, err := r.Content(ctx, f.Path, maxCompared)
		if err != nil {
			return err
		}
		held = b
	}
	if held != nil && len(f.Normalize) > 0 {
		have := score.Normalize(held, f.Normalize)
		same = same || bytes.Equal(have, score.Normalize(want.bytes, f.Normalize))
		if !want.hides() {
			o.Normalized = digest(have)
		}
	}
	o.have, o.want = o.SHA256, want.sha256
	if want.hides() {
		if held != nil && o.Present {
			o.Fingerprint = r.fingerprint(held)
		}
		o.have = o.Fingerprint
	}
	if want.secret {
		o.want = r.fingerprint(want.bytes)
	}
	if same {
		o.want = o.have
	}
	return nil
}

// fingerprint is empty on a device that keeps no secrets.
func (s sources) fingerprint(b []byte) string {
	if s.secrets == nil {
		return ""
	}
	return s.secrets.Fingerprint(b)
}

func digest(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}
