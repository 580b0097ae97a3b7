package pi

import (
	"cmp"
	"context"
	"io"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// journalctl reads the journal, which has no other reader that needs no libsystemd: it is
// asked only about a unit that failed or ran to its end, right after that and not again, so
// that no look at a device that is well starts a process.
const journalctl = "/usr/bin/journalctl"

const (
	journalTimeout = 10 * time.Second
	journalPause   = 30 * time.Second       // between two questions about one unit that fails again and again
	journalSettle  = 5 * time.Second        // after which what was not written yet will not come
	journalLag     = 700 * time.Millisecond // that the words of a program may come after those of systemd
	journalRead    = 64 << 10               // bytes of what it says that are kept, the last ones: a line may be long
)

// A journal remembers what it was asked last about each unit.
type journal struct {
	mu   sync.Mutex
	last map[string]excerpt // by unit
}

type excerpt struct {
	invocation string
	text       string
	asked      time.Time
}

func newJournal() *journal { return &journal{last: map[string]excerpt{}} }

// of returns the last lines of one run of a unit.
func (j *journal) of(ctx context.Context, unit, invocation string) (string, error) {
	j.mu.Lock()
	was := j.last[unit]
	j.mu.Unlock()
	age := time.Since(was.asked)
	switch {
	case was.invocation == invocation && (was.text != "" || age < journalSettle || age > 2*journalSettle):
		return was.text, nil
	case was.invocation != "" && was.invocation != invocation && age < journalPause:
		return "", nil
	}
	text, _, err := lastWords(ctx, ofRun(invocation)...)
	if err != nil {
		return "", topology.Faultf(topology.FaultOf(err).Code, "cannot read what %s wrote: %v", unit, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last[unit] = excerpt{invocation, text, time.Now()}
	return text, nil
}

// ofRun matches what the processes of a run wrote, and what the service manager wrote of it.
func ofRun(invocation string) []string {
	return []string{"_SYSTEMD_INVOCATION_ID=" + invocation, "+", "INVOCATION_ID=" + invocation, "+", "USER_INVOCATION_ID=" + invocation}
}

// lastWords reads until two reads are equal: what a program wrote comes to the journal by another way than what systemd
// says of it, later. To have journald synchronize would only delay that.
func lastWords(ctx context.Context, matches ...string) (end string, more bool, err error) {
	end, more, err = readJournal(ctx, matches...)
	for range 4 {
		select {
		case <-time.After(journalLag):
		case <-ctx.Done():
		}
		again, longer, aerr := readJournal(ctx, matches...)
		if err != nil || aerr != nil || again == end && longer == more {
			break
		}
		end, more = again, longer
	}
	return end, more, err
}

// readJournal is the end of what matches, and whether there was more before it: one process with fixed arguments.
func readJournal(ctx context.Context, matches ...string) (end string, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, journalctl, append([]string{"--quiet", "--no-pager", "--boot", "--output=cat", "--lines=" + strconv.Itoa(topology.LogLines+1)}, matches...)...)
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", false, err
	}
	if err := cmd.Start(); err != nil {
		return "", false, err
	}
	text, rerr := tail(out, journalRead)
	werr := cmd.Wait()
	if err := cmp.Or(rerr, werr); err != nil {
		return "", false, err
	}
	return topology.Excerpt(string(text)), topology.Exceeds(string(text)), nil
}

// tail reads to the end, and keeps the last n bytes, at least.
func tail(r io.Reader, n int) ([]byte, error) {
	kept := make([]byte, 0, 2*n)
	for {
		if len(kept) == cap(kept) {
			kept = append(kept[:0], kept[n:]...)
		}
		m, err := r.Read(kept[len(kept):cap(kept)])
		kept = kept[:len(kept)+m]
		switch {
		case err == io.EOF:
			return kept, nil
		case err != nil:
			return kept, err
		}
	}
}

// Log returns the last lines of one run of a unit.
func (s *services) Log(ctx context.Context, unit, invocation string) (string, error) {
	if err := checkUnit(unit); err != nil {
		return "", err
	}
	if len(invocation) != 32 || !isHex(invocation) {
		return "", topology.Faultf(topology.CodeInvalid, "%q is not the id of a run", invocation)
	}
	if _, err := s.bus.link(ctx); err != nil {
		return "", err
	}
	return s.journal.of(ctx, s.user+"/"+unit, invocation)
}

func isHex(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
