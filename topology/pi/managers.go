package pi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/continuo-fleet/continuo/topology"
)

// managers are the service managers of the machine: that of the system, and those of users.
// The unit of a user is named USER/UNIT.
type managers struct {
	system *services
	self   string // the unit that this process runs in

	mu    sync.Mutex
	users map[string]*services // by user and number
}

func newManagers(system *services) *managers {
	return &managers{system: system, self: unitOfSelf(), users: map[string]*services{}}
}

func (m *managers) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.users {
		s.bus.close()
	}
	m.system.bus.close()
}

// changed is told of every change of a file.
func (m *managers) changed(ctx context.Context, p string) {
	m.system.reload.mark(ctx, p)
	if !strings.HasPrefix(p, userUnitDirs[0]) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.users {
		s.reload.mark(ctx, p)
	}
}

// of is the manager that has a unit, and the name of the unit there.
func (m *managers) of(ref string) (*services, string, error) {
	user, unit, ok := strings.Cut(ref, "/")
	if !ok {
		return m.system, ref, nil
	}
	if !userName.MatchString(user) {
		return nil, "", topology.Faultf(topology.CodeInvalid, "%q is not the name of a unit, such as kiosk.service, or pi/kiosk.service for that of a user", ref)
	}
	s, err := m.user(user)
	return s, unit, err
}

var userName = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,31}$`)

func (m *managers) user(user string) (*services, error) {
	uid, err := m.uid(user)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(user, " ", uid)
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.users[key]; s != nil {
		return s, nil
	}
	sys := m.system
	b := newBus(sys.bus.life, sys.bus.below)
	b.name, b.direct = "the service manager of "+user, true
	b.connect, b.picking = func(ctx context.Context) (*dbus.Conn, error) { return connectUser(ctx, user, uid) }, nil
	s := &services{
		bus: b, files: sys.files, reload: newReloader(b, userUnitDirs, fmt.Sprintf("%s.%d", reloadMark, uid)), settle: sys.settle,
		user: user, uid: uid, dir: userUnitDirs[0], runs: sys.runs, journal: sys.journal,
		cgroup: fmt.Sprintf("%s/user.slice/user-%d.slice/user@%d.service", sys.cgroup, uid, uid),
	}
	m.users[key] = s
	return s, nil
}

// uid is the number of a user by his name.
func (m *managers) uid(user string) (int, error) {
	if !userName.MatchString(user) { // a number would be one, too
		return 0, topology.Faultf(topology.CodeInvalid, "%q is not the name of a user", user)
	}
	uid, err := m.system.files.accounts.user(user)
	if err == nil {
		return uid, nil
	}
	if _, err := m.system.files.accounts.user("root"); err != nil { // nobody is known
		return 0, topology.Faultf(topology.CodeUnavailable, "cannot read the users of the device, and so not find the service manager of %s", user)
	}
	return 0, topology.Faultf(topology.CodeNoAccount, "the device has no user %q, and so no service manager of his", user)
}

// noUser reports whether a fault says that the user of a unit is gone.
func noUser(err error) bool {
	return err != nil && topology.FaultOf(err).Code == topology.CodeNoAccount
}

// files is of for what can be done with the files of a unit alone: if its user is gone, they are what
// is left, and every question to his manager is answered so.
func (m *managers) files(ref string) (*services, string, error) {
	s, unit, err := m.of(ref)
	if !noUser(err) {
		return s, unit, err
	}
	user, unit, _ := strings.Cut(ref, "/")
	sys := m.system
	b := newBus(sys.bus.life, sys.bus.below)
	b.connect = func(context.Context) (*dbus.Conn, error) { return nil, err }
	return &services{
		bus: b, files: sys.files, reload: newReloader(b, nil, ""), user: user, gone: err, dir: userUnitDirs[0], runs: sys.runs,
	}, unit, nil
}

// connectUser opens the socket that the manager of a user has beside his bus: his bus lets
// nobody else in, and his manager lets root. The directory is the user's own, so the
// socket may be anybody's: who has it is asked from the kernel, or root would do with
// another manager what was meant for this one.
func connectUser(ctx context.Context, user string, uid int) (*dbus.Conn, error) {
	p := fmt.Sprintf("/run/user/%d/systemd/private", uid)
	c, err := dialer.DialContext(ctx, "unix", p)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, topology.Faultf(topology.CodeUnavailable, "the service manager of %s does not run: he is not logged in and does not linger; give linger: true, or: loginctl enable-linger %s", user, user)
	}
	if err != nil {
		return nil, err
	}
	peer, err := peerOf(c)
	if err == nil && peer != uid {
		err = topology.Faultf(topology.CodeUnavailable, "%s is not the service manager of %s: the user with the number %d has it", p, user, peer)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	conn, err := converse(ctx, newPicker(c, nil, maxOfUser))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal("0")}); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// peerOf is the user who listens at the other end of a socket.
func peerOf(c net.Conn) (int, error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	if cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); cerr != nil {
		return 0, cerr
	}
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

const lingerDir = "/var/lib/systemd/linger/"

// Lingers reports whether the service manager of a user runs without a login.
func (m *managers) Lingers(ctx context.Context, user string) (bool, error) {
	if _, err := m.system.bus.link(ctx); err != nil {
		return false, err
	}
	if _, err := m.uid(user); err != nil {
		return false, err
	}
	st, err := m.system.files.File(ctx, lingerDir+user)
	return st.Type != topology.Absent, err
}

// managerStart is how long the manager of a user may take to be there.
const managerStart = 30 * time.Second

// SetLinger says whether the service manager of a user runs without a login.
func (m *managers) SetLinger(ctx context.Context, user string, on bool) error {
	uid, err := m.uid(user)
	if err != nil {
		return err
	}
	err = m.system.bus.do(ctx, func(ctx context.Context, l *link) error {
		return l.calls.Object("org.freedesktop.login1", "/org/freedesktop/login1").
			CallWithContext(ctx, "org.freedesktop.login1.Manager.SetUserLinger", 0, uint32(uid), on, false).Err
	})
	if err != nil {
		return busFault("change the lingering of", user, err)
	}
	if err := m.system.files.flush(lingerDir + user); err != nil || !on {
		return err
	}
	s, err := m.user(user)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, managerStart)
	defer cancel()
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		if _, err = s.bus.link(ctx); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return topology.Faultf(topology.CodeUnavailable, "the service manager of %s does not start, though he lingers; systemctl status user@%d.service says why: %v", user, uid, err)
		}
	}
}
