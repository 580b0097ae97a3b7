package pi

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// wordsOrText is a list of words that older releases of podman spell as one text.
type wordsOrText struct {
	words []string
	text  string
}

// UnmarshalJSON reads a list, a text, or nothing.
func (w *wordsOrText) UnmarshalJSON(b []byte) error {
	*w = wordsOrText{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &w.text)
	}
	return json.Unmarshal(b, &w.words)
}

func (w wordsOrText) is(words []string) bool {
	if w.words == nil {
		return w.text == strings.Join(words, " ")
	}
	return slices.Equal(w.words, words)
}

// departs names the parts of its definition that a container was not created with. Only what
// was asked for is compared, and only what podman returns as it was told: the rest comes from
// the image and the device. Limits are none of it: a kernel that cannot hold them says 0. Nor is
// the name of the image, which podman shortens; its digest is in the state.
func (f *inspected) departs(made *topology.ContainerConfig) (out []string) {
	differs := func(part string, yes bool) {
		if yes {
			out = append(out, part)
		}
	}
	differs("entrypoint", len(made.Entrypoint) > 0 && !f.Config.Entrypoint.is(made.Entrypoint))
	differs("command", len(made.Command) > 0 && !slices.Equal(f.Config.Cmd, made.Command))
	differs("env", slices.ContainsFunc(made.Env, func(e string) bool { return !slices.Contains(f.Config.Env, e) }))
	differs("user", made.User != "" && f.Config.User != made.User)
	differs("workingDir", made.WorkingDir != "" && f.Config.WorkingDir != made.WorkingDir)
	differs("readOnly", f.HostConfig.ReadonlyRootfs != made.ReadOnly)
	return out
}
