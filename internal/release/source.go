package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// variables is the package whose variables say what a binary was made of.
const variables = "github.com/continuo-fleet/continuo/cmd/internal/cli"

// A source is one commit.
type source struct {
	repository string // directory of the work tree
	commit     string // in full
	date       string // of the commit, in UTC
	version    string // the tag, how far the commit is from it, or what Go would call it without one
}

// resolve finds a commit of the repository that dir is in.
func resolve(ctx context.Context, dir, commit string) (source, error) {
	var s source
	top, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return s, fmt.Errorf("cannot find the repository: %w", err)
	}
	s.repository = top
	if s.commit, err = git(ctx, dir, "rev-parse", "--verify", "--end-of-options", cmp.Or(commit, "HEAD")+"^{commit}"); err != nil {
		return s, fmt.Errorf("cannot find the commit: %w", err)
	}
	seconds, err := git(ctx, dir, "show", "-s", "--format=%ct", s.commit)
	if err != nil {
		return s, err
	}
	var unix int64
	if _, err := fmt.Sscan(seconds, &unix); err != nil {
		return s, fmt.Errorf("cannot read the time of commit %s: %w", s.commit, err)
	}
	at := time.Unix(unix, 0).UTC()
	s.date = at.Format(time.RFC3339)
	// The length of a short commit depends on how much else a clone holds, unless it is given.
	if s.version, err = git(ctx, dir, "describe", "--tags", "--match=v[0-9]*", "--abbrev=12", s.commit); err != nil {
		s.version = fmt.Sprintf("v0.0.0-%s-%s", at.Format("20060102150405"), s.commit[:12])
	}
	return s, nil
}

// stamp is what the linker is told of the source.
func (s source) stamp() string {
	return fmt.Sprintf("-X %s.version=%s %s", variables, s.version, s.unversioned())
}

func (s source) unversioned() string {
	return fmt.Sprintf("-X %[1]s.commit=%[2]s -X %[1]s.date=%[3]s", variables, s.commit, s.date)
}

// worktree is what the linker is told when the work tree is built as it is: it is no release, and says if it is not the
// commit. Without a repository, or one that this user may read, nothing is known and nothing is said.
func worktree(ctx context.Context, dir string) (string, error) {
	s, err := resolve(ctx, dir, "")
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", nil
	}
	flags := s.unversioned()
	if status, err := git(ctx, dir, "status", "--porcelain"); err != nil || status != "" {
		flags += " -X " + variables + ".modified=true"
	}
	return flags, nil
}

// git asks the repository in dir, in the words of no language.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
