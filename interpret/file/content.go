package file

import (
	"bytes"
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// sources are what contents are made of. A part that the device lacks is nil.
type sources struct {
	secrets topology.Secrets
	facts   topology.FactReader
	blobs   topology.Blobs
	teller  interpret.Teller
}

func sourcesOf(t any) sources {
	s := sources{teller: interpret.TellerOf(t)}
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
	sum    topology.Sum
	size   int64
	secret bool // it holds one
}

// stated is what a manifest says of c, for all who may read that.
func (c content) stated() topology.Sum {
	if c.secret {
		return ""
	}
	return c.sum
}

// content finds out what s is to hold.
func (s sources) content(ctx context.Context, f score.File) (content, error) {
	switch {
	case f.ContentFrom != "":
		return content{}, topology.Faultf(topology.CodeInvalid, "the content of %s is in the fleet repository, as %s: publish resolves contentFrom, and no device can", f.Path, f.ContentFrom)
	case f.Blob != nil:
		return content{sum: topology.Sum(f.Blob.SHA256), size: f.Blob.Size}, nil
	case f.Template != nil:
		text, err := s.render(ctx, *f.Template)
		if err != nil {
			return content{}, err
		}
		return content{[]byte(text), topology.SumOf([]byte(text)), int64(len(text)), len(f.SecretNames()) > 0}, nil
	}
	return content{[]byte(f.Content), topology.SumOf([]byte(f.Content)), int64(len(f.Content)), false}, nil
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

// maxCompared is how much of a file is held to compare it where differences do not count. A text that a document or a
// template can make is smaller.
const maxCompared = 2 << 20

// compare fills in what is told of the content of a file, which is as st says, beside the one
// that it is to have.
func (o *Observed) compare(ctx context.Context, r reader, f score.File, st topology.FileState, want content) (err error) {
	if o.Present && o.is == "" && st.Size == want.size { // too large to be known without being asked for
		if o.is, err = r.Digest(ctx, f.Path, want.size); err != nil {
			return err
		}
	}
	same := o.Present && o.is == want.sum
	told := o.tell(ctx, r, f, st, want.stated())
	if o.Present && len(f.Normalize) > 0 && (same || st.Size <= maxCompared) {
		held := want.bytes
		if !same {
			if held, err = r.Content(ctx, f.Path, maxCompared); err != nil {
				return err
			}
		}
		held = score.Normalize(held, f.Normalize)
		same = same || bytes.Equal(held, score.Normalize(want.bytes, f.Normalize))
		if told.SHA256() != "" {
			o.Normalized = r.teller.Tell(ctx, topology.SumOf(held), true, "").SHA256()
		}
	}
	if o.have, o.want = told.String(), told.String(); !same {
		o.want = r.teller.Tell(ctx, want.sum, !want.secret && interpret.Public(uint32(f.Mode)), want.stated()).String()
	}
	return nil
}

// tell fills in what may be told of what is there: stated is what the score says of it.
func (o *Observed) tell(ctx context.Context, r reader, f score.File, st topology.FileState, stated topology.Sum) (told interpret.Digest) {
	if !o.Present {
		return told
	}
	told = r.teller.Tell(ctx, o.is, len(f.SecretNames()) == 0 && interpret.Public(st.Mode), stated)
	if o.SHA256, o.Fingerprint, o.Size = told.SHA256(), told.Fingerprint(), st.Size; o.SHA256 == "" && o.is != "" {
		o.Size = 0
	}
	return told
}
