package interpret

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// A Binding is an interpreter tied to a topology, with its types erased. Only Of
// makes one, and only a Table uses it.
type Binding struct {
	kind       score.Kind
	observed   reflect.Type
	observe    func(context.Context, score.Spec) (Observed, error)
	diff       func(score.Spec, Observed) []Change
	apply      func(context.Context, score.Spec, Task) error
	remove     func(context.Context, score.Spec) error
	prefetch   func(context.Context, score.Spec) error                              // nil: nothing to fetch
	field      func(topology.Code) string                                           // nil: faults are about no field
	removal    func(score.Spec) Effect                                              // nil: Remove
	text       func(context.Context, score.Spec) (t Content, ok bool)               // nil: it is no text
	follows    func(score.Spec) bool                                                // nil: it follows nothing
	stocked    func(context.Context, score.Spec) error                              // nil: it needs nothing from elsewhere
	checkpoint func(context.Context, score.Spec, Task) (topology.Checkpoint, error) // nil: it cuts nobody off
	looks      bool                                                                 // it is never made true
}

// Of ties in to the read half r and the write half w of a capability.
func Of[S score.Spec, O Observed, R, W any](in Interpreter[S, O, R, W], r R, w W) Binding {
	var zero S
	b := Binding{
		kind:     zero.Kind(),
		observed: reflect.TypeFor[O](),
		observe: func(ctx context.Context, s score.Spec) (Observed, error) {
			o, err := in.Observe(ctx, r, s.(S))
			if err != nil && reflect.ValueOf(o).IsZero() {
				return nil, err // nothing was seen
			}
			return o, err
		},
		diff:   func(s score.Spec, o Observed) []Change { return in.Diff(s.(S), o.(O)) },
		apply:  func(ctx context.Context, s score.Spec, t Task) error { return in.Apply(ctx, w, s.(S), t) },
		remove: func(ctx context.Context, s score.Spec) error { return in.Remove(ctx, w, s.(S)) },
	}
	if p, ok := in.(Prefetcher[S, W]); ok {
		b.prefetch = func(ctx context.Context, s score.Spec) error { return p.Prefetch(ctx, w, s.(S)) }
	}
	if rm, ok := in.(Remover[S]); ok {
		b.removal = func(s score.Spec) Effect { return rm.RemovalEffect(s.(S)) }
	}
	if t, ok := in.(Texter[S, R]); ok {
		b.text = func(ctx context.Context, s score.Spec) (Content, bool) { return t.Text(ctx, r, s.(S)) }
	}
	if fo, ok := in.(Follower[S]); ok {
		b.follows = func(s score.Spec) bool { return fo.Follows(s.(S)) }
	}
	if st, ok := in.(Stocker[S, R]); ok {
		b.stocked = func(ctx context.Context, s score.Spec) error { return st.Stocked(ctx, r, s.(S)) }
	}
	if c, ok := in.(Checkpointer[S, W]); ok {
		b.checkpoint = func(ctx context.Context, s score.Spec, t Task) (topology.Checkpoint, error) {
			return c.Checkpoint(ctx, w, s.(S), t)
		}
	}
	if l, ok := in.(Locator); ok {
		b.field = l.FieldOf
	}
	return b
}

// Looking ties a kind that is never made true to the read half r of a capability.
func Looking[S score.Spec, O Observed, R any](in Observer[S, O, R], r R) Binding {
	b := Of[S, O, R, R](onlooker[S, O, R]{in}, r, r)
	b.looks = true
	if l, ok := in.(Locator); ok {
		b.field = l.FieldOf
	}
	return b
}

// An onlooker has nothing that it could apply or remove.
type onlooker[S score.Spec, O Observed, R any] struct{ Observer[S, O, R] }

func (onlooker[S, O, R]) Apply(context.Context, R, S, Task) error { return nil }
func (onlooker[S, O, R]) Remove(context.Context, R, S) error      { return nil }
func (onlooker[S, O, R]) RemovalEffect(S) Effect                  { return Nothing }

// A Table holds the interpreters of one topology.
type Table struct {
	byKind  map[score.Kind]Binding
	secrets topology.Secrets
}

// Bind ties kinds to t. Each kind states its needs as a type constraint, so a kind
// that needs what T lacks does not compile:
//
//	table := interpret.Bind(device, file.Kind, service.Kind, container.Kind)
func Bind[T any](t T, kinds ...func(T) Binding) *Table {
	tb := &Table{byKind: map[score.Kind]Binding{}, secrets: secretsOf(t)}
	for _, k := range kinds {
		b := k(t)
		if _, dup := tb.byKind[b.kind]; dup {
			panic(fmt.Sprintf("interpret: kind %q bound twice", b.kind))
		}
		tb.byKind[b.kind] = b
	}
	return tb
}

// Kinds lists what the table can interpret, in no order.
func (t *Table) Kinds() []score.Kind {
	out := make([]score.Kind, 0, len(t.byKind))
	for k := range t.byKind {
		out = append(out, k)
	}
	return out
}

// Secrets returns a fingerprint of the values that the secrets which s names have now; empty if it names none, or if not
// all of them can be had.
func (t *Table) Secrets(ctx context.Context, s score.Spec) string {
	user, ok := s.(score.SecretUser)
	if !ok {
		return ""
	}
	names := slices.Sorted(slices.Values(user.SecretNames()))
	if len(names) == 0 {
		return ""
	}
	var all []byte
	defer func() { clear(all) }()
	for _, name := range names {
		value, err := t.secrets.Secret(ctx, name)
		if err != nil {
			return ""
		}
		all = fmt.Appendf(all, "%q %q\n", name, value)
		clear(value)
	}
	return t.secrets.Fingerprint(all)
}

// Looks reports whether a kind is looked at and never made true.
func (t *Table) Looks(k score.Kind) bool { return t.byKind[k].looks }

// Observed returns the type of the state that a kind observes, nil for a kind that is
// not in the table. Generators and audits need it.
func (t *Table) Observed(k score.Kind) reflect.Type { return t.byKind[k].observed }
