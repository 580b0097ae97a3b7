package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/agent"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// shelf is the contents that a device has.
type shelf struct {
	mu   sync.Mutex
	have []string
	busy bool
}

func (s *shelf) Keep(_ context.Context, needed func(string) bool) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		return 0, errors.New("busy")
	}
	s.have = slices.DeleteFunc(s.have, func(sum string) bool { return !needed(sum) })
	return 0, nil
}

func (s *shelf) set(busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = busy
}

func (s *shelf) put(sums ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.have = append(s.have, sums...)
}

func (s *shelf) want(t *testing.T, when string, sums ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if have := slices.Sorted(slices.Values(s.have)); !slices.Equal(have, slices.Sorted(slices.Values(sums))) {
		t.Errorf("%s the device has %.6q", when, have)
	}
}

// A content stays as long as what is in force names it, or what would be rolled back to.
func TestContentsThatNothingNeeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.dev.Program("/usr/bin/broken", memory.Program{Exits: true, Status: 3})
		one, two, three := r.dev.OfferBlob("one"), r.dev.OfferBlob("two"), r.dev.OfferBlob("three")
		large := func(content string, sum string) score.Score {
			return score.Score{ID: "large", Spec: score.File{Path: "/srv/large", Mode: 0o644, Blob: &score.BlobRef{SHA256: sum, Size: int64(len(content))}}}
		}
		s := &shelf{have: []string{one, two, three, "unknown"}}
		_, _, h, _ := r.running(func(c *agent.Config) { c.Contents = s })
		offer(t, h, intent(1, version(1, manifest("m", large("one", one)))))
		later(time.Minute)
		s.want(t, "with the first version", one)

		s.put(two)
		offer(t, h, intent(2, version(2, manifest("m", large("two", two), brokenUnit("app", "app.service")))))
		later(10 * time.Minute)
		s.want(t, "while the second is condemned", one)
		if c, _ := r.dev.Read("/srv/large"); c != "one" {
			t.Errorf("the file is %q", c)
		}

		s.set(true)
		s.put(three)
		offer(t, h, intent(3, version(3, manifest("m", large("three", three)))))
		later(time.Minute)
		s.want(t, "while one is fetched", one, three)
		s.set(false)
		later(3 * time.Hour)
		s.want(t, "when the third is good", three)
	})
}
