package pi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	askTimeout = 5 * time.Second // of a program to tell its version
	maxAnswer  = 4 << 10         // bytes of it that are read
)

// askVersion starts a program with --version, and nothing else of the environment than where
// programs are. Its output beyond the limit is dropped, and what it leaves running is killed.
func askVersion(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var stdout, stderr bounded
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.Env = []string{"PATH=" + strings.Join(searchPath, ":"), "LC_ALL=C", "HOME=/nonexistent"}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", &stdout, &stderr, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Run()
	words := stdout.String()
	if firstLine(words) == "" {
		words = stderr.String()
	}
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s --version did not end within %s", program, askTimeout)
	case errors.Is(err, exec.ErrWaitDelay): // it ended well, and left something that holds its output
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		return words, nil
	case err != nil:
		return "", fmt.Errorf("%s --version: %w %s", program, err, firstLine(words))
	}
	return words, nil
}

func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxAnswer-b.Len())])
	return len(p), nil
}
