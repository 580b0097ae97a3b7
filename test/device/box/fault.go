//go:build linux

package box

import (
	"context"
	"testing"
	"time"
)

// Cut loses the link silently: the carrier stays, and no packet passes. Heal undoes it.
func (b *Box) Cut() { b.t.Helper(); b.verb("cut", b.name) }

// Unplug pulls the cable: the device sees its carrier go. Heal undoes it.
func (b *Box) Unplug() { b.t.Helper(); b.verb("cut", b.name, "--carrier") }

// Heal gives the link back.
func (b *Box) Heal() { b.t.Helper(); b.verb("heal", b.name) }

// Crash cuts the power: what was not synced is lost, and the device stays off until Up. Mind that sync(2)
// called by anyone on this machine syncs every box, so a test that wants data lost must try more than once.
func (b *Box) Crash() { b.t.Helper(); b.verb("crash", b.name) }

// Stop powers the device off in order.
func (b *Box) Stop() { b.t.Helper(); b.verb("stop", b.name) }

// Up powers the device on and returns once its systemd is up.
func (b *Box) Up() { b.t.Helper(); b.verb("up", b.name) }

// UpTo powers the device on and returns once a unit is active, basic.target for example, while the rest of
// the boot goes on.
func (b *Box) UpTo(unit string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), verbTimeout)
	defer cancel()
	cmd, err := script(ctx, "up", b.name)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "PIBOX_TARGET="+unit)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%s did not get to %s: %v: %s", b.name, unit, err, out)
	}
}

// Reboot powers the device off in order and on again.
func (b *Box) Reboot() { b.t.Helper(); b.verb("reboot", b.name) }

// Freeze hangs every process of the device; its kernel still answers pings. Thaw undoes it.
func (b *Box) Freeze() { b.t.Helper(); b.verb("freeze", b.name) }

// Thaw lets a frozen device go on.
func (b *Box) Thaw() { b.t.Helper(); b.verb("thaw", b.name) }

// ReadOnly lets the disk fail and turn read-only, as a dying SD card does. Crash and Up bring it back.
func (b *Box) ReadOnly() { b.t.Helper(); b.verb("ro", b.name) }

// Offline runs a command of this machine in the file tree of the device, which must be off, with the tree's
// root as working directory: to damage a file, say. It returns what the command printed.
func (b *Box) Offline(args ...string) string {
	b.t.Helper()
	return b.verb(append([]string{"offline", b.name}, args...)...)
}

// Until calls cond until it returns nil, and ends the test with its last error when that takes longer than
// limit. It returns the time it took.
func Until(t testing.TB, limit time.Duration, what string, cond func() error) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := cond()
		took := time.Since(start)
		if err == nil {
			return took
		}
		if took > limit {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		<-tick.C
	}
}
