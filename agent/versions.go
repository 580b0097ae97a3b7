package agent

import "github.com/continuo-fleet/continuo/score"

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
