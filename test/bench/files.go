package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// files applies N files of 1 KiB, each a score of its own, to a fresh root.
func files(b *suite) error {
	byN := map[int][]usage{}
	for _, n := range []int{100, 1000} {
		doc, err := manyFiles(b.dir, n)
		if err != nil {
			return err
		}
		var first, noop, yaml, drifted, floorRead, floorWrite []usage
		for i := range b.runs {
			dir := filepath.Join(b.dir, fmt.Sprintf("run-%d-%d", n, i))
			root, state := filepath.Join(dir, "root"), filepath.Join(dir, "state")
			if err := os.MkdirAll(root, 0o755); err != nil {
				return err
			}
			apply := func(doc string, us *[]usage) error {
				u, err := process(0, b.agent, "apply", "-f", doc, "--root", root, "--state", state, "--confirm")
				*us = append(*us, u)
				return err
			}
			steps := []func() error{
				func() error { return apply(doc+".json", &first) },
				func() error { return apply(doc+".json", &noop) },
				func() error { return apply(doc+".yaml", &yaml) },
				func() error { return spoil(root, 10) },
				func() error { return apply(doc+".json", &drifted) },
				func() error { return floor(&floorRead, func() error { return readAll(root, n) }) },
				func() error {
					return floor(&floorWrite, func() error { return writeAll(filepath.Join(dir, "floor"), n) })
				},
				func() error { return os.RemoveAll(dir) },
			}
			for _, s := range steps {
				if err := s(); err != nil {
					return err
				}
			}
		}
		row(fmt.Sprintf("%d files, first apply (JSON)", n), first, ratio(first, floorWrite, "write floor"))
		row(fmt.Sprintf("%d files, no-op (JSON)", n), noop, ratio(noop, floorRead, "read floor"))
		row(fmt.Sprintf("%d files, no-op (YAML)", n), yaml, ratio(yaml, floorRead, "read floor"))
		row(fmt.Sprintf("%d files, 10 drifted (JSON)", n), drifted, "")
		row(fmt.Sprintf("  floor: open, read, hash %d files", n), floorRead, "")
		row(fmt.Sprintf("  floor: write, fsync, rename, fsync dir %d", n), floorWrite, "")
		byN[n] = noop
	}
	fmt.Printf("%-44s × %.1f\n", "growth of no-op from 100 to 1,000 files", float64(median(byN[1000]))/float64(median(byN[100])))
	return nil
}

func ratio(a, floor []usage, name string) string {
	return fmt.Sprintf("× %.1f of the %s", float64(median(a))/float64(median(floor)), name)
}

func path(i int) string { return fmt.Sprintf("/srv/bench/%02d/file-%04d.conf", i%10, i) }

func content(i int) string { return strings.Repeat(fmt.Sprintf("line of file %04d\n", i), 60)[:1024] }

// manyFiles writes a manifest of n files as JSON and as YAML, and returns its path without the extension.
func manyFiles(dir string, n int) (string, error) {
	d := score.NewDraft[score.PiZero]("bench", score.Target{Device: "pi-1"})
	for i := range n {
		score.AddFile(d, score.ID(fmt.Sprintf("file-%04d", i)), score.File{Path: path(i), Content: content(i), Mode: 0o644})
	}
	m := d.Manifest()
	js, err := score.Encode(m)
	if err != nil {
		return "", err
	}
	var y strings.Builder
	y.WriteString("apiVersion: continuo/v1\nkind: Manifest\nmetadata:\n  name: bench\nspec:\n  profile: pi-zero\n  target: {device: pi-1}\n  policy: {preset: converge}\n  scores:\n")
	for i := range n {
		fmt.Fprintf(&y, "    - kind: file\n      id: file-%04d\n      spec:\n        path: %s\n        mode: \"0644\"\n        content: |-\n", i, path(i))
		for line := range strings.Lines(content(i)) {
			y.WriteString("          " + line)
		}
		y.WriteString("\n")
	}
	out := filepath.Join(dir, fmt.Sprintf("many-%d", n))
	if err := os.WriteFile(out+".json", js, 0o644); err != nil {
		return "", err
	}
	return out, os.WriteFile(out+".yaml", []byte(y.String()), 0o644)
}

// spoil changes n files by hand.
func spoil(root string, n int) error {
	for i := range n {
		if err := os.WriteFile(filepath.Join(root, path(i)), []byte("by hand"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// floor measures f in this process.
func floor(us *[]usage, f func() error) error {
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	begun := time.Now()
	err := f()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := func(r syscall.Rusage) time.Duration {
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	*us = append(*us, usage{cpu: cpu(after) - cpu(before), wall: time.Since(begun)})
	return err
}

func readAll(root string, n int) error {
	for i := range n {
		b, err := os.ReadFile(filepath.Join(root, path(i)))
		if err != nil {
			return err
		}
		_ = sha256.Sum256(b)
	}
	return nil
}

// writeAll is the least that an atomic, durable write of each file takes.
func writeAll(root string, n int) error {
	for i := range n {
		p := filepath.Join(root, path(i))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		f, err := os.Create(p + ".new")
		if err != nil {
			return err
		}
		if _, err := f.WriteString(content(i)); err != nil {
			return err
		}
		if err := f.Sync(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if err := os.Rename(p+".new", p); err != nil {
			return err
		}
		d, err := os.Open(filepath.Dir(p))
		if err != nil {
			return err
		}
		if err := d.Sync(); err != nil {
			return err
		}
		if err := d.Close(); err != nil {
			return err
		}
	}
	return nil
}
