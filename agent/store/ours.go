package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
)

// checkOurs refuses a directory that holds things of others and nothing of ours, before it is made private: a state
// directory that was mistyped may be /tmp or /etc, and nobody else could use those any more.
func (d *dirFS) checkOurs() error {
	f, err := d.root.Open(".")
	if err != nil {
		return fmt.Errorf("cannot look into state directory: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("cannot look into state directory: %w", err)
	}
	foreign := ""
	for _, name := range names {
		switch {
		case slices.Contains(folders, name), strings.HasPrefix(name, "ledger."), strings.HasPrefix(name, "journal."):
			return nil
		case name == "lost+found", name == "link", name == "secrets.key", name == "blobs", atomicfile.IsTemp(name):
		default:
			foreign = max(foreign, name)
		}
	}
	if foreign != "" {
		return fmt.Errorf("cannot use %s as state directory: it holds other things, such as %q, and only the agent may look into its state directory; name one that is empty or not there yet", d.path, foreign)
	}
	return nil
}
