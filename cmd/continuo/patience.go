package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// patience is whether a command waits for devices, and how long.
type patience struct {
	wait    bool
	timeout time.Duration
}

// flags adds --wait and --timeout. usage says what is waited for.
func (p *patience) flags(f *pflag.FlagSet, usage string) {
	f.BoolVar(&p.wait, "wait", false, usage)
	f.DurationVar(&p.timeout, "timeout", 2*time.Minute, "how long to wait, with --wait")
}

// context ends when the time to wait is over. A command that does not wait has no limit.
func (p patience) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if !p.wait {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, p.timeout)
}

// gaveUp says that the time to wait was over: what is shown is how things were then.
func (p patience) gaveUp(ctx context.Context, cmd *cobra.Command) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		fmt.Fprintf(cmd.ErrOrStderr(), "gave up waiting after %s; --timeout waits longer\n", p.timeout)
	}
}
