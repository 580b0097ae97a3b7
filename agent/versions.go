package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/continuo-fleet/continuo/score"
)

// versions remembers the bytes of the manifests that roll back: a pass that changes nothing
// does not encode them again. It is used by the loop alone.
type versions map[string]version

type version struct {
	generation uint64
	body       []byte
	digest     string
}

func (v *versions) of(m score.Manifest) ([]byte, string, error) {
	if have, ok := (*v)[m.Metadata.Name]; ok && have.generation == m.Metadata.Generation {
		return have.body, have.digest, nil
	}
	body, digest, err := versionOf(m)
	if err != nil {
		return nil, "", err
	}
	if *v == nil {
		*v = versions{}
	}
	(*v)[m.Metadata.Name] = version{m.Metadata.Generation, body, digest}
	return body, digest, nil
}

// versionOf is a manifest as bytes, with their digest. Its generation is no part of the digest:
// the same content published again is the same version.
func versionOf(m score.Manifest) (body []byte, digest string, err error) {
	m.Metadata.Generation = 0
	if body, err = score.Encode(m); err != nil {
		return nil, "", fmt.Errorf("cannot keep manifest %s: %w", m.Metadata.Name, err)
	}
	sum := sha256.Sum256(body)
	return body, hex.EncodeToString(sum[:]), nil
}

// goodDigest is the digest of the last good version of a manifest; empty if there is none.
func (r *Runner) goodDigest(name string) string {
	g, _, err := r.Store.Good(name)
	if err != nil {
		return ""
	}
	return g.Digest
}

// good reads the last good version of a manifest.
func (r *Runner) good(name string) (m score.Manifest, ok bool) {
	g, ok, err := r.Store.Good(name)
	if err != nil || !ok || score.Decode(g.Body, &m) != nil {
		return m, false
	}
	m.Metadata.Generation = g.Generation
	return m, true
}
