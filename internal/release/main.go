// Command release makes the binaries of a release from a commit: static, for every machine that is supported, with
// their checksums and a list of what is in them. What it builds is the commit and nothing that lies around, and
// whoever builds the same commit gets the same bytes (ADR 0028). It publishes nothing and signs nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `release [-o DIR] [-only ARCH,…] [-commands NAME,…] [COMMIT]
    builds a commit (default HEAD) into DIR, with SHA256SUMS and one list of contents (CycloneDX) for each binary
release -stamp
    prints the linker flags with which a build of the work tree says what it was made of
release -twice [-only ARCH,…] [-commands NAME,…] [COMMIT]
    builds it in two places, the second time with nothing of the first, and compares every byte
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	f.Usage = func() { fmt.Fprint(f.Output(), usage) }
	dir := f.String("o", "bin/release", "")
	only := f.String("only", "", "")
	names := f.String("commands", "", "")
	stamp := f.Bool("stamp", false, "")
	twice := f.Bool("twice", false, "")
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case f.NArg() > 1:
		return fmt.Errorf("one commit is built at a time, and not %q", f.Args())
	}
	if *stamp {
		flags, err := worktree(ctx, ".")
		if err == nil {
			fmt.Fprintln(out, flags)
		}
		return err
	}
	targets, err := chosen(*only)
	if err != nil {
		return err
	}
	of := commands
	if *names != "" {
		of = strings.Split(*names, ",")
	}
	s, err := resolve(ctx, ".", f.Arg(0))
	if err != nil {
		return err
	}
	if *twice {
		return compare(ctx, s, targets, of, out)
	}
	files, err := build(ctx, s, *dir, place{}, targets, of)
	if err != nil {
		return err
	}
	for _, file := range files {
		fmt.Fprintf(out, "%s  %9d bytes  %s/%s\n", file.sum[:12], file.size, *dir, file.name)
	}
	fmt.Fprintf(out, "%s, commit %s of %s, %s\n", s.version, s.commit, s.date, toolchain)
	return nil
}
