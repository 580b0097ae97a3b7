// Command bench prints the figures that the project is held to, beside the floors of
// the same machine in the same run: CPU seconds (user and system), peak memory, wall
// time, as medians. It judges nothing.
//
//	go run ./test/bench [-runs 5] [-only REGEXP]
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A bench is one group of figures.
type bench struct {
	name string
	run  func(b *suite) error
}

var benches = []bench{
	{"files", files},
	{"durability", durability},
	{"drift", drift},
	{"start", start},
	{"size", sizes},
	{"publish", publish},
	{"idle", idle},
	{"signatures", signatures},
}

// A suite is where benches work.
type suite struct {
	dir   string // scratch
	agent string // the agent's binary
	runs  int
}

func main() {
	runs := flag.Int("runs", 5, "runs of each measurement")
	only := flag.String("only", "", "run the benches whose names match")
	step := flag.String("step", "", "internal: do one step of a bench in this process")
	flag.Parse()
	if *step != "" {
		run := runStep
		if *step == "keep" {
			run = func(_, dir, n string) error { return keep(dir, n) }
		}
		if err := run(*step, flag.Arg(0), flag.Arg(1)); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if err := all(*runs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func all(runs int, only string) error {
	want, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "continuo-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &suite{dir: dir, agent: filepath.Join(dir, "continuo-agent"), runs: runs}
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.agent, "./cmd/continuo-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is released
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the agent: %s", out)
	}
	machine()
	for _, x := range benches {
		if !want.MatchString(x.name) {
			continue
		}
		fmt.Printf("\n== %s\n", x.name)
		if err := x.run(b); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

// machine prints what the figures were taken on.
func machine() {
	var uts syscall.Utsname
	_ = syscall.Uname(&uts)
	release := make([]byte, 0, len(uts.Release))
	for _, c := range uts.Release {
		if c == 0 {
			break
		}
		release = append(release, byte(c))
	}
	load, _ := os.ReadFile("/proc/loadavg")
	cpu := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				cpu = strings.TrimSpace(v)
				break
			}
		}
	}
	fmt.Printf("%s, %s/%s, %d cores, %s, kernel %s, load %s\n", time.Now().UTC().Format(time.DateOnly),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), cpu, release, strings.TrimSpace(string(load)))
	fmt.Println("medians (min–max); cpu is user+system of the process; the machine is shared: compare cpu and ratios")
}

// A usage is what one process used.
type usage struct {
	cpu, wall time.Duration
	rss       int64 // KiB
}

// process runs a command and says what it used; want is the exit code that is right.
func process(want int, name string, args ...string) (usage, error) {
	cmd := exec.Command(name, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	begun := time.Now()
	err := cmd.Run()
	wall := time.Since(begun)
	st := cmd.ProcessState
	if st == nil || st.ExitCode() != want {
		return usage{}, fmt.Errorf("cannot measure %s %s: %v: %s", filepath.Base(name), strings.Join(args, " "), err, stderr.String())
	}
	ru := st.SysUsage().(*syscall.Rusage)
	return usage{st.UserTime() + st.SystemTime(), wall, ru.Maxrss}, nil
}

// row prints the figures of several runs.
func row(name string, us []usage, note string) {
	pick := func(f func(usage) float64) (med, lo, hi float64) {
		vs := make([]float64, len(us))
		for i, u := range us {
			vs[i] = f(u)
		}
		slices.Sort(vs)
		return vs[len(vs)/2], vs[0], vs[len(vs)-1]
	}
	cm, cl, ch := pick(func(u usage) float64 { return u.cpu.Seconds() })
	wm, _, _ := pick(func(u usage) float64 { return u.wall.Seconds() })
	rm, _, _ := pick(func(u usage) float64 { return float64(u.rss) / 1024 })
	fmt.Printf("%-44s cpu %.3f s (%.3f–%.3f)  wall %.3f s  rss %5.1f MiB  %s\n", name, cm, cl, ch, wm, rm, note)
}

func median(us []usage) time.Duration {
	vs := make([]time.Duration, len(us))
	for i, u := range us {
		vs[i] = u.cpu
	}
	slices.Sort(vs)
	return vs[len(vs)/2]
}
