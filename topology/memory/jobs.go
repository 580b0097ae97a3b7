package memory

import (
	"context"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// A JobEnd is how the runs of a job end. The zero value ends well, at once, and so does a job that nobody
// told of, unless its program is known.
type JobEnd struct {
	Runs     bool // it runs on, until EndJob
	Result   topology.JobResult
	ExitCode int
	Signal   string
	Output   string
}

type jobs struct{ d *Device }

func jobResource(name string) topology.Resource { return topology.Resource("job:" + name) }

func (j jobs) Job(ctx context.Context, name string) (topology.JobState, error) {
	if err := j.d.control.call(ctx, OpJob, jobResource(name)); err != nil {
		return topology.JobState{}, err
	}
	j.d.mu.Lock()
	defer j.d.mu.Unlock()
	st := j.d.jobs[name]
	if st.Phase == "" {
		st.Phase = topology.JobNever
	}
	return st, nil
}

func (j jobs) PrepareJob(ctx context.Context, c topology.JobConfig) error {
	if len(c.Exec) > 0 {
		return nil
	}
	_, err := j.d.Containers().EnsureImage(ctx, topology.ImageRequest{Image: c.Container.Image})
	return err
}

func (j jobs) RunJob(ctx context.Context, c topology.JobConfig) error {
	if err := j.d.control.call(ctx, OpRunJob, jobResource(c.Name)); err != nil {
		return err
	}
	j.d.mu.Lock()
	defer j.d.mu.Unlock()
	switch {
	case c.Name == "" || len(c.Exec) == 0 && c.Container.Image == "" || c.Mark == "" || c.Digest == "":
		return topology.Faultf(topology.CodeInvalid, "a job needs a name, a mark, a digest, and something to run")
	case len(c.Exec) == 0 && !j.d.hasImage(c.Container.Image):
		return topology.Faultf(topology.CodeImage, "the image %s is not here", c.Container.Image)
	}
	if j.d.files[vendorDir+c.Name+".service"] != nil || j.d.files["/etc/systemd/system/"+c.Name+".service"] != nil {
		return topology.Faultf(topology.CodeForeign, "the unit %s.service is somebody else's", c.Name)
	}
	was := j.d.jobs[c.Name]
	if was.Phase == topology.JobRunning && was.Digest == c.Digest {
		return nil
	}
	now := topology.JobState{Phase: topology.JobRunning, Digest: c.Digest, Mark: c.Mark, Tries: 1, Began: time.Now()}
	if was.Digest == c.Digest {
		now.Tries, now.Interrupted = was.Tries+1, was.Interrupted
		if was.Phase == topology.JobInterrupted {
			now.Tries = was.Tries
		}
	}
	j.d.jobs[c.Name] = now
	j.d.jobRuns[c.Name]++
	end, told := j.d.jobEnds[c.Name]
	if p, known := j.d.programs[first(c.Exec)]; known && !told {
		end = JobEnd{Runs: !p.Exits, ExitCode: p.Status}
	}
	if !end.Runs {
		j.d.endJob(c.Name, end)
	}
	j.d.changed(jobResource(c.Name))
	return j.d.jobs[c.Name].Fault(c)
}

func first(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

func (d *Device) endJob(name string, end JobEnd) {
	st := d.jobs[name]
	st.Phase, st.Result, st.ExitCode, st.Signal, st.Ended = topology.JobEnded, end.Result, end.ExitCode, end.Signal, time.Now()
	st.Output, st.Truncated = topology.Excerpt(end.Output), topology.Exceeds(end.Output)
	if st.Result == "" {
		st.Result = topology.JobExited
	}
	d.jobs[name] = st
}

// JobEnds says how runs of a job end, from the next on.
func (d *Device) JobEnds(name string, end JobEnd) { d.hands(func() { d.jobEnds[name] = end }) }

// EndJob ends a run that is under way.
func (d *Device) EndJob(name string, end JobEnd) {
	d.hands(func() {
		d.endJob(name, end)
		d.changed(jobResource(name))
	})
}

// InterruptJob is what a power cut, or somebody who stops it, does to a run that is under way.
func (d *Device) InterruptJob(name string) {
	d.hands(func() {
		st := d.jobs[name]
		st.Phase = topology.JobInterrupted
		st.Interrupted++
		d.jobs[name] = st
		d.changed(jobResource(name))
	})
}

// JobRuns counts the runs of a job that began.
func (d *Device) JobRuns(name string) (n int) {
	d.hands(func() { n = d.jobRuns[name] })
	return n
}
