package pi

import "context"

// jobOutput is the end of what a run of a job wrote, and whether it wrote more before that; nothing if that cannot be found.
func jobOutput(ctx context.Context, invocation string) (end string, more bool) {
	if len(invocation) != 32 || !isHex(invocation) {
		return "", false
	}
	end, more, err := lastWords(ctx, "_SYSTEMD_INVOCATION_ID="+invocation, "_TRANSPORT=stdout") // and not what podman logs of itself
	if err != nil {
		return "", false
	}
	return end, more
}
