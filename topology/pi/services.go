package pi

import (
	"context"
	"encoding/hex"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/continuo-fleet/continuo/topology"
)

// unitDir is where definitions of manifests live.
const unitDir = "/etc/systemd/system/"

// services is a manager of systemd: that of the system, or that of a user.
type services struct {
	bus     *bus
	files   *files
	reload  *reloader
	settle  time.Duration
	user    string   // whose manager it is; empty: that of the system
	uid     int      // his number
	gone    error    // that there is no such user, and files are all that is left; nil: there is
	dir     string   // where definitions of manifests live
	cgroup  string   // directory of its control group
	runs    string   // directory of what is known of runs
	journal *journal // what units write
	given   sync.Map // unit: uint32, the last job of ours for it
}

// Service returns the state of a unit. What is on disk is there even if the manager of a
// user does not run.
func (s *services) Service(ctx context.Context, unit string) (topology.ServiceState, error) {
	u, err := s.observe(ctx, unit)
	if err != nil && (s.user == "" || topology.FaultOf(err).Code != topology.CodeUnavailable) && !noUser(err) {
		return topology.ServiceState{}, err
	}
	st := u.ServiceState
	if err != nil {
		st.Load, st.Active, st.Sub = topology.NotFound, "inactive", "dead"
	}
	var ferr error
	if st.Definition, ferr = s.files.File(ctx, s.dir+unit); ferr == nil {
		if st.DropIns, ferr = s.dropIns(ctx, unit, u.dropIns); ferr == nil {
			st.Ran, ferr = s.ran(ctx, unit)
		}
	}
	if ferr != nil {
		return topology.ServiceState{}, ferr
	}
	return st, err
}

// checkUnit refuses names that systemd would not take, before it is asked.
func checkUnit(unit string) error {
	ok := len(unit) <= 255 && strings.LastIndexByte(unit, '.') > 0 && path.Base(unit) == unit
	for i := 0; ok && i < len(unit); i++ {
		c := unit[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte(":-_.\\@", c) >= 0
	}
	if !ok || strings.Contains(unit, "@.") {
		return topology.Faultf(topology.CodeInvalid, "%q is not the name of a unit, such as kiosk.service", unit)
	}
	return nil
}

// unitState is a unit as systemd has it.
type unitState struct {
	topology.ServiceState
	sourcePath string   // the file a generator made it from
	dropIns    []string // that were loaded
	names      []string // that it has
	job        uint32   // 0: none
}

func (s *services) ask(ctx context.Context, unit string) (unitState, error) {
	var u unitState
	err := s.bus.do(ctx, func(ctx context.Context, l *link) (err error) {
		// The state of the unit file is asked for by itself: the property of the unit is
		// as old as the last reload. Both questions travel together.
		manager := l.calls.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
		file := manager.GoWithContext(ctx, "org.freedesktop.systemd1.Manager.GetUnitFileState", 0, make(chan *dbus.Call, 1), unit)
		if u, err = query(ctx, l, unit); err != nil {
			return err
		}
		<-file.Done
		if file.Err != nil && transient(file.Err) {
			return file.Err
		}
		u.Enabled = ""
		if file.Err == nil && u.Load != topology.NotFound {
			return file.Store(&u.Enabled)
		}
		return nil
	})
	if err != nil {
		return unitState{}, busFault("read", unit, err)
	}
	return u, nil
}

// everything is what a call for all properties gave. There are hundreds, and Store would copy each of them.
func everything(call *dbus.Call) (properties, error) {
	if call.Err != nil {
		return nil, call.Err
	}
	var p properties
	if len(call.Body) == 1 {
		if all, ok := call.Body[0].(map[string]dbus.Variant); ok {
			return all, nil
		}
	}
	return p, call.Store(&p) // says what is wrong with it
}

// unitProperties are those that query reads.
var unitProperties = []string{
	"LoadState", "ActiveState", "SubState", "Type", "MainPID", "NRestarts", "Result", "ExecMainCode", "ExecMainStatus", "FragmentPath", "SourcePath",
	"RemainAfterExit", "CanReload", "NeedDaemonReload", "DropInPaths", "Names", "Triggers", "TriggeredBy", "InvocationID", "Job",
	"ActiveEnterTimestamp", "ActiveExitTimestamp", "InactiveEnterTimestamp", "InactiveExitTimestamp",
	"MemoryMax", "TasksMax", "IOWeight", "CPUQuotaPerSecUSec",
}

// query asks for all properties of a unit at once. A unit that is not loaded is loaded
// by the question, and dropped again if it is idle.
func query(ctx context.Context, l *link, unit string) (unitState, error) {
	call := l.units.Object("org.freedesktop.systemd1", unitPath(unit)).
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", 0, "")
	p, err := everything(call)
	if err != nil {
		return unitState{}, err
	}
	u := unitState{
		ServiceState: topology.ServiceState{
			Load: p.text("LoadState"), Active: p.text("ActiveState"), Sub: p.text("SubState"),
			Type: p.text("Type"), MainPID: int(p.number("MainPID")), Restarts: uint32(p.number("NRestarts")), Result: p.text("Result"),
			ExitCode: exitCode(p.number("ExecMainCode"), p.number("ExecMainStatus")),
			Source:   p.text("FragmentPath"),
		},
		sourcePath: p.text("SourcePath"),
	}
	if !strings.HasSuffix(unit, ".service") {
		u.Type = "" // Type= of a mount is its file system
	}
	u.Remain, _ = p["RemainAfterExit"].Value().(bool)
	u.CanReload, _ = p["CanReload"].Value().(bool)
	u.Stale, _ = p["NeedDaemonReload"].Value().(bool)
	u.dropIns, _ = p["DropInPaths"].Value().([]string)
	u.names, _ = p["Names"].Value().([]string)
	u.Triggers, u.TriggeredBy = p.names("Triggers"), p.names("TriggeredBy")
	if u.Type != "" {
		u.Limits = p.limits()
	}
	if id, _ := p["InvocationID"].Value().([]byte); len(id) > 0 {
		u.Invocation = hex.EncodeToString(id)
	}
	stamp := map[string]string{
		"active": "ActiveEnterTimestamp", "reloading": "ActiveEnterTimestamp", "refreshing": "ActiveEnterTimestamp",
		"inactive": "InactiveEnterTimestamp", "failed": "InactiveEnterTimestamp", "maintenance": "InactiveEnterTimestamp",
		"activating": "InactiveExitTimestamp", "deactivating": "ActiveExitTimestamp",
	}[u.Active]
	if us := p.number(stamp); us > 0 {
		u.Since = time.UnixMicro(us)
	}
	if job, _ := p["Job"].Value().([]any); len(job) > 0 {
		u.job, _ = job[0].(uint32)
	}
	return u, nil
}

// exitCode is the status of a process, as a shell gives it: 128 and the signal for one
// that was killed.
func exitCode(code, status int64) int {
	if code == 2 || code == 3 { // CLD_KILLED, CLD_DUMPED
		return 128 + int(status)
	}
	return int(status)
}

type properties map[string]dbus.Variant

func (p properties) text(name string) string {
	s, _ := p[name].Value().(string)
	return s
}

func (p properties) number(name string) int64 {
	switch v := p[name].Value().(type) {
	case int32:
		return int64(v)
	case int64:
		return v
	case uint32:
		return int64(v)
	case uint64:
		return int64(v)
	}
	return 0
}

// names is a list of units, sorted; nil if it is empty.
func (p properties) names(name string) []string {
	list, _ := p[name].Value().([]string)
	if len(list) == 0 {
		return nil
	}
	slices.Sort(list)
	return list[:min(len(list), 64)]
}

// limits are the bounds of a unit. One that is not set is the largest number, which is negative here.
func (p properties) limits() (l topology.UnitLimits) {
	bound := func(name string) uint64 { return uint64(max(p.number(name), 0)) }
	l.Memory, l.Tasks, l.IOWeight = bound("MemoryMax"), bound("TasksMax"), bound("IOWeight")
	l.CPU = uint32(min(bound("CPUQuotaPerSecUSec")/10_000, 1<<31))
	return l
}

// usable says why nothing can be done with a unit.
func (u unitState) usable(verb, unit string) error {
	switch u.Load {
	case topology.Loaded, "merged":
		return nil
	case topology.NotFound:
		return topology.Faultf(topology.CodeInvalid, "cannot %s %s: there is no such unit", verb, unit)
	case topology.Masked:
		return masked(verb, unit)
	}
	return topology.Faultf(topology.CodeDefinition, "cannot %s %s: systemd does not accept its definition (%s); systemd-analyze verify %s says why", verb, unit, u.Load, unit)
}
