// Package cli is what both commands share: exit codes, how errors are told, reading an
// input file, and which build this is. It knows no command.
package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/score"
)

// Exit codes.
const (
	OK      = 0 // done, and nothing differs
	Differs = 1 // something differs, failed or has not converged; or the work could not be done
	Invalid = 2 // usage or input is wrong
)

// ErrDiffers ends a command with Differs. What differs has been shown.
var ErrDiffers = errors.New("something differs")

// ErrInvalid ends a command with Invalid. What is invalid has been shown.
var ErrInvalid = errors.New("input is invalid")

// A UsageError says that a command was called in a wrong way.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// Main executes root for the process, and ends it. The first signal ends ctx of the command, a second one the process.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code := Run(ctx, root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run executes root and returns the exit code. Everything that could go wrong is told on
// stderr in one line.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	root.SetIn(stdin)
	root.SetOut(stdout)
	stderr = plain{stderr}
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage *UsageError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, ErrDiffers):
		return Differs
	case errors.Is(err, ErrInvalid):
		return Invalid
	case ctx.Err() != nil && errors.Is(err, context.Canceled) && errors.As(err, &usage): // it was not the input
		fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
		return Differs
	case errors.As(err, &usage) || !started:
		fmt.Fprintf(stderr, "%s: %v\nSee '%s --help'.\n", root.Name(), err, cmd.CommandPath())
		return Invalid
	default:
		fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
		return Differs
	}
}

// plain keeps what is written to it harmless on a terminal: messages hold names of files,
// values of documents and what servers say.
type plain struct{ w io.Writer }

func (p plain) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, show.Plain(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Group is a command that only holds others.
func Group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("give a command")
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if n, ok := score.Nearest(args[0], names); ok {
		return Usagef("unknown command %q, did you mean %q?", args[0], n)
	}
	return Usagef("unknown command %q", args[0])
}

// Files wants the names of files as arguments.
func Files(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return Usagef("name at least one FILE; - is standard input")
	}
	return nil
}

// NoArgs wants no argument: what is given has a flag, or is too much.
func NoArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.Flags().Lookup("file") != nil:
		return Usagef("%s takes no argument %q: name the manifest with -f FILE", cmd.Name(), args[0])
	}
	return Usagef("%s takes no argument %q", cmd.Name(), args[0])
}

// maxInput bounds what is read of one input: a little more than a document may have, so
// that the reader of documents says that it is too large.
const maxInput = 16 << 20

// ReadInput reads the file name, or stdin for "-". A terminal or a pipe that nobody writes
// to is read until ctx ends.
func ReadInput(ctx context.Context, name string, stdin io.Reader) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := readInput(name, stdin)
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		if errors.Is(r.err, syscall.EISDIR) {
			return nil, fmt.Errorf("cannot read %s: it is a directory; name the files in it", name)
		}
		if r.err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", name, unwrapPath(r.err))
		}
		return r.data, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot read %s: %w", name, ctx.Err())
	}
}

// InputName is what messages call the input that ReadInput reads.
func InputName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return name
}

func readInput(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(stdin, maxInput))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var buf bytes.Buffer
	if st, err := f.Stat(); err == nil && st.Mode().IsRegular() {
		buf.Grow(int(min(st.Size(), maxInput)) + bytes.MinRead) // read at once, without copies
	}
	_, err = buf.ReadFrom(io.LimitReader(f, maxInput))
	return buf.Bytes(), err
}

// unwrapPath takes off the path that the message names already.
func unwrapPath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
