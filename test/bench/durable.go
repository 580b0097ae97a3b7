package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// start measures from the start of the process to the end of the first pass: from disk,
// without a network, over what was applied before.
func start(b *suite) error {
	const n = 200
	dir := filepath.Join(b.dir, "start")
	k, err := newKeeper(dir, n)
	if err != nil {
		return err
	}
	if err := errors.Join(k.await(n-1), k.stop()); err != nil {
		return err
	}
	var us []usage
	for range 2*b.runs + 1 {
		if k, err = newKeeper(dir, n); err != nil {
			return err
		}
		cpu, err := cpuOf(k.cmd.Process.Pid)
		if err := errors.Join(err, k.stop()); err != nil {
			return err
		}
		us = append(us, usage{cpu, k.start, k.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss})
	}
	row(fmt.Sprintf("start → first pass over, %d files, no network", n), us, "")
	return nil
}

// durability counts what it costs that nothing is forgotten: flushes and bytes.
func durability(b *suite) error {
	const n, alone = 200, 10
	steps := []struct {
		name    string
		changed int // files that are
		spoil   int
	}{{fmt.Sprintf("%d files, first apply", n), n, 0}, {fmt.Sprintf("%d files, %d drifted", n, alone), alone, alone}, {fmt.Sprintf("%d files, no-op", n), 0, 0}}
	doc := filepath.Join(b.dir, "durable")
	if _, err := child("make", doc, n); err != nil {
		return err
	}
	strace, missing := exec.LookPath("strace")
	trace := filepath.Join(b.dir, "durable-syncs")
	apply := func(dir string, spoiled int, wrap ...string) (syscall.Rusage, error) {
		root := filepath.Join(dir, "root")
		if err := errors.Join(os.MkdirAll(root, 0o755), spoil(root, spoiled)); err != nil {
			return syscall.Rusage{}, err
		}
		args := append(slices.Clone(wrap), b.agent, "apply", "-f", doc+".json", "--root", root, "--state", filepath.Join(dir, "state"), "--confirm")
		cmd := exec.Command(args[0], args[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return syscall.Rusage{}, fmt.Errorf("cannot apply: %w: %s", err, out)
		}
		return *cmd.ProcessState.SysUsage().(*syscall.Rusage), nil
	}
	bare, traced := filepath.Join(b.dir, "durable-bare"), filepath.Join(b.dir, "durable-traced")
	for _, step := range steps {
		used, err := apply(bare, step.spoil)
		if err != nil {
			return err
		}
		written, flushes := used.Oublock*512, "not counted, no strace here,"
		if missing == nil {
			if _, err := apply(traced, step.spoil, append([]string{strace}, traceSyncs(trace)...)...); err != nil {
				return err
			}
			flushes = fmt.Sprint(syncs(trace))
		}
		line := fmt.Sprintf("%s fsyncs, %d bytes to disk", flushes, written)
		if step.changed > 0 {
			line += fmt.Sprintf("; each: %.2f fsyncs, %d bytes", float64(syncs(trace))/float64(step.changed), written/int64(step.changed))
		}
		fmt.Printf("%-44s %s\n", step.name, line)
	}
	size, files := int64(0), 0
	err := filepath.WalkDir(filepath.Join(bare, "state"), func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size, files = size+info.Size(), files+1
		return err
	})
	fmt.Printf("%-44s %d bytes in %d files\n", "  the books then", size, files)
	return err
}
