package pi

import "context"

// jobOutput is the end of what a run of a job wrote; nothing if that cannot be found.
func jobOutput(ctx context.Context, invocation string) string {
	if len(invocation) != 32 || !isHex(invocation) {
		return ""
	}
	text, _, err := readJournal(ctx, "_SYSTEMD_INVOCATION_ID="+invocation)
	if err != nil {
		return ""
	}
	return text
}
