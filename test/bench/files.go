package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/continuo-fleet/continuo/score"
)

// files applies N files of 1 KiB, each a score of its own, to a fresh root.
func files(b *suite) error {
	// nothing is removed before the end: ext4 is slow to reuse what was just deleted, and would bill it to the next run
	byN := map[int][]usage{}
	for _, n := range []int{100, 1000} {
		doc := filepath.Join(b.dir, fmt.Sprintf("many-%d", n))
		if _, err := child("make", doc, n); err != nil {
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
			todo := []func() error{
				func() error { return apply(doc+".json", &first) },
				func() error { return apply(doc+".json", &noop) },
				func() error { return apply(doc+".yaml", &yaml) },
				func() error { return spoil(root, 10) },
				func() error { return apply(doc+".json", &drifted) },
				func() error { return floor(&floorRead, "read", root, n) },
				func() error { return floor(&floorWrite, "write", filepath.Join(dir, "floor"), n) },
			}
			for _, do := range todo {
				if err := do(); err != nil {
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

// manyFiles writes a manifest of n files as out.json and as out.yaml.
func manyFiles(out string, n int) error {
	d := score.NewDraft[score.PiZero]("bench", score.Target{Device: "pi-1"})
	for i := range n {
		score.AddFile(d, score.ID(fmt.Sprintf("file-%04d", i)), score.File{Path: path(i), Content: content(i), Mode: 0o644})
	}
	m := d.Manifest()
	js, err := score.Encode(m)
	if err != nil {
		return err
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
	if err := os.WriteFile(out+".json", js, 0o644); err != nil {
		return err
	}
	return os.WriteFile(out+".yaml", []byte(y.String()), 0o644)
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

// steps are done in processes of their own: the peak memory that the kernel states for
// a process includes that of the one which started it.
var steps = map[string]func(path string, n int) error{"make": manyFiles, "read": readAll, "write": writeAll}

// child runs a step in a process of its own, and says what the step used.
func child(step, path string, n int) (u usage, err error) {
	self, err := os.Executable()
	if err != nil {
		return u, err
	}
	out, err := exec.Command(self, "-step", step, path, strconv.Itoa(n)).Output()
	if err != nil {
		return u, fmt.Errorf("cannot %s %d files: %w", step, n, err)
	}
	_, err = fmt.Sscan(string(out), &u.cpu, &u.wall)
	return u, err
}

// runStep is the child's side: it prints CPU and wall time in nanoseconds.
func runStep(step, path, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	begun := time.Now()
	if err := steps[step](path, n); err != nil {
		return err
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := func(r syscall.Rusage) int64 { return r.Utime.Nano() + r.Stime.Nano() }
	fmt.Println(cpu(after)-cpu(before), int64(time.Since(begun)))
	return nil
}

func floor(us *[]usage, step, path string, n int) error {
	u, err := child(step, path, n)
	*us = append(*us, u)
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
