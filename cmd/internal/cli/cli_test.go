package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Input that nobody writes ends with the command: Ctrl-C is heard.
func TestInputIsInterrupted(t *testing.T) {
	in, writer := io.Pipe() // never written to
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	root := &cobra.Command{Use: "it", RunE: func(cmd *cobra.Command, _ []string) error {
		cancel()
		_, err := ReadInput(cmd.Context(), "-", cmd.InOrStdin())
		return &UsageError{err}
	}}
	var out, errs bytes.Buffer
	if code := Run(ctx, root, nil, in, &out, &errs); code != Differs || errs.String() != "it: cannot read -: context canceled\n" {
		t.Errorf("exit %d: %q", code, errs.String())
	}
}

// Nothing that a command says of what others wrote reaches the terminal as a command to it.
func TestMessagesAreHarmless(t *testing.T) {
	root := &cobra.Command{Use: "it", RunE: func(*cobra.Command, []string) error {
		return errors.New("cannot read \x1b]0;title\x07\x1b[2J\u202e\u009b31m\xff\nsecond\tline größer")
	}}
	var out, errs bytes.Buffer
	Run(t.Context(), root, nil, strings.NewReader(""), &out, &errs)
	want := `it: cannot read \x1b]0;title\a\x1b[2J\u202e\u009b31m\xff` + "\nsecond\tline größer\n"
	if errs.String() != want {
		t.Errorf("got  %q\nwant %q", errs.String(), want)
	}
}
