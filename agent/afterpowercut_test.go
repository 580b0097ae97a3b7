package agent_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/interpret"
)

// A cellar is what containers are made from, in the hands of a test.
type cellar struct {
	answers chan error // of the check under way
	found   string
	mended  atomic.Bool
	asked   int
}

func (c *cellar) CheckStorage(ctx context.Context) (string, error) {
	c.asked++
	select {
	case err := <-c.answers:
		return c.found, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *cellar) Damaged() string {
	if c.mended.Load() {
		return ""
	}
	return c.found
}

type bootsBefore struct {
	unclean      bool
	begun, ended int
}

func (b *bootsBefore) Unclean() bool             { return b.unclean }
func (b *bootsBefore) Begin() error              { b.begun++; return nil }
func (b *bootsBefore) End(context.Context) error { b.ended++; return nil }

// After a power cut containers wait until what they are made from was looked at, and nothing else does. What is damaged is a
// problem until it is mended, and the boot counts as looked at only then; a look that came to no end is no reason to wait, and
// one that was broken off is made again (case 94).
func TestAfterPowerCut(t *testing.T) {
	in := intent(1, manifest("m", file("a", "/etc/a", "1"), container("web", "web")))
	for _, tt := range []struct {
		name    string
		unclean bool
		found   string
		err     error
		cut     bool // the agent ends before there is an answer
		asked   int
		begun   bool
		problem string
	}{
		{name: "in order", begun: true},
		{name: "sound", unclean: true, asked: 1, begun: true},
		{name: "damaged", unclean: true, found: "localhost/app:1", asked: 1, problem: "images are damaged: localhost/app:1"},
		{name: "no end", unclean: true, err: errors.New("too slow"), asked: 1, begun: true},
		{name: "broken off", unclean: true, cut: true, asked: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				s := &cellar{answers: make(chan error), found: tt.found}
				b := &bootsBefore{unclean: tt.unclean}
				_, f, h, stop := r.running(func(c *agent.Config) { c.Storage, c.Boots = s, b })
				offer(t, h, in)
				later(time.Second)
				r.content("/etc/a", "1")
				if tt.unclean {
					r.want(f.last(), "m/a=unchanged m/web=waiting/storage_check")
					if b.begun > 0 {
						t.Error("the boot counts as looked at before it was")
					}
				}
				if tt.cut {
					stop()
				} else if tt.unclean {
					s.answers <- tt.err
					later(time.Second)
				}
				if s.asked != tt.asked || b.begun > 0 != tt.begun {
					t.Errorf("looked %d times, want %d; noted %d times", s.asked, tt.asked, b.begun)
				}
				if tt.cut {
					return
				}
				st := f.last()
				if got := outcomes(st); strings.Contains(got, "waiting") || !strings.Contains(got, "m/web=") {
					t.Errorf("after that: %s", got)
				}
				if got := told(st); !strings.Contains(got, tt.problem) || tt.problem == "" && got != "" {
					t.Errorf("the problem is %q, want %q", got, tt.problem)
				}
				if tt.found != "" {
					s.mended.Store(true)
					later(time.Hour)
					if got := told(f.last()); got != "" || b.begun == 0 {
						t.Errorf("after it was mended the problem is %q, noted %d times", got, b.begun)
					}
				}
				stop()
				if b.ended != 1 {
					t.Errorf("the end was noted %d times", b.ended)
				}
			})
		})
	}
}

// A container that is as it should be is so while it is looked at, too.
func TestContainerThatRunsAfterPowerCut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		in := intent(1, manifest("m", container("web", "web")))
		r.apply(in)
		s := &cellar{answers: make(chan error)}
		_, f, h, _ := r.running(func(c *agent.Config) { c.Storage, c.Boots = s, &bootsBefore{unclean: true} })
		offer(t, h, in)
		later(time.Second)
		r.want(f.last(), "m/web=unchanged")
	})
}

// told is what a status says of what containers are made from.
func told(st interpret.DeviceStatus) string {
	for _, p := range st.Problems {
		if p.Code == agent.CodeStorage {
			return p.Message
		}
	}
	return ""
}
