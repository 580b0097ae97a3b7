package memory

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// manages reports why nobody can speak to the service manager of a unit. The lock is held.
func (d *Device) manages(ref string) error {
	user, _, ok := strings.Cut(ref, "/")
	if !ok || d.lingers[user] {
		return nil
	}
	if _, known := d.users[user]; !known {
		return topology.Faultf(topology.CodeNoAccount, "the device has no user %q", user)
	}
	return topology.Faultf(topology.CodeUnavailable, "the service manager of %s does not run: loginctl enable-linger %s", user, user)
}

// isGone reports whether a fault says that the user of a unit is gone.
func isGone(err error) bool {
	return err != nil && topology.FaultOf(err).Code == topology.CodeNoAccount
}

func (s services) Define(ctx context.Context, def topology.Definition) error {
	if err := s.d.control.call(ctx, OpDefine, unitResource(def.Unit)); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.manages(def.Unit); isGone(err) {
		return err
	}
	p := definedAt(def.Unit)
	if n := s.d.files[p]; n != nil && n.typ == topology.Symlink && n.target == "/dev/null" && def.DropIn == "" {
		return masked(def.Unit)
	}
	if def.DropIn != "" {
		p += ".d/" + def.DropIn + ".conf"
	}
	return s.d.write(topology.FileWrite{Path: p, Content: def.Text, Mode: 0o644, Mark: def.Mark, Replaces: def.Replaces})
}

func (s services) Undefine(ctx context.Context, ref string) error {
	if err := s.d.control.call(ctx, OpUndefine, unitResource(ref)); err != nil {
		return err
	}
	if err := s.d.loads(ctx, ref); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.manages(ref); err != nil && !isGone(err) {
		return err
	}
	for _, in := range s.d.dropIns(ref) {
		if in.Name != "" {
			if err := s.d.remove(in.Path); err != nil {
				return err
			}
		}
	}
	u := s.d.unit(ref)
	if u.ran = nil; s.d.files[definedAt(ref)] == nil {
		s.d.manager.debts.Defer(debtor(ref))
		return nil
	}
	if err := s.d.remove(definedAt(ref)); err != nil {
		return err
	}
	s.d.halt(ref, u)
	s.d.letGo(ctx, ref)
	u.persistent, u.runtime = false, false
	if u.active == "failed" {
		s.d.become(ref, u, "inactive", "dead")
	}
	return nil
}

func (s services) RemoveDropIn(ctx context.Context, ref, name string) error {
	if err := s.d.control.call(ctx, OpRemoveDropIn, unitResource(ref)); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	p := definedAt(ref) + ".d/" + name + ".conf"
	for _, in := range s.d.dropIns(ref) {
		if in.Path == p && in.Name == "" {
			return topology.Faultf(topology.CodeForeign, "%s was written by somebody else", p)
		}
	}
	if s.d.files[p] == nil {
		return nil
	}
	return s.d.remove(p)
}

func (s services) Unmask(ctx context.Context, ref string) error {
	if err := s.d.control.call(ctx, OpUnmask, unitResource(ref)); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	dirs, name := place(ref)
	for _, dir := range dirs {
		n := s.d.files[dir+name]
		if n != nil && (n.typ == topology.Symlink && n.target == "/dev/null" || n.typ == topology.Regular && len(n.content) == 0) {
			n.links--
			delete(s.d.files, dir+name)
			s.d.changed(fileResource(dir + name))
		}
	}
	return nil
}

func (s services) Log(ctx context.Context, ref, invocation string) (string, error) {
	if err := s.d.control.call(ctx, OpLog, unitResource(ref)); err != nil {
		return "", err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if u := s.d.units[ref]; u != nil && u.invocation == invocation {
		return topology.Excerpt(u.log), nil
	}
	return "", nil
}

func (s services) Controllers(ctx context.Context, ref string) (have []string, err error) {
	if err := s.d.control.call(ctx, OpControllers, unitResource(ref)); err != nil {
		return nil, err
	}
	s.d.hands(func() { have = s.d.controllers() })
	return have, nil
}

// controllers are those that the kernel has.
func (d *Device) controllers() (have []string) {
	for _, c := range []string{topology.ControlCPU, topology.ControlIO, topology.ControlMemory, topology.ControlTasks} {
		if !d.controllersOff[c] {
			have = append(have, c)
		}
	}
	return have
}

func (s services) Lingers(ctx context.Context, user string) (on bool, err error) {
	if err := s.d.control.call(ctx, OpLingers, topology.Resource("user:"+user)); err != nil {
		return false, err
	}
	s.d.hands(func() {
		if _, known := s.d.users[user]; !known {
			err = topology.Faultf(topology.CodeNoAccount, "the device has no user %q", user)
		}
		on = s.d.lingers[user]
	})
	return on, err
}

func (s services) SetLinger(ctx context.Context, user string, on bool) error {
	if err := s.d.control.call(ctx, OpSetLinger, topology.Resource("user:"+user)); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if _, known := s.d.users[user]; !known {
		return topology.Faultf(topology.CodeNoAccount, "the device has no user %q", user)
	}
	s.d.linger(user, on)
	return nil
}

func (s services) Reload(ctx context.Context, ref string) error {
	if err := s.d.control.call(ctx, OpReload, unitResource(ref)); err != nil {
		return err
	}
	if err := s.d.acts(ctx, ref); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.manages(ref); err != nil {
		return err
	}
	def, u := s.d.load(ref), s.d.unit(ref)
	if err := usable(ref, def); err != nil {
		return err
	}
	switch {
	case !def.reload && def.typ != "notify-reload":
		return topology.Faultf(topology.CodeInvalid, "cannot reload %s: it does not know how", ref)
	case u.active != "active":
		return topology.Faultf(topology.CodeJobFailed, "cannot reload %s: it is %s", ref, u.active)
	}
	s.d.changed(unitResource(ref))
	return nil
}

func (s services) RunOnce(ctx context.Context, ref, digest string) error {
	if err := s.d.control.call(ctx, OpRunOnce, unitResource(ref)); err != nil {
		return err
	}
	if err := s.d.acts(ctx, ref); err != nil {
		return err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	if err := s.d.manages(ref); err != nil {
		return err
	}
	def, u := s.d.load(ref), s.d.unit(ref)
	if err := usable(ref, def); err != nil {
		return err
	}
	if def.typ != "oneshot" || def.remain {
		return topology.Faultf(topology.CodeInvalid, "cannot run %s to its end: it is no oneshot, or remains after it", ref)
	}
	if u.active != "activating" {
		s.d.launch(ref, def, u)
	}
	if u.active == "activating" {
		if err := s.d.await(ctx, ref, u); err != nil {
			return err
		}
	}
	u.ran = &topology.Run{Digest: digest, Invocation: u.invocation, Ended: time.Now(), Result: u.result, ExitCode: u.status, Output: topology.Excerpt(u.log), Truncated: topology.Exceeds(u.log)}
	s.d.changed(unitResource(ref))
	if u.result != "success" {
		return topology.Faultf(topology.CodeExited, "%s was run and failed: result %s, exit code %d", ref, u.result, u.status)
	}
	return nil
}

// The methods below act as somebody else on the device would.

// SetLingering has the service manager of a user run, or not.
func (d *Device) SetLingering(user string, on bool) { d.hands(func() { d.linger(user, on) }) }

func (d *Device) linger(user string, on bool) {
	if d.lingers == nil {
		d.lingers = map[string]bool{}
	}
	d.lingers[user] = on
}

// DropIn adds to a unit by hand, and returns where.
func (d *Device) DropIn(ref, name, text string) string {
	dirs, unit := place(ref)
	p := path.Join(dirs[0], unit+".d", name+".conf")
	d.Put(p, text)
	return p
}
