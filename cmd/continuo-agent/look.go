package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/store"
)

var errNothingAccepted = errors.New("nothing was accepted yet: publish a manifest for this device, or name one with -f FILE")

// A look is a device with a copy of its books: nothing that is done to it lasts.
type look struct {
	config config.Config
	books  *store.Store
	rec    store.Recovered
	dev    machine
	runner *agent.Runner
}

// lookAt opens a device to look at. What is wrong with its books is told on stderr.
func lookAt(cmd *cobra.Command, c config.Config) (*look, error) {
	disk, err := copyOfBooks(c.StateDir())
	if err != nil {
		return nil, err
	}
	return openAt(cmd, c, disk, true)
}

// openAt opens a device with the books that are on disk.
func openAt(cmd *cobra.Command, c config.Config, disk store.FS, only bool) (*look, error) {
	books, rec, err := store.Open(disk, store.Options{})
	if err != nil {
		return nil, err
	}
	dev, err := openMachine(cmd.Context(), c, nil, only)
	if err != nil {
		return nil, errors.Join(err, books.Close())
	}
	l := &look{config: c, books: books, rec: rec, dev: dev, runner: runnerOf(dev, books, c)}
	l.runner.Uncertain = rec.Lost() || rec.Newer
	if !only && !rec.Newer {
		l.runner.KeepAudit(c.Device)
	}
	return l, nil
}

func (l *look) close() error { return errors.Join(l.dev.Close(), l.books.Close()) }

// tell tells on stderr what is wrong with the books.
func (l *look) tell(cmd *cobra.Command) {
	for _, f := range l.rec.Findings {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s\n", cmd.Root().Name(), l.config.StateDir(), f)
	}
}

// accepted is what was accepted last, verified as the agent does at its start.
func (l *look) accepted() (agent.Intent, error) {
	kept, ok, err := agent.LastIntent(l.books)
	if err != nil {
		return agent.Intent{}, err
	}
	if !ok {
		return agent.Intent{}, errNothingAccepted
	}
	trust, err := trustOf(l.config)
	if err != nil {
		return agent.Intent{}, err
	}
	in, err := trust.Opener(l.config.Identity())(kept.Envelope)
	if err != nil {
		return in, &untrustedError{err}
	}
	return in, nil
}

// An untrustedError says that what was accepted last gives no authority to anything.
type untrustedError struct{ error }

func (e *untrustedError) Error() string {
	return fmt.Sprintf("what was accepted last is not trusted any more: %v", e.error)
}
func (e *untrustedError) Unwrap() error { return e.error }
