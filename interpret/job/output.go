package job

import (
	"context"
	"strings"

	"github.com/continuo-fleet/continuo/score"
)

// shortest is how long a value must be to be looked for: a shorter one is found everywhere, and hides nothing.
const shortest = 4

// withoutSecrets is the output of a job without the values of the secrets that it was given: a program that fails often
// writes what it was started with, and what is observed goes to the fleet.
func withoutSecrets(ctx context.Context, r reader, s score.Job, output string, truncated bool) string {
	if output == "" {
		return ""
	}
	for _, name := range s.SecretNames() {
		b, err := r.Secret(ctx, name)
		value := strings.TrimSpace(string(b))
		if err != nil || len(value) < shortest { // it was run with it all the same, and ends as it ended
			continue
		}
		stands := "(the secret " + name + ")"
		output = strings.ReplaceAll(output, value, stands)
		for i := 1; truncated && i <= len(value)-shortest; i++ { // what was cut off may have ended in the middle of it
			if rest, ok := strings.CutPrefix(output, value[i:]); ok {
				output = stands + rest
				break
			}
		}
	}
	return output
}
