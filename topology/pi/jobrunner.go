package pi

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// A jobRunner runs things to their end: as transient units of systemd, so that a job lives on without
// the agent, and the usual tools show it and its words. What is known of a job is a record in
// the state directory, written before it begins and, by systemd, when it has ended.
type jobRunner struct {
	services   *services
	containers *containers
	dir        string   // of the records
	ended      []string // the program that writes how a job ended, see Options.JobEnded
	patience   time.Duration
}

const (
	jobSuffix = ".json"
	// jobPatience is how long RunJob waits for the end of a job.
	jobPatience = 10 * time.Second
	// jobStop is how long a job that is killed may take to end by itself.
	jobStop = 10 * time.Second
	// jobTitle begins the description of the unit of a job.
	jobTitle = "Continuo job "
	// maxJobs is how many records are kept: of more, those go that ended first.
	maxJobs = 256
)

func (j *jobRunner) record(name string) string { return filepath.Join(j.dir, name+jobSuffix) }

func checkJob(name string) error {
	if err := checkUnit(name + ".service"); err != nil || strings.HasPrefix(name, ".") {
		return topology.Faultf(topology.CodeInvalid, "%q is not the name of a job", name)
	}
	return nil
}

// Job tells what is known of a job. Only one whose end nobody wrote down is asked for.
func (j *jobRunner) Job(ctx context.Context, name string) (topology.JobState, error) {
	if err := checkJob(name); err != nil {
		return topology.JobState{}, err
	}
	if err := ctx.Err(); err != nil {
		return topology.JobState{}, topology.FaultOf(err)
	}
	if j.services.bus.below {
		return topology.JobState{}, errNoMachine
	}
	r, err := readJob(j.record(name))
	switch {
	case err != nil:
		return topology.JobState{}, err
	case r.Digest == "":
		return topology.JobState{Phase: topology.JobNever}, nil
	case !r.Ended.IsZero():
		return r.state(), nil
	}
	u, err := j.services.ask(ctx, name+".service")
	if err != nil {
		return topology.JobState{}, err
	}
	if runs(u) {
		return r.state(), nil
	}
	if r, err = readJob(j.record(name)); err != nil { // it may have ended just now
		return topology.JobState{}, err
	}
	st := r.state()
	if st.Phase == topology.JobRunning {
		st.Phase, st.Interrupted = topology.JobInterrupted, st.Interrupted+1
	}
	return st, nil
}

// runs tells whether a unit runs, is about to, or is about to have ended: systemd runs what writes
// that down.
func runs(u unitState) bool {
	return u.job != 0 || u.Active == "active" || u.Active == "activating" || u.Active == "deactivating" || u.Active == "reloading"
}

// PrepareJob brings the image of a job.
func (j *jobRunner) PrepareJob(ctx context.Context, c topology.JobConfig) error {
	if len(c.Exec) > 0 {
		return nil
	}
	_, err := j.containers.EnsureImage(ctx, topology.ImageRequest{Image: c.Container.Image})
	return err
}

// RunJob runs a job.
func (j *jobRunner) RunJob(ctx context.Context, c topology.JobConfig) error {
	if err := j.check(ctx, c); err != nil {
		return err
	}
	was, err := j.Job(ctx, c.Name)
	if err != nil {
		return err
	}
	unit := c.Name + ".service"
	if was.Phase != topology.JobRunning || was.Digest != c.Digest {
		if was.Phase == topology.JobRunning {
			if err := j.services.job(ctx, "stop", unit, stop, ""); err != nil {
				return err
			}
		}
		if err := j.begin(ctx, c, was); err != nil {
			return err
		}
	}
	return j.await(ctx, c)
}

// check refuses what cannot be run, before anything is touched.
func (j *jobRunner) check(ctx context.Context, c topology.JobConfig) error {
	if err := checkJob(c.Name); err != nil {
		return err
	}
	if c.Mark == "" || c.Digest == "" || len(c.Exec) == 0 && c.Container.Image == "" || len(c.Exec) > 0 && !filepath.IsAbs(c.Exec[0]) || c.Timeout <= 0 {
		return topology.Faultf(topology.CodeInvalid, "the job %s needs a mark, a digest, a timeout, and an image or the absolute path of a program", c.Name)
	}
	u, err := j.services.ask(ctx, c.Name+".service")
	if err != nil {
		return err
	}
	switch {
	case u.Load == topology.Masked:
		return masked("run", c.Name+".service")
	case u.Load == topology.NotFound:
	default:
		title, err := j.title(ctx, c.Name+".service")
		if err != nil {
			return err
		}
		if !strings.HasPrefix(title, jobTitle) {
			return topology.Faultf(topology.CodeForeign, "there is a unit %s.service that somebody else made; choose another name for the job", c.Name)
		}
	}
	if len(c.Exec) > 0 {
		return j.checkPlace(c)
	}
	if err := j.containers.available(ctx); err != nil {
		return err
	}
	found, err := j.containers.podman.inspect(ctx, c.Name)
	if err == nil && found != nil && found.Config.Labels[ownerLabel] == "" {
		return topology.Faultf(topology.CodeForeign, "the name %s is taken by container %.12s, which was made by somebody else; choose another name for the job", c.Name, found.ID)
	}
	if err != nil {
		return err
	}
	if digest, err := j.containers.podman.digest(ctx, c.Container.Image, c.Container.Image); err != nil {
		return err
	} else if digest == "" {
		return topology.Faultf(topology.CodeImage, "the image %s is not here; it is fetched before the job is run", c.Container.Image)
	}
	return nil
}

// checkPlace refuses a user or a directory that is not there: what writes down how a job ended is started like the job itself.
func (j *jobRunner) checkPlace(c topology.JobConfig) error {
	if c.User != "" {
		if _, err := j.services.files.accounts.user(c.User); err != nil {
			return err
		}
	}
	if c.WorkingDir == "" {
		return nil
	}
	st, err := os.Stat(c.WorkingDir)
	if err == nil && !st.IsDir() {
		err = unix.ENOTDIR
	}
	if err != nil {
		return topology.Faultf(topology.CodeInvalid, "the job %s cannot start in %s: %v", c.Name, c.WorkingDir, err)
	}
	return nil
}

func (j *jobRunner) title(ctx context.Context, unit string) (title string, err error) {
	err = j.services.bus.do(ctx, func(ctx context.Context, l *link) error {
		p, err := l.systemd.GetUnitPropertyContext(ctx, unit, "Description")
		if err == nil {
			title, _ = p.Value.Value().(string)
		}
		return err
	})
	if err != nil {
		return "", busFault("look at", unit, err)
	}
	return title, nil
}

// await waits for the end of a job, not for long.
func (j *jobRunner) await(ctx context.Context, c topology.JobConfig) error {
	changed, stop := j.services.changes(ctx, c.Name+".service")
	defer stop()
	over := time.NewTimer(j.patience)
	defer over.Stop()
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for {
		st, err := j.Job(ctx, c.Name)
		switch {
		case err != nil:
			return err
		case st.Phase == topology.JobInterrupted:
			return topology.Faultf(topology.CodeJobFailed, "the job %s was stopped before its end, or could not be started; journalctl -u %[1]s has the words of the service manager", c.Name)
		case st.Phase != topology.JobRunning:
			return st.Fault(c)
		}
		select {
		case _, ok := <-changed:
			if !ok {
				changed = nil
			}
		case <-ticker.C:
		case <-over.C:
			return nil
		case <-ctx.Done():
			return topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot wait for the job %s: %v; it goes on", c.Name, ctx.Err())
		}
	}
}

// prune drops the oldest records, so that they do not pile up over the years.
func (j *jobRunner) prune(but string) {
	entries, _ := os.ReadDir(j.dir)
	if len(entries) < maxJobs {
		return
	}
	oldest, when := "", time.Now()
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), jobSuffix)
		r, err := readJob(filepath.Join(j.dir, e.Name()))
		if ok && name != but && err == nil && !r.Ended.IsZero() && r.Ended.Before(when) {
			oldest, when = e.Name(), r.Ended
		}
	}
	if oldest != "" {
		_ = os.Remove(filepath.Join(j.dir, oldest))
	}
}
