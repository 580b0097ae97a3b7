//go:build linux

package box

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// outcome counts what a test binary reported, subtests included.
type outcome struct {
	passed          int
	failed, skipped []string
	said            map[string]*excerpt // by failed test
	broke           excerpt             // what the binary said when it broke off
}

// excerpt is the beginning and the end of what was written.
type excerpt struct{ first, last []string }

const (
	firstLines, lastLines = 5, 3
	toldOf                = 12 // failed tests whose lines are told
)

func (e *excerpt) add(line string) {
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	line = line[:min(len(line), 300)]
	if len(e.first) < firstLines {
		e.first = append(e.first, line)
		return
	}
	if len(e.last) == lastLines {
		e.last = slices.Delete(e.last, 0, 1)
	}
	e.last = append(e.last, line)
}

var (
	resultLine = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)
	whoWrites  = regexp.MustCompile(`^=== \w+\s+(\S+)`)
	breaksOff  = regexp.MustCompile(`^(panic|fatal error): `)
)

// readResults reads the output of a test binary run with -test.v to its end.
func readResults(r io.Reader) outcome {
	o := outcome{said: map[string]*excerpt{}}
	br := bufio.NewReader(r)
	var who string
	for {
		line, err := br.ReadString('\n')
		if m := resultLine.FindStringSubmatch(line); m != nil {
			switch m[1] {
			case "PASS":
				o.passed++
				delete(o.said, m[2])
			case "FAIL":
				o.failed = append(o.failed, m[2])
			case "SKIP":
				o.skipped = append(o.skipped, m[2])
				delete(o.said, m[2])
			}
			who = ""
		} else if m := whoWrites.FindStringSubmatch(line); m != nil {
			who = m[1]
		} else if breaksOff.MatchString(line) || len(o.broke.first) > 0 {
			o.broke.add(line)
		} else if who != "" {
			if o.said[who] == nil {
				o.said[who] = &excerpt{}
			}
			o.said[who].add(line)
		}
		if err != nil {
			return o
		}
	}
}

// complaints says what is wrong with a run that ended with err: which tests, and in lines of their own what those wrote,
// so that who reads the end of a log of the whole suite knows why.
func (o outcome) complaints(pkg string, err error) []string {
	var lines []string
	tell := func(who string, e *excerpt) {
		for _, line := range slices.Concat(e.first, e.last) {
			lines = append(lines, fmt.Sprintf("in the box: %s: %s", who, line))
		}
	}
	switch {
	case len(o.failed) > 0:
		lines = append(lines, fmt.Sprintf("tests of %s failed in the box: %s", pkg, strings.Join(o.failed, ", ")))
	case err != nil:
		lines = append(lines, fmt.Sprintf("tests of %s broke off in the box: %v", pkg, err))
	case len(o.skipped) > 0:
		return []string{fmt.Sprintf("tests of %s did not run in the box: %s", pkg, strings.Join(o.skipped, ", "))}
	case o.passed == 0:
		return []string{fmt.Sprintf("tests of %s: none ran in the box", pkg)}
	}
	for _, name := range o.failed[:min(len(o.failed), toldOf)] {
		if e := o.said[name]; e != nil {
			tell(name, e)
		}
	}
	tell("it broke off", &o.broke)
	return lines
}
