package pi

import (
	"context"
	"slices"
	"strings"
	"time"

	sdbus "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// begin writes down that a job begins, and starts it.
func (j *jobRunner) begin(ctx context.Context, c topology.JobConfig, was topology.JobState) error {
	r := jobRecord{Digest: c.Digest, Mark: c.Mark, Tries: 1, Began: time.Now().UTC()}
	if was.Digest == c.Digest {
		r.Tries, r.Interrupted = was.Tries, was.Interrupted
		if was.Phase == topology.JobEnded {
			r.Tries++
		}
	}
	if len(c.Exec) == 0 {
		given := c.Container
		given.Name, given.Mark = c.Name, c.Mark
		if err := j.containers.giveSecrets(ctx, given); err != nil {
			return err
		}
		if err := j.containers.dropSecrets(ctx, c.Name, given); err != nil {
			return err
		}
	}
	j.prune(c.Name)
	if err := writeJob(j.record(c.Name), r); err != nil {
		return err
	}
	unit := c.Name + ".service"
	if err := j.services.reset(ctx, unit); err != nil {
		return err
	}
	for again := time.Now().Add(patience); ; {
		err := j.services.bus.do(ctx, func(ctx context.Context, l *link) error {
			_, err := l.systemd.StartTransientUnitContext(ctx, unit, "fail", j.unit(c), nil)
			return err
		})
		if errorName(err) != "org.freedesktop.systemd1.UnitExists" {
			if err != nil {
				return busFault("run", "the job "+c.Name, err)
			}
			return nil
		}
		// It was asked twice, over a bus that restarted; or the run before is not quite forgotten.
		u, err := j.services.ask(ctx, unit)
		switch {
		case err != nil:
			return err
		case runs(u):
			return nil
		case time.Now().After(again):
			return topology.Faultf(topology.CodeJobFailed, "cannot run the job %s: systemd does not let go of its last run; systemctl reset-failed %[1]s helps", c.Name)
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
			return topology.FaultOf(ctx.Err())
		}
	}
}

// A command is one of a unit, as D-Bus takes it, with what is special about it.
type command struct {
	Path  string
	Argv  []string
	Flags []string
}

func commandOf(argv []string, flags ...string) command {
	return command{argv[0], argv, append([]string{}, flags...)} // nothing is not null there
}

// unit is the transient unit of a job. Arguments reach the program as they are: nothing of them is a variable.
func (j *jobRunner) unit(c topology.JobConfig) (out []sdbus.Property) {
	property := func(name string, v any) { out = append(out, sdbus.Property{Name: name, Value: dbus.MakeVariant(v)}) }
	property("Description", jobTitle+c.Name+" of "+string(c.Mark))
	property("Type", "oneshot")
	property("TimeoutStartUSec", uint64(c.Timeout/time.Microsecond))
	property("TimeoutStopUSec", uint64(jobStop/time.Microsecond))
	property("KillMode", "mixed")
	property("SyslogIdentifier", c.Name)
	codes := []int32{}
	for _, code := range c.Success {
		if code > 0 && code < 256 {
			codes = append(codes, int32(code))
		}
	}
	if len(codes) > 0 {
		property("SuccessExitStatus", struct{ Codes, Signals []int32 }{codes, []int32{}})
	}
	after := []command{commandOf(append(slices.Clone(j.ended), j.record(c.Name)), "privileged", "no-env-expand")}
	if len(c.Exec) > 0 {
		property("ExecStartEx", []command{commandOf(c.Exec, "no-env-expand")})
		if len(c.Env) > 0 {
			property("Environment", c.Env)
		}
		if c.User != "" {
			property("User", c.User)
		}
		if c.WorkingDir != "" {
			property("WorkingDirectory", c.WorkingDir)
		}
	} else {
		property("ExecStartEx", []command{commandOf(podmanRun(c), "no-env-expand")})
		property("Delegate", true)
		// Of one that was killed with its monitor, podman at first only finds out that it is dead.
		remove := commandOf([]string{podmanProgram, "rm", "--volumes", "--force", "--ignore", "--time=0", c.Name}, "ignore-failure", "no-env-expand")
		after = append([]command{remove, remove}, after...)
	}
	property("ExecStopPostEx", after)
	return out
}

// podmanRun runs a container to its end: in the group of the unit, replacing what a crash left
// of it, and with its output in the journal of the unit.
func podmanRun(c topology.JobConfig) []string {
	k := c.Container
	out := strings.Fields(initRun)
	option := func(name, value string) { out = append(out, "--"+name+"="+value) }
	option("name", c.Name)
	option("label", ownerLabel+"="+string(c.Mark))
	if k.Network != "" {
		option("network", k.Network)
	}
	if k.User != "" {
		option("user", k.User)
	}
	if k.WorkingDir != "" {
		option("workdir", k.WorkingDir)
	}
	if len(k.Entrypoint) > 0 {
		if s, ok := asOne(k.Entrypoint); ok {
			option("entrypoint", s)
		}
	}
	for _, e := range k.Env {
		option("env", e)
	}
	for _, s := range k.Secrets {
		option("secret", secretOption(c.Name, s))
	}
	for _, v := range k.Volumes {
		option("volume", v)
	}
	return append(append(out, k.Image), k.Command...)
}
