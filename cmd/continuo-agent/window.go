package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// windowFile holds how long reconnects are spread over, in a folder of its own beside the
// agent's books: after a power cut at a site all devices come back at once, and the server
// is to survive that.
const windowFile = "link/reconnect-window"

// readWindow reads what keepWindow wrote. It is a hint: without it a default counts.
func readWindow(dir string) time.Duration {
	text, err := os.ReadFile(filepath.Join(dir, windowFile))
	if err != nil {
		return 0
	}
	d, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil || d < 0 {
		return 0 // the power went while it was written
	}
	return d
}

// keepWindow keeps it over restarts. It is written when the control side wishes another
// one, which is rare, and not synced: losing it costs nothing.
func keepWindow(dir string) func(time.Duration) {
	return func(d time.Duration) {
		file := filepath.Join(dir, windowFile)
		_ = os.Mkdir(filepath.Dir(file), 0o700) // not its parent: that is the store's
		_ = os.WriteFile(file, []byte(d.String()+"\n"), 0o600)
	}
}
