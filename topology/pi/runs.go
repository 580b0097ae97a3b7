package pi

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A runRecord is what is known of the last run of a unit, on disk, because systemd forgets it.
type runRecord struct {
	Digest string `json:"digest"`
	// Begun is true while it is not known how it ended.
	Begun      bool      `json:"begun,omitempty"`
	Boot       string    `json:"boot"`
	Invocation string    `json:"invocation,omitempty"`
	Ended      time.Time `json:"ended,omitzero"`
	Result     string    `json:"result,omitempty"`
	ExitCode   int       `json:"exitCode"`
	Output     string    `json:"output,omitempty"`
	Truncated  bool      `json:"truncated,omitempty"`
}

const maxRunRecord = 64 << 10

// runFile is where the record of a unit is: a unit of a user has his name before it, and a
// sign between them that no name has.
func (s *services) runFile(unit string) string {
	if s.user != "" {
		return path.Join(s.runs, s.user+"+"+unit)
	}
	return path.Join(s.runs, unit)
}

// record reads what is known of the last run. A record that is damaged is none: the unit runs again.
func (s *services) record(ctx context.Context, unit string) (r runRecord, err error) {
	st, err := s.files.File(ctx, s.runFile(unit))
	if err != nil || st.Type != topology.Regular || st.Size > maxRunRecord {
		return runRecord{}, err
	}
	text, err := s.files.Content(ctx, s.runFile(unit), maxRunRecord)
	if err != nil {
		return runRecord{}, err
	}
	return decodeRun(text), nil
}

func decodeRun(text []byte) (r runRecord) {
	if json.Unmarshal(text, &r) != nil || len(r.Digest) > 128 || len(r.Result) > 64 {
		return runRecord{}
	}
	r.Result, r.Output = strings.ToValidUTF8(r.Result, "?"), topology.Excerpt(r.Output)
	return r
}

func (s *services) keep(ctx context.Context, unit string, r runRecord) error {
	text, err := json.Marshal(r)
	if err != nil {
		return topology.FaultOf(err)
	}
	return s.files.WriteFile(ctx, topology.FileWrite{Path: s.runFile(unit), Content: text, Mode: 0o600, Owner: "0", Group: "0"})
}

// forget drops what is known of the runs of a unit.
func (s *services) forget(ctx context.Context, unit string) error {
	return s.files.RemoveFile(ctx, s.runFile(unit))
}

// ran is the last run that came to its end.
func (s *services) ran(ctx context.Context, unit string) (*topology.Run, error) {
	r, err := s.record(ctx, unit)
	if err != nil || r.Digest == "" || r.Begun {
		return nil, err
	}
	return &topology.Run{Digest: r.Digest, Invocation: r.Invocation, Ended: r.Ended, Result: r.Result, ExitCode: r.ExitCode, Output: r.Output, Truncated: r.Truncated}, nil
}

// RunOnce runs a oneshot to its end. That it begins is written down before, so that a run
// which outlives the agent is waited for by the next one, and counts.
func (s *services) RunOnce(ctx context.Context, unit, digest string) error {
	u, err := s.observe(ctx, unit)
	if err != nil {
		return err
	}
	if err := u.usable("run", unit); err != nil {
		return err
	}
	if u.Type != "oneshot" || u.Remain {
		return topology.Faultf(topology.CodeInvalid, "cannot run %s to its end: it is of the type %s; Type=oneshot without RemainAfterExit=yes can be", unit, u.Type)
	}
	was, err := s.record(ctx, unit)
	if err != nil {
		return err
	}
	boot, began := bootID(), time.Now()
	join := was.Begun && was.Digest == digest && was.Boot == boot && u.Active == "activating"
	if !join {
		if err := s.keep(ctx, unit, runRecord{Digest: digest, Begun: true, Boot: boot}); err != nil {
			return err
		}
		if u.Active == "activating" { // a run of something else: this one comes after it
			if err := s.ends(ctx, unit); err != nil {
				return err
			}
		}
		if err := s.reset(ctx, unit); err != nil {
			return err
		}
	}
	end, err := s.follow(ctx, unit, join)
	if err != nil {
		return err
	}
	r := runRecord{Digest: digest, Boot: boot, Invocation: end.Invocation, Ended: time.Now(), Result: end.Result, ExitCode: end.ExitCode}
	if join {
		began = time.Time{} // by somebody else
	}
	r.Output, r.Truncated = s.output(ctx, unit, end.Invocation, began)
	if err := s.keep(ctx, unit, r); err != nil {
		return err
	}
	if end.Result != "success" {
		return topology.Faultf(topology.CodeExited, "%s was run and failed: result %s, exit code %d; journalctl -u %s has its words", unit, end.Result, end.ExitCode, unit)
	}
	return nil
}

// ends waits until a unit does not start any more.
func (s *services) ends(ctx context.Context, unit string) error {
	changed, stop := s.changes(ctx, unit)
	defer stop()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		u, err := s.ask(ctx, unit)
		if err != nil || u.Active != "activating" {
			return err
		}
		select {
		case _, ok := <-changed:
			if !ok {
				changed = nil
			}
		case <-ticker.C:
		case <-ctx.Done():
			return topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot wait for the end of %s: %v", unit, ctx.Err())
		}
	}
}

// follow starts a unit, or joins a start of ours that is under way, and returns how it ended. What
// ended well is dropped by systemd at once, so that it is held for as long as this takes; the
// manager of a user cannot do that, and then it ended well if it has not failed.
func (s *services) follow(ctx context.Context, unit string, join bool) (end unitState, err error) {
	hold := func(verb string) {
		_ = s.bus.do(ctx, func(ctx context.Context, l *link) error {
			return l.calls.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1").
				CallWithContext(ctx, "org.freedesktop.systemd1.Manager."+verb, 0, unit).Err
		})
	}
	if s.user == "" {
		hold("RefUnit")
		defer hold("UnrefUnit")
	}
	if join {
		if err := s.ends(ctx, unit); err != nil {
			return end, err
		}
		return s.ask(ctx, unit)
	}
	err = s.job(ctx, "run", unit, start, "")
	if err != nil {
		if topology.FaultOf(err).Code != topology.CodeJobFailed || ctx.Err() != nil {
			return end, err
		}
	}
	end, aerr := s.ask(ctx, unit)
	if aerr != nil {
		return end, aerr
	}
	if err != nil && (end.Result == "success" || end.Active == "activating") {
		return end, err // it did not run: a dependency, a condition, an order that overtook it
	}
	return end, nil
}

// output is the end of what a run wrote; nothing if that cannot be found. What a program wrote that was gone when the journal
// came to it is of the unit, and of no invocation: so it is found by the time at which the run began, where that is known.
func (s *services) output(ctx context.Context, unit, invocation string, began time.Time) (end string, more bool) {
	of := []string{"_SYSTEMD_UNIT=" + unit}
	if s.user != "" {
		of = []string{"_SYSTEMD_USER_UNIT=" + unit, "_UID=" + strconv.Itoa(s.uid)}
	}
	since := fmt.Sprintf("--since=@%d.%06d", began.Unix(), began.Nanosecond()/1000)
	known := len(invocation) == 32
	var match []string
	switch {
	case known && began.IsZero():
		match = ofRun(invocation)
	case known:
		match = append(append(append([]string{since}, ofRun(invocation)...), "+", "_TRANSPORT=stdout"), of...)
	case began.IsZero():
		return "", false
	default:
		match = append([]string{since}, of...)
	}
	end, more, _ = lastWords(ctx, match...)
	return end, more
}

// bootID changes with every boot.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}
