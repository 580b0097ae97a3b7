package memory

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/continuo-fleet/continuo/topology"
)

// An Op is a method of a capability.
type Op string

// Operations, named as the methods are.
const (
	OpFile            Op = "File"
	OpContent         Op = "Content"
	OpWriteFile       Op = "WriteFile"
	OpSetAttributes   Op = "SetAttributes"
	OpRemoveFile      Op = "RemoveFile"
	OpDigest          Op = "Digest"
	OpResolve         Op = "Resolve"
	OpEntries         Op = "Entries"
	OpMakeDirectory   Op = "MakeDirectory"
	OpRemoveDirectory Op = "RemoveDirectory"
	OpMakeSymlink     Op = "MakeSymlink"
	OpRemoveSymlink   Op = "RemoveSymlink"
	OpService         Op = "Service"
	OpDefine          Op = "Define"
	OpUndefine        Op = "Undefine"
	OpSetEnabled      Op = "SetEnabled"
	OpStart           Op = "Start"
	OpStop            Op = "Stop"
	OpRestart         Op = "Restart"
	OpReload          Op = "Reload"
	OpRunOnce         Op = "RunOnce"
	OpRemoveDropIn    Op = "RemoveDropIn"
	OpUnmask          Op = "Unmask"
	OpLog             Op = "Log"
	OpControllers     Op = "Controllers"
	OpLingers         Op = "Lingers"
	OpSetLinger       Op = "SetLinger"
	OpContainer       Op = "Container"
	OpAllContainers   Op = "AllContainers"
	OpImage           Op = "Image"
	OpEnsureImage     Op = "EnsureImage"
	OpUseNewest       Op = "UseNewest"
	OpCollectImages   Op = "CollectImages"

	OpVolume                 Op = "Volume"
	OpMakeVolume             Op = "MakeVolume"
	OpRemoveVolume           Op = "RemoveVolume"
	OpContainerNetwork       Op = "ContainerNetwork"
	OpMakeContainerNetwork   Op = "MakeContainerNetwork"
	OpRemoveContainerNetwork Op = "RemoveContainerNetwork"

	OpRun             Op = "Run"
	OpRestartRun      Op = "RestartContainer" // Restart of the container capability
	OpReloadRun       Op = "ReloadContainer"  // Reload of the container capability
	OpRemoveContainer Op = "RemoveContainer"
	OpHostname        Op = "Hostname"
	OpSetHostname     Op = "SetHostname"
	OpConnect         Op = "Connect"

	OpTime              Op = "Time"
	OpSetTimezone       Op = "SetTimezone"
	OpSetTimeServers    Op = "SetTimeServers"
	OpRemoveTimeServers Op = "RemoveTimeServers"
	OpSetTimeSync       Op = "SetTimeSync"

	OpFirewall           Op = "Firewall"
	OpSetFirewall        Op = "SetFirewall"
	OpRemoveFirewall     Op = "RemoveFirewall"
	OpCheckpointFirewall Op = "CheckpointFirewall"
	OpCommitFirewall     Op = "CommitFirewall"
	OpRollbackFirewall   Op = "RollbackFirewall"

	OpConnection        Op = "Connection"
	OpSetConnection     Op = "SetConnection"
	OpRemoveConnection  Op = "RemoveConnection"
	OpCheckpointNetwork Op = "CheckpointNetwork"
	OpCommitNetwork     Op = "CommitNetwork"
	OpRollbackNetwork   Op = "RollbackNetwork"

	OpGet        Op = "Get"
	OpModified   Op = "Modified"
	OpFacts      Op = "Facts"
	OpSecret     Op = "Secret"
	OpHasBlob    Op = "HasBlob"
	OpFetchBlob  Op = "FetchBlob"
	OpOpenBlob   Op = "OpenBlob"
	OpTool       Op = "Tool"
	OpJob        Op = "Job"
	OpPrepareJob Op = "PrepareJob"
	OpRunJob     Op = "RunJob"
)

// A Call is one call of a capability.
type Call struct {
	Op       Op
	Resource topology.Resource // an image is "image:REFERENCE", a secret "secret:NAME", a content "blob:SHA256", a TCP address "tcp:HOST:PORT", a URL itself
	Mutates  bool              // it may change the device; EnsureImage and FetchBlob do if it is not here
}

// A Capability is a part of the device that can be dead as a whole.
type Capability string

// Capabilities.
const (
	Files      Capability = "files"
	Services   Capability = "services"
	Containers Capability = "containers"
	Host       Capability = "host"
	Probes     Capability = "probes"
	Firewall   Capability = "firewall"
	Time       Capability = "time"
	Facts      Capability = "facts"
	Tools      Capability = "tools"
	Jobs       Capability = "jobs"
	Secrets    Capability = "secrets"
	Blobs      Capability = "blobs"
	Network    Capability = "network"
)

var reads = map[Op]bool{
	OpVolume: true, OpContainerNetwork: true,
	OpDigest: true, OpResolve: true, OpEntries: true,
	OpFile: true, OpContent: true, OpService: true, OpContainer: true, OpAllContainers: true, OpHostname: true,
	OpFirewall: true, OpTime: true, OpConnection: true,
	OpConnect: true, OpGet: true, OpModified: true, OpFacts: true, OpTool: true, OpJob: true,
	OpLog: true, OpControllers: true, OpLingers: true,
	OpSecret: true, OpHasBlob: true, OpOpenBlob: true,
}

func (o Op) capability() Capability {
	switch o {
	case OpFile, OpContent, OpDigest, OpResolve, OpEntries, OpWriteFile, OpSetAttributes, OpRemoveFile,
		OpMakeDirectory, OpRemoveDirectory, OpMakeSymlink, OpRemoveSymlink:
		return Files
	case OpContainer, OpAllContainers, OpImage, OpEnsureImage, OpUseNewest, OpCollectImages,
		OpVolume, OpMakeVolume, OpRemoveVolume, OpContainerNetwork, OpMakeContainerNetwork, OpRemoveContainerNetwork, OpRun, OpRestartRun, OpReloadRun, OpRemoveContainer:
		return Containers
	case OpHostname, OpSetHostname:
		return Host
	case OpTime, OpSetTimezone, OpSetTimeServers, OpRemoveTimeServers, OpSetTimeSync:
		return Time
	case OpFirewall, OpSetFirewall, OpRemoveFirewall, OpCheckpointFirewall, OpCommitFirewall, OpRollbackFirewall:
		return Firewall
	case OpConnect, OpGet, OpModified:
		return Probes
	case OpFacts:
		return Facts
	case OpTool:
		return Tools
	case OpJob, OpPrepareJob, OpRunJob:
		return Jobs
	case OpSecret:
		return Secrets
	case OpHasBlob, OpFetchBlob, OpOpenBlob:
		return Blobs
	case OpConnection, OpSetConnection, OpRemoveConnection, OpCheckpointNetwork, OpCommitNetwork, OpRollbackNetwork:
		return Network
	}
	return Services
}

// control is what tests do to the calls of an agent. It has a lock of its own, so that
// a call that hangs holds nothing.
type control struct {
	mu        sync.Mutex
	faults    []fault
	dead      map[Capability]string
	recorders []*Recorder
	hook      func(context.Context, Call) error
}

type fault struct {
	op   Op
	res  topology.Resource
	err  error
	once bool
}

// Fail makes op on resource fail with err until Heal is called. An empty op or
// resource stands for all of them. The call has no effect.
func (d *Device) Fail(op Op, resource topology.Resource, err error) {
	d.control.add(fault{op, resource, err, false})
}

// FailOnce makes the next call of op on resource fail with err. Several of them fail
// as many calls.
func (d *Device) FailOnce(op Op, resource topology.Resource, err error) {
	d.control.add(fault{op, resource, err, true})
}

// Heal takes back every Fail, FailOnce and Unavailable, and the hook.
func (d *Device) Heal() {
	c := &d.control
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults, c.dead, c.hook = nil, nil, nil
}

// Unavailable makes a capability dead, as when its socket is gone.
func (d *Device) Unavailable(c Capability, why string) {
	d.control.mu.Lock()
	defer d.control.mu.Unlock()
	if d.control.dead == nil {
		d.control.dead = map[Capability]string{}
	}
	d.control.dead[c] = why
}

// Before calls hook before each call of a capability takes effect. The hook may block,
// until its context ends, and fail the call. There is one hook; nil takes it away.
func (d *Device) Before(hook func(context.Context, Call) error) {
	d.control.mu.Lock()
	defer d.control.mu.Unlock()
	d.control.hook = hook
}

// A Recorder lists the calls of capabilities since it was made, those that failed as well.
type Recorder struct {
	c     *control
	calls []Call
}

// Record starts a recorder.
func (d *Device) Record() *Recorder {
	c := &d.control
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &Recorder{c: c}
	c.recorders = append(c.recorders, r)
	return r
}

// Calls lists all calls.
func (r *Recorder) Calls() []Call {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return slices.Clone(r.calls)
}

// Mutations lists the calls that may have changed the device.
func (r *Recorder) Mutations() []Call {
	return slices.DeleteFunc(r.Calls(), func(c Call) bool { return !c.Mutates })
}

// Reset forgets what was recorded.
func (r *Recorder) Reset() {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.calls = nil
}

func (c *control) add(f fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
}

// call stands in front of every call of a capability.
func (c *control) call(ctx context.Context, op Op, res topology.Resource) error {
	return c.enter(ctx, Call{op, res, !reads[op]})
}

func (c *control) enter(ctx context.Context, call Call) error {
	hook, err := c.note(call)
	if hook != nil && err == nil {
		err = hook(ctx, call)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return topology.FaultOf(err)
	}
	return nil
}

// note records the call and finds the fault that waits for it.
func (c *control) note(call Call) (hook func(context.Context, Call) error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.recorders {
		r.calls = append(r.calls, call)
	}
	if why, dead := c.dead[call.Op.capability()]; dead {
		return nil, topology.Faultf(topology.CodeUnavailable, "%s", why)
	}
	for i, f := range c.faults {
		if (f.op == "" || f.op == call.Op) && (f.res == "" || f.res == call.Resource) {
			if f.once {
				c.faults = slices.Delete(c.faults, i, i+1)
			}
			return nil, f.err
		}
	}
	return c.hook, nil
}

func fileResource(path string) topology.Resource { return topology.Resource("file:" + path) }

func unitResource(name string) topology.Resource { return topology.Resource("unit:" + name) }

func containerResource(name string) topology.Resource { return topology.Resource("container:" + name) }

// unitOfPath names the unit that a file defines or adds to, if it does; that of every user is "*/" and its name.
func unitOfPath(path string) (string, bool) {
	for _, dirs := range [][]string{unitDirs, userDirs} {
		for _, dir := range dirs {
			rest, ok := strings.CutPrefix(path, dir)
			if !ok {
				continue
			}
			name, _, inside := strings.Cut(rest, "/")
			if inside {
				name = strings.TrimSuffix(name, ".d")
			}
			if dirs[0] == userDir {
				return anyUser + name, name != ""
			}
			return name, name != ""
		}
	}
	if rest, ok := strings.CutPrefix(path, containerDir); ok {
		if name, ok := strings.CutSuffix(rest, ".container"); ok {
			return unitOf(name), true
		}
	}
	return "", false
}

// anyUser stands before the name of a unit for the user in it.
const anyUser = "*/"

// sameUnit reports whether a resource that changed is one that is watched.
func sameUnit(want, changed topology.Resource) bool {
	if want == changed {
		return true
	}
	name, ok := strings.CutPrefix(string(changed), string(unitResource(anyUser)))
	return ok && strings.HasPrefix(string(want), "unit:") && strings.HasSuffix(string(want), "/"+name)
}
