package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/continuo-fleet/continuo/agent/config"
	"github.com/continuo-fleet/continuo/fleet"
	"github.com/continuo-fleet/continuo/fleet/localnats"
	"github.com/continuo-fleet/continuo/score"
)

// A site is a server with its control service in this process, and one agent in
// another, whose files are below a directory.
type site struct {
	fleet  *fleet.Fleet
	keys   fleet.Keys
	device fleet.Device
	agent  *exec.Cmd
	log    *bytes.Buffer
	root   string
	stop   []func()
}

func newSite(b *suite, name string) (*site, error) {
	dir := filepath.Join(b.dir, name)
	s := &site{device: fleet.Device{Site: "main", ID: "pi-1"}, root: filepath.Join(dir, "root"), log: new(bytes.Buffer)}
	if err := os.MkdirAll(s.root, 0o755); err != nil {
		return nil, err
	}
	server, err := localnats.Start(localnats.Options{Dir: filepath.Join(dir, "server"), Listen: "127.0.0.1:0"})
	if err != nil {
		return nil, err
	}
	s.stop = append(s.stop, func() { server.Close() })
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = append(s.stop, cancel)
	if _, err := server.Setup(ctx); err != nil {
		return s, err
	}
	go server.Serve(ctx, fleet.ServeOptions{Reconnect: 5 * time.Second})
	s.keys = server.Keys()
	ac, err := server.AddDevice(s.device)
	if err != nil {
		return s, err
	}
	if s.fleet, err = fleet.Connect(ctx, server.Operator()); err != nil {
		return s, err
	}
	s.stop = append(s.stop, s.fleet.Close)
	conf, err := score.Encode(config.Config{
		APIVersion: score.APIVersion, Kind: config.Kind, Device: ac.Device, Site: ac.Site, Servers: ac.Servers,
		Credentials: config.Credentials{Type: config.CredentialsCreds, File: ac.CredsFile},
		Trust:       config.Trust{Documents: []string{ac.Operator}, Control: []string{ac.Control}},
		State:       filepath.Join(dir, "state"), Root: s.root,
	})
	if err != nil {
		return s, err
	}
	file := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(file, conf, 0o600); err != nil {
		return s, err
	}
	s.agent = exec.Command(b.agent, "run", "--config", file)
	s.agent.Stderr = s.log
	if err := s.agent.Start(); err != nil {
		return s, err
	}
	s.stop = append(s.stop, func() {
		_ = s.agent.Process.Signal(syscall.SIGTERM)
		_ = s.agent.Wait()
	})
	return s, nil
}

func (s *site) close() {
	for i := len(s.stop) - 1; i >= 0; i-- {
		s.stop[i]()
	}
}

// publish publishes a manifest, and waits until the device holds it.
func (s *site) publish(ctx context.Context, m score.Manifest) error {
	ps, err := s.fleet.Publish(ctx, []score.Manifest{m}, fleet.PublishOptions{Signer: s.keys.Operator})
	if err != nil {
		return err
	}
	st, err := s.fleet.Wait(ctx, s.device, ps[0].Generation)
	if err != nil {
		return err
	}
	if v, why := fleet.Fold(st); v != fleet.Converged {
		return fmt.Errorf("the device is %s: %s\n%s", v, why, s.log)
	}
	return nil
}

func hundred(round int) score.Manifest {
	d := score.NewDraft[score.PiZero]("bench", score.Target{Device: "pi-1"})
	for i := range 100 {
		score.AddFile(d, score.ID(fmt.Sprintf("file-%03d", i)), score.File{
			Path: path(i), Content: fmt.Sprintf("round %d\n%s", round, content(i)), Mode: 0o644})
	}
	return d.Manifest()
}

// withSite runs f with a site whose device holds 100 files.
func withSite(b *suite, name string, f func(ctx context.Context, s *site) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := newSite(b, name)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	if err := s.publish(ctx, hundred(0)); err != nil { // the agent connects meanwhile
		return err
	}
	return f(ctx, s)
}

func publish(b *suite) error { return withSite(b, "publish", b.measurePublish) }
func idle(b *suite) error    { return withSite(b, "idle", measureIdle) }

// measurePublish measures from the call of Publish to the report that all is on disk.
func (b *suite) measurePublish(ctx context.Context, s *site) error {
	var us []usage
	for i := range 2*b.runs + 1 {
		before, err := cpuOf(s.agent.Process.Pid)
		if err != nil {
			return err
		}
		begun := time.Now()
		if err := s.publish(ctx, hundred(i+1)); err != nil {
			return err
		}
		after, err := cpuOf(s.agent.Process.Pid)
		if err != nil {
			return err
		}
		us = append(us, usage{cpu: after - before, wall: time.Since(begun)})
	}
	row("publish → 100 files on disk and reported", us, "cpu is the agent's")
	return nil
}

// measureIdle measures an agent that is connected, holds 100 files, and has nothing to do.
func measureIdle(_ context.Context, s *site) error {
	time.Sleep(15 * time.Second) // what follows a change is over
	pid := s.agent.Process.Pid
	const window = time.Minute
	before, err := look(pid)
	if err != nil {
		return err
	}
	time.Sleep(window)
	after, err := look(pid)
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %.1f MB PSS, %.1f MB RSS\n", "agent, connected, 100 files, memory", float64(after.pss)/1e3, float64(after.rss)/1e3)
	fmt.Printf("%-44s cpu %s, %d wakeups, %d bytes written to disk\n", "agent, the same, one idle minute",
		(after.cpu - before.cpu).Round(10*time.Microsecond), after.switches-before.switches, after.written-before.written)
	return nil
}

// A glance is what /proc says of a process.
type glance struct {
	cpu      time.Duration
	pss, rss int64 // KiB
	switches int64
	written  int64
}

func look(pid int) (g glance, err error) {
	if g.cpu, err = cpuOf(pid); err != nil {
		return g, err
	}
	dir := fmt.Sprintf("/proc/%d/", pid)
	if g.pss, err = field(dir+"smaps_rollup", "Pss:"); err != nil {
		return g, err
	}
	if g.rss, err = field(dir+"smaps_rollup", "Rss:"); err != nil {
		return g, err
	}
	if g.written, err = field(dir+"io", "write_bytes:"); err != nil {
		return g, err
	}
	tasks, err := filepath.Glob(dir + "task/*/status")
	if err != nil {
		return g, err
	}
	for _, t := range tasks {
		n, err := field(t, "voluntary_ctxt_switches:")
		if err != nil {
			return g, err
		}
		g.switches += n
	}
	return g, nil
}

func field(file, name string) (n int64, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			_, err := fmt.Sscan(rest, &n)
			return n, err
		}
	}
	return 0, fmt.Errorf("cannot find %s in %s", name, file)
}

// cpuOf is user and system time of a process, in nanoseconds, from its threads.
func cpuOf(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		return 0, fmt.Errorf("cannot read the time of process %d: %v", pid, err)
	}
	var sum time.Duration
	for _, t := range tasks {
		b, err := os.ReadFile(t)
		if err != nil {
			return 0, err
		}
		var ran int64
		if _, err := fmt.Sscan(string(b), &ran); err != nil {
			return 0, err
		}
		sum += time.Duration(ran)
	}
	return sum, nil
}
