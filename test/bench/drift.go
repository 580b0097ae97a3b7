package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/agent/store"
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/standard"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/pi"
)

// drift measures from a foreign write to the right content again, one file after the
// other, while an agent watches all of them. The agent is a process of its own, with real
// files and real books, and without a network.
func drift(b *suite) error {
	for _, n := range []int{100, 1000} {
		dir := filepath.Join(b.dir, fmt.Sprintf("drift-%d", n))
		k, err := newKeeper(dir, n)
		if err != nil {
			return err
		}
		if err = k.warm(n); err == nil {
			err = k.measure(n, 40*b.runs)
		}
		if cerr := k.stop(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		if err := countSyncs(dir, n); err != nil {
			return err
		}
	}
	return nil
}

// A keeper is an agent that keeps n files true below dir/root.
type keeper struct {
	dir   string
	cmd   *exec.Cmd
	in    io.Closer
	out   *bufio.Scanner
	start time.Duration // until its first pass was over
}

// newKeeper starts one. wrap is a command that runs it; none: it runs by itself.
func newKeeper(dir string, n int, wrap ...string) (*keeper, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "root"), 0o755); err != nil {
		return nil, err
	}
	args := append(slices.Clone(wrap), self, "-step", "keep", dir, fmt.Sprint(n))
	k := &keeper{dir: dir, cmd: exec.Command(args[0], args[1:]...)}
	k.cmd.Stderr = os.Stderr
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	k.out = bufio.NewScanner(out)
	begun := time.Now()
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	if !k.out.Scan() { // "ready"
		return nil, errors.Join(errors.New("the agent did not start"), k.stop())
	}
	k.start = time.Since(begun)
	return k, nil
}

func (k *keeper) stop() error {
	_ = k.in.Close()
	return k.cmd.Wait()
}

// warm waits until what is there is right and is watched.
func (k *keeper) warm(n int) error {
	for _, i := range []int{n - 1, 0, n - 1} {
		if err := k.await(i); err != nil {
			return err
		}
		if _, err := k.spoil(i); err != nil {
			return err
		}
	}
	time.Sleep(time.Second)
	return nil
}

// spoil changes file i, and says how long it took until that was undone.
func (k *keeper) spoil(i int) (time.Duration, error) {
	if err := os.WriteFile(filepath.Join(k.dir, "root", path(i)), []byte("by hand"), 0o644); err != nil {
		return 0, err
	}
	begun := time.Now()
	err := k.await(i)
	return time.Since(begun), err
}

func (k *keeper) await(i int) error {
	want, p := content(i), filepath.Join(k.dir, "root", path(i))
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(50 * time.Microsecond) {
		if b, err := os.ReadFile(p); err == nil && string(b) == want {
			return nil
		}
	}
	return fmt.Errorf("nobody corrected %s", p)
}

func (k *keeper) measure(n, rounds int) error {
	pid := k.cmd.Process.Pid
	before, err := look(pid)
	if err != nil {
		return err
	}
	var took []time.Duration
	for i := range rounds {
		d, err := k.spoil(1 + i%(n-2)) // none more than five times: then somebody fights
		if err != nil {
			return err
		}
		took = append(took, d)
		time.Sleep(15 * time.Millisecond)
	}
	time.Sleep(time.Second) // what follows belongs to it
	after, err := look(pid)
	if err != nil {
		return err
	}
	slices.Sort(took)
	at := func(p int) float64 { return float64(took[min(len(took)*p/100, len(took)-1)].Microseconds()) / 1000 }
	fmt.Printf("%-44s p50 %.1f ms, p99 %.1f ms, max %.1f ms (%d times)\n", fmt.Sprintf("drift event → corrected, %d files watched", n), at(50), at(99), at(100), rounds)
	fmt.Printf("%-44s cpu %.2f ms, %d bytes to disk; rss %.1f MiB\n", "  each", (after.cpu-before.cpu).Seconds()*1000/float64(rounds), (after.written-before.written)/int64(rounds), float64(after.rss)/1024)
	return inotify(pid)
}

// inotify counts the instances that a process has, and their watches.
func inotify(pid int) error {
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return err
	}
	instances, watches := 0, 0
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err != nil || !strings.Contains(to, "inotify") {
			continue
		}
		instances++
		b, err := os.ReadFile(strings.Replace(fd, "/fd/", "/fdinfo/", 1))
		if err != nil {
			return err
		}
		watches += strings.Count(string(b), "inotify wd:")
	}
	fmt.Printf("%-44s %d, with %d watches\n", "  inotify instances", instances, watches)
	return nil
}

// countSyncs corrects drift once more, with a tracer that counts.
func countSyncs(dir string, n int) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		fmt.Printf("%-44s not counted: no strace here\n", "  fsyncs of each")
		return nil
	}
	file := filepath.Join(dir, "syncs")
	k, err := newKeeper(dir, n, append([]string{strace}, traceSyncs(file)...)...)
	if err != nil {
		return err
	}
	if err := k.warm(n); err != nil {
		return errors.Join(err, k.stop())
	}
	before := syncs(file)
	const rounds = 50
	for i := range rounds {
		if _, err := k.spoil(1 + i); err != nil {
			return errors.Join(err, k.stop())
		}
		time.Sleep(15 * time.Millisecond)
	}
	time.Sleep(time.Second)
	fmt.Printf("%-44s %.1f, all of them counted\n", "  fsyncs of each", float64(syncs(file)-before)/rounds)
	return k.stop()
}

// traceSyncs are the arguments of strace that let it note each flush in a file.
func traceSyncs(file string) []string {
	return []string{"-f", "-qq", "-o", file, "-e", "trace=fsync,fdatasync,sync,syncfs,sync_file_range"}
}

// syncs counts the flushes in such a file.
func syncs(file string) int {
	b, _ := os.ReadFile(file)
	return strings.Count(string(b), "sync(") + strings.Count(string(b), "syncfs(") + strings.Count(string(b), "sync_file_range(")
}

// keep is the child's side: an agent that keeps files true until its standard input ends.
func keep(dir, files string) error {
	var n int
	if _, err := fmt.Sscan(files, &n); err != nil {
		return err
	}
	debug.SetMemoryLimit(64 << 20) // as continuo-agent run does
	debug.SetGCPercent(50)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dev, err := pi.Open(ctx, pi.Options{Root: filepath.Join(dir, "root")})
	if err != nil {
		return err
	}
	books, rec, err := store.Open(store.Dir(filepath.Join(dir, "state")), store.Options{})
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel)
	a := agent.New(agent.Config{
		Runner: &agent.Runner{Table: standard.Bind(dev), Store: books, Files: dev.Files()}, Recovered: rec, Open: open,
		Link: offers(assignment(n)), Events: dev.Events(), Supervisor: tells{}, Device: "pi-1", Log: logrus.NewEntry(log),
	})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	a.Run(ctx)
	return errors.Join(books.Close(), dev.Close())
}

// assignment is what the fleet sends: one manifest of n files.
func assignment(n int) []byte {
	d := score.NewDraft[score.PiZero]("bench", score.Target{Device: "pi-1"})
	for i := range n {
		score.AddFile(d, score.ID(fmt.Sprintf("file-%04d", i)), score.File{Path: path(i), Content: content(i), Mode: 0o644})
	}
	m := d.Manifest()
	m.Metadata.Generation = 1
	body, err := score.Encode(score.Assignment{
		APIVersion: score.APIVersion, Kind: score.AssignmentKind, Metadata: score.Metadata{Name: "pi-1", Generation: 1},
		Spec: score.AssignmentSpec{Complete: true, Scores: n, Manifests: []score.Manifest{m}},
	})
	if err != nil {
		panic(err)
	}
	return body
}

// open reads an assignment as if it had been signed.
func open(body []byte) (agent.Intent, error) {
	var as score.Assignment
	if err := score.Decode(body, &as); err != nil {
		return agent.Intent{}, err
	}
	sum := sha256.Sum256(body)
	return agent.Intent{Assignment: as, Generation: as.Metadata.Generation, Digest: hex.EncodeToString(sum[:]), Envelope: body}, nil
}

// offers is a link that offers one assignment, and reports to nobody.
type offers []byte

func (o offers) Run(ctx context.Context, h agent.Handler) {
	in, err := open(o)
	if err == nil {
		err = h.Offer(in)
	}
	if err != nil {
		panic(err)
	}
	<-ctx.Done()
}

func (offers) Ask(context.Context, interpret.ApprovalRequests) error { return nil }
func (offers) Inform(context.Context, interpret.DeviceInfo) error    { return nil }

func (offers) Report(context.Context, interpret.DeviceStatus) error { return nil }
func (offers) Send(context.Context, interpret.Receipt) error        { return nil }

// tells says on standard output that the first pass is over.
type tells struct{}

func (tells) Ready()    { fmt.Println("ready") }
func (tells) Alive()    {}
func (tells) Stopping() {}
