// Package conform is the suite that every topology passes: what the interfaces of
// package topology promise, as tests. It knows no topology; whoever has one calls it
// from a test of its own and hands over a bench, where the suite may do as it likes.
//
// A bench has hands: somebody else on the same device, who puts a pipe in the place of
// a file or masks a unit. What these hands cannot do here is an error that wraps
// errors.ErrUnsupported; the case is skipped then, and counted.
//
// Nothing in the suite sleeps or measures: where the real world takes its time, it
// asks again until a deadline.
package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// patience is how long the real world may take for one thing.
const patience = 30 * time.Second

// A test is one case of a suite on a bench of type B.
type test[B any] struct {
	name string // with the numbers of the field cases that it settles
	run  func(*testing.T, B)
}

// suite runs tests, each on a bench of its own, and says how many could not be done.
func suite[B any](t *testing.T, bench func(*testing.T) B, tests []test[B]) {
	t.Helper()
	var skipped []string
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if t.Skipped() {
					skipped = append(skipped, tt.name)
				}
			}()
			tt.run(t, bench(t))
		})
	}
	if len(skipped) > 0 {
		t.Logf("%d of %d cases were not done on this device: %s", len(skipped), len(tests), strings.Join(skipped, ", "))
	}
}

// hands reports whether hands did what they were asked for; it skips the case if they cannot.
func hands(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("not done on this device: %v", err)
	}
	if err != nil {
		t.Fatalf("hands: %v", err)
	}
}

// ok fails the test if a capability failed.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got %v (%s)", err, topology.FaultOf(err).Code)
	}
}

// fails wants err to be a fault with one of the codes, and words for people.
func fails(t *testing.T, err error, codes ...topology.Code) {
	t.Helper()
	f, is := errors.AsType[*topology.Fault](err)
	switch {
	case err == nil:
		t.Fatalf("got no error, want %v", codes)
	case !is:
		t.Fatalf("got %v (%T), want a fault", err, err)
	case !slices.Contains(codes, f.Code):
		t.Fatalf("got %s: %v, want %v", f.Code, err, codes)
	case f.Text == "":
		t.Fatalf("the fault %s has no words", f.Code)
	}
}

// eventually asks until good is true of what ask returns.
func eventually[S any](t *testing.T, what string, ask func(context.Context) (S, error), good func(S) bool) S {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s, err := ask(ctx)
		if err == nil && good(s) {
			return s
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s did not happen: %+v, %v", what, s, err)
		case <-tick.C:
		}
	}
}

// canceled returns a context that has ended.
func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// after runs f when the test is over, with a context that has not ended.
func after(t *testing.T, f func(context.Context)) {
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		f(ctx)
	})
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, show(got), show(want))
	}
}

func show(v any) string {
	if s, ok := v.(string); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(v)
}
