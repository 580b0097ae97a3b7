package agent

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/agent/store"
)

// The store keeps the assignment of the device under a name of each series, so that a generation of one is never held
// against one of another.
const intentName = "device"

func nameOfSeries(n uint64) string {
	if n == 0 {
		return intentName
	}
	return intentName + "." + strconv.FormatUint(n, 10)
}

// seriesOf reads a name that nameOfSeries made.
func seriesOf(name string) (n uint64, ok bool) {
	if name == intentName {
		return 0, true
	}
	rest, ok := strings.CutPrefix(name, intentName+".")
	n, err := strconv.ParseUint(rest, 10, 64)
	return n, ok && err == nil && n > 0 && nameOfSeries(n) == name
}

var errEarlierSeries = errors.New("of an earlier series")

// keepIntent makes an intent the last accepted one of the device, and forgets those of series that are over.
func keepIntent(s *store.Store, in Intent) error {
	names := seriesKept(s)
	if len(names) > 0 {
		if n, _ := seriesOf(names[0]); n > in.Series {
			return errEarlierSeries
		}
	}
	name := nameOfSeries(in.Series)
	if err := s.Accept(store.Intent{Name: name, Generation: in.Generation, Digest: in.Digest, Envelope: in.Envelope}); err != nil {
		return err
	}
	for _, n := range names {
		if n == name {
			continue
		}
		if err := s.Forget(n); err != nil {
			return err
		}
	}
	return nil
}

// seriesKept are the names under which assignments were ever accepted, the last series first.
func seriesKept(s *store.Store) []string {
	names := slices.DeleteFunc(s.Accepted(), func(name string) bool { _, ok := seriesOf(name); return !ok })
	slices.SortFunc(names, func(a, b string) int {
		x, _ := seriesOf(a)
		y, _ := seriesOf(b)
		return cmp.Compare(y, x)
	})
	return names
}

// LastIntent reads the assignment that was accepted last. False means that there is none, or that it was lost.
func LastIntent(s *store.Store) (store.Intent, bool, error) {
	names := seriesKept(s)
	if len(names) == 0 {
		return store.Intent{}, false, nil
	}
	return s.Intent(names[0])
}
