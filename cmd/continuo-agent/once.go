package main

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/cmd/internal/cli"
	"github.com/continuo-fleet/continuo/cmd/internal/show"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/schemas/source"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// once plays one manifest file, for the commands plan and apply.
type once struct {
	file, root, state string
	format            show.Format
}

func (o *once) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "manifest to play, YAML or JSON; - is standard input (required)")
	f.StringVar(&o.root, "root", "", "directory that all paths are below; without services, containers and host name")
	f.StringVar(&o.state, "state", "", "directory of the agent's books (default "+config.DefaultState+", below --root if that is given)")
	o.format.Flag(f)
}

// manifest reads the file. What is wrong with it is told on stderr.
func (o *once) manifest(cmd *cobra.Command) (score.Manifest, error) {
	if o.file == "" {
		return score.Manifest{}, cli.Usagef("give a manifest: -f FILE")
	}
	data, err := cli.ReadInput(cmd.Context(), o.file, cmd.InOrStdin())
	if err != nil {
		return score.Manifest{}, &cli.UsageError{Err: err}
	}
	m, found := source.Manifest(cli.InputName(o.file), data)
	for _, d := range found {
		fmt.Fprintln(cmd.ErrOrStderr(), d)
	}
	if source.Errors(found) > 0 {
		return m, cli.ErrInvalid
	}
	if m.Metadata.Generation == 0 {
		m.Metadata.Generation = 1 // written by hand: nobody has counted yet, and 0 would mean "never applied"
	}
	return m, nil
}

func (o *once) stateDir() string {
	if o.state != "" {
		return o.state
	}
	return filepath.Join(o.root, config.DefaultState)
}

// play plays the manifest: on books that are kept if confirm is given, else on a copy of
// them, so that planning writes nothing at all.
func (o *once) play(cmd *cobra.Command, confirm bool) (interpret.DeviceStatus, error) {
	m, err := o.manifest(cmd)
	if err != nil {
		return interpret.DeviceStatus{}, err
	}
	ctx := cmd.Context()
	dev, err := pi.Open(ctx, pi.Options{Root: o.root})
	if err != nil {
		return interpret.DeviceStatus{}, err
	}
	defer dev.Close()
	var fs store.FS = store.Dir(o.stateDir())
	if !confirm {
		if fs, err = copyOfBooks(o.stateDir()); err != nil {
			return interpret.DeviceStatus{}, err
		}
	}
	books, rec, err := store.Open(fs, store.Options{})
	if err != nil {
		return interpret.DeviceStatus{}, err
	}
	defer books.Close()
	for _, f := range rec.Findings {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s: %s\n", cmd.Root().Name(), o.stateDir(), f)
	}
	r := byHand(dev, books, rec)
	if !confirm {
		return r.Observe(ctx, agent.Once(m))
	}
	if err := sweep(ctx, dev, books); err != nil {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.Root().Name(), err)
	}
	st, err := r.Confirm(ctx, agent.Once(m), "by-hand")
	// What other manifests own is not left over: this command knows nothing of them.
	st.Orphans = slices.DeleteFunc(st.Orphans, func(o interpret.Orphan) bool { return o.Manifest != m.Metadata.Name })
	if err != nil {
		return st, fmt.Errorf("cannot keep the books: %w", err)
	}
	return st, books.Close()
}

// byHand is a runner without an agent around it.
func byHand(dev *pi.Device, books *store.Store, rec store.Recovered) *agent.Runner {
	return &agent.Runner{Table: standard.Bind(dev), Store: books, Files: dev.Files(), Uncertain: rec.Lost() || rec.Newer}
}

// sweep removes what a killed apply left behind beside the files it was writing.
func sweep(ctx context.Context, dev *pi.Device, books *store.Store) error {
	var dirs []string
	for _, a := range books.OpenActions() {
		if p, ok := strings.CutPrefix(a.Entry.Resource, "file:"); ok {
			dirs = append(dirs, path.Dir(p))
		}
	}
	_, err := dev.SweepTemp(ctx, dirs)
	return err
}
