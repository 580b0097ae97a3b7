package pi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/internal/atomicfile"
	"github.com/continuo-fleet/continuo/topology"
)

// A jobRecord is what is known of the last run of a job. Systemd forgets a run that ended well
// at once, and all of them with the next boot.
type jobRecord struct {
	Version     int           `json:"version"`
	Digest      string        `json:"digest"`
	Mark        topology.Mark `json:"mark"`
	Tries       int           `json:"tries"`
	Interrupted int           `json:"interrupted,omitempty"`
	Began       time.Time     `json:"began"`
	// Ended is zero while nobody has written down how it ended: it runs, or it was interrupted.
	Ended    time.Time          `json:"ended,omitzero"`
	Result   topology.JobResult `json:"result,omitempty"`
	ExitCode int                `json:"exitCode,omitempty"`
	Signal   string             `json:"signal,omitempty"`
	Output   string             `json:"output,omitempty"`
	// Truncated: it wrote more before that.
	Truncated bool `json:"truncated,omitempty"`
}

const maxJobRecord = 64 << 10

func (r jobRecord) state() topology.JobState {
	st := topology.JobState{
		Phase: topology.JobEnded, Digest: r.Digest, Mark: r.Mark, Tries: r.Tries, Interrupted: r.Interrupted,
		Began: r.Began, Ended: r.Ended, Result: r.Result, ExitCode: r.ExitCode, Signal: r.Signal, Output: r.Output, Truncated: r.Truncated,
	}
	if r.Ended.IsZero() {
		st.Phase = topology.JobRunning
	}
	return st
}

// readJob reads a record; there is none: the zero record. One that is damaged is a fault, because nobody can tell whether
// the job was run.
func readJob(path string) (r jobRecord, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		defer f.Close()
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(f, maxJobRecord+1)); err == nil {
			r, err = decodeJob(data)
		}
	}
	if err != nil {
		return jobRecord{}, topology.Faultf(topology.FaultOf(err).Code, "cannot tell whether the job was run: %v; if it may run again, remove %s", err, path)
	}
	return r, nil
}

func decodeJob(data []byte) (r jobRecord, err error) {
	if len(data) > maxJobRecord {
		return r, errors.New("its record is too long")
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return jobRecord{}, fmt.Errorf("its record is damaged: %w", err)
	}
	if r.Version != 1 || r.Digest == "" || len(r.Digest) > 128 || r.Tries < 1 || r.Interrupted < 0 || len(r.Mark) > 512 || len(r.Signal) > 32 {
		return jobRecord{}, errors.New("its record holds something else")
	}
	r.Output = topology.Excerpt(r.Output)
	switch r.Result {
	case topology.JobExited, topology.JobTimedOut, topology.JobKilled:
	case "":
		if !r.Ended.IsZero() {
			return jobRecord{}, errors.New("its record does not say how it ended")
		}
	default:
		return jobRecord{}, fmt.Errorf("it ended in a way that this version does not know: %.32q", r.Result)
	}
	return r, nil
}

// writeJob writes a record, durably.
func writeJob(path string, r jobRecord) error {
	r.Version = 1
	data, err := json.Marshal(r)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = in(path, func(dir *os.File) error {
			return atomicfile.Write(dir, filepath.Base(path), atomicfile.File{Content: data, Mode: 0o600})
		})
	}
	if err != nil {
		return topology.Faultf(topology.FaultOf(err).Code, "cannot write down what becomes of the job: %v", err)
	}
	return nil
}

// JobEnded writes down how a job ended. Systemd runs it when the processes of the job have
// ended, whatever has become of the agent, and tells in variables how: see ExecStopPost= in
// systemd.service(5). A job that somebody stopped, or that the device took down with it, was
// interrupted: its record stays as it is.
func JobEnded(ctx context.Context, path string, getenv func(string) string) error {
	r, err := readJob(path)
	if err != nil || r.Digest == "" || !r.Ended.IsZero() {
		return err
	}
	if err := r.ended(getenv("SERVICE_RESULT"), getenv("EXIT_CODE"), getenv("EXIT_STATUS")); err != nil {
		return err
	}
	if r.Result != topology.JobTimedOut && stopping(ctx, strings.TrimSuffix(filepath.Base(path), jobSuffix)+".service") {
		return nil
	}
	r.Ended = time.Now().UTC()
	r.Output, r.Truncated = jobOutput(ctx, getenv("INVOCATION_ID"))
	return writeJob(path, r)
}

// ended fills in how it ended, in the words of systemd.
func (r *jobRecord) ended(result, code, status string) error {
	switch {
	case result == "timeout":
		r.Result = topology.JobTimedOut
	case code == "killed" || code == "dumped":
		r.Result, r.Signal = topology.JobKilled, clean(status)
		if n, err := strconv.Atoi(status); err == nil {
			r.Signal = strings.TrimPrefix(unix.SignalName(unix.Signal(n)), "SIG")
		}
		r.Signal = r.Signal[:min(len(r.Signal), 32)]
	case code == "exited":
		n, err := strconv.ParseUint(status, 10, 8)
		if err != nil {
			return fmt.Errorf("cannot tell how the job ended: the service manager says the exit status is %.32q", status)
		}
		r.Result, r.ExitCode = topology.JobExited, int(n)
	default: // it did not get as far as a process
		return fmt.Errorf("cannot tell how the job ended: the service manager says %.32q, %.32q", result, code)
	}
	return nil
}

// stopping reports whether somebody wants a unit to stop, or the device goes down. Whoever
// cannot be asked goes down with it.
func stopping(ctx context.Context, unit string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := connect(ctx)
	if err != nil {
		return true
	}
	defer c.Close()
	get := func(path dbus.ObjectPath, of, name string, to any) error {
		return c.Object("org.freedesktop.systemd1", path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.systemd1."+of, name).Store(to)
	}
	var job struct {
		ID   uint32
		Path dbus.ObjectPath
	}
	if err := get(unitPath(unit), "Unit", "Job", &job); err != nil {
		return true
	}
	if job.ID == 0 {
		return false
	}
	// The order that started it is not over before this is.
	var kind string
	err = get(job.Path, "Job", "JobType", &kind)
	return err == nil && kind != "start"
}
