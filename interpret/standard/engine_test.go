package standard_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/interpret/hostname"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

// fixed is a device with one service, which is as it is.
type fixed struct{ st topology.ServiceState }

func (f fixed) Services() topology.Services { return fixedServices{st: f.st} }

type fixedServices struct {
	st topology.ServiceState
	plainServices
}

func (f fixedServices) Service(context.Context, string) (topology.ServiceState, error) {
	return f.st, nil
}
func (fixedServices) Define(context.Context, topology.Definition) error { return nil }
func (fixedServices) Undefine(context.Context, string) error            { return nil }
func (fixedServices) SetEnabled(context.Context, string, bool) error    { return nil }
func (fixedServices) Start(context.Context, string, bool) error         { return nil }
func (fixedServices) Stop(context.Context, string) error                { return nil }
func (fixedServices) Restart(context.Context, string, bool) error       { return nil }

// liar is an interpreter of host names that does not do its work.
type liar struct{ panics string }

type liarState struct {
	// Name of the device.
	Name string `json:"name"`
}

func (liarState) Exists() bool                     { return true }
func (liarState) OwnedBy() topology.Mark           { return "" }
func (liarState) Conditions() interpret.Conditions { return interpret.Conditions{} }

func (l liar) crash(where string) {
	if l.panics == where {
		panic("out of luck")
	}
}

func (l liar) Observe(_ context.Context, _ topology.HostReader, _ score.Hostname) (liarState, error) {
	l.crash("observe")
	return liarState{"old"}, nil
}

func (l liar) Diff(s score.Hostname, o liarState) []interpret.Change {
	l.crash("diff")
	return []interpret.Change{{Field: "name", Have: o.Name, Want: s.Name, Effect: interpret.Mutate}}
}

func (l liar) Apply(context.Context, topology.HostWriter, score.Hostname, interpret.Task) error {
	l.crash("apply")
	return nil
}

func (l liar) Remove(context.Context, topology.HostWriter, score.Hostname) error {
	l.crash("remove")
	return nil
}

func (l liar) Prefetch(context.Context, topology.HostWriter, score.Hostname) error {
	l.crash("prefetch")
	return nil
}

func (l liar) table(d *memory.Device) *interpret.Table {
	return interpret.Bind(d, file.Kind, func(d *memory.Device) interpret.Binding {
		return interpret.Of[score.Hostname, liarState, topology.HostReader, topology.HostWriter](l, d.Host(), d.Host())
	})
}

func TestNotConvergedAfterApply(t *testing.T) { // H52, cases 156
	d := memory.New()
	g := &open{}
	st, err := liar{}.table(d).Play(t.Context(), interpret.Wish{Score: score.Score{ID: "h", Spec: score.Hostname{Name: "new"}}}, g)
	if err != nil || st.Outcome != interpret.Failed || st.Code != interpret.CodeNotConverged {
		t.Fatalf("got %s %s, %v", st.Outcome, st.Code, err)
	}
	if want := `applied, but name is "old" and should be "new"`; st.Message != want {
		t.Errorf("message is %q, want %q", st.Message, want)
	}
	if !slices.Equal(g.done, []interpret.Outcome{interpret.Failed}) {
		t.Errorf("the gate was told %v", g.done)
	}
}

// TestPanicIsIsolated: a kind that crashes fails its own scores only (H24).
func TestPanicIsIsolated(t *testing.T) {
	for _, where := range []string{"observe", "diff", "apply", "remove", "prefetch"} {
		t.Run(where, func(t *testing.T) {
			table := liar{where}.table(memory.New())
			bad := score.Score{ID: "h", Spec: score.Hostname{Name: "new"}}
			var st interpret.ScoreStatus
			var err error
			switch where {
			case "remove":
				st, err = table.Remove(t.Context(), bad, interpret.CauseAbsent, &open{})
			case "prefetch":
				st = table.Prefetch(t.Context(), bad)
			default:
				st, err = table.Play(t.Context(), interpret.Wish{Score: bad}, &open{})
			}
			if err != nil || st.Outcome != interpret.Failed || st.Code != interpret.CodePanic || st.ID != "h" {
				t.Fatalf("got %s %s, %v", st.Outcome, st.Code, err)
			}
			if !strings.Contains(st.Message, "interpreter of hostname crashed: out of luck") || !strings.Contains(st.Message, "liar") || len(st.Message) > 600 {
				t.Errorf("message is %q", st.Message)
			}
			good := score.Score{ID: "f", Spec: score.File{Path: "/etc/f", Mode: 0o644}}
			if st, _ := table.Play(t.Context(), interpret.Wish{Score: good}, &open{}); st.Outcome != interpret.Changed {
				t.Errorf("the score beside it is %s: %s", st.Outcome, st.Message)
			}
		})
	}
}

func TestUnsupported(t *testing.T) { // H37
	small := memory.New().WithoutContainers()
	table := interpret.Bind(small, file.Kind, hostname.Kind)
	tests := []struct {
		name    string
		spec    score.Spec
		code    interpret.Code
		path    string
		message string
	}{
		{"unknown kind", score.Opaque{Of: "hologram"}, interpret.CodeUnknownKind, "", `this agent knows no kind "hologram"`},
		{"unknown field", score.Opaque{Of: "file", Why: `unknown field "colour"`, Path: "/colour"}, interpret.CodeUnreadable, "/colour", `cannot read the spec: /colour: unknown field "colour"`},
		{"missing capability", score.Container{Name: "web"}, interpret.CodeMissingCapability, "", `this device has no capability for kind "container", which needs [containers]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := score.Score{ID: "x", Spec: tt.spec}
			st, err := table.Play(t.Context(), interpret.Wish{Score: s}, &open{})
			if err != nil || st.Outcome != interpret.Unsupported || st.Code != tt.code || st.Path != tt.path || !strings.Contains(st.Message, tt.message) {
				t.Errorf("got %s %s at %q: %q, %v", st.Outcome, st.Code, st.Path, st.Message, err)
			}
			if st := table.Prefetch(t.Context(), s); st.Outcome != "" {
				t.Errorf("prefetch: %s", st.Message)
			}
		})
	}
}

// shut is a gate that allows nothing, or cannot keep its books.
type shut struct {
	open
	err error
}

func (s *shut) Admit(context.Context, interpret.Action) (interpret.Verdict, error) {
	return interpret.Verdict{Outcome: interpret.Pending, Code: "pending_signature", Message: "ask somebody"}, s.err
}

func TestGateDecides(t *testing.T) {
	for _, spec := range made(t) {
		r := newRig(t)
		prepare(r, spec)
		rec := r.Record()
		st := r.with(spec, &shut{}, nil)
		if st.Outcome != interpret.Pending || st.Message != "ask somebody" || len(st.Changes) == 0 || len(rec.Mutations()) > 0 {
			t.Errorf("%s: got %s %q %v, and %v", spec.Kind(), st.Outcome, st.Message, st.Changes, rec.Mutations())
		}
		books := errors.New("the disk of the books is full")
		if _, err := r.table.Play(t.Context(), interpret.Wish{Score: score.Score{ID: "x", Spec: spec}}, &shut{err: books}); !errors.Is(err, books) {
			t.Errorf("%s: got %v", spec.Kind(), err)
		}
		if _, err := r.table.Remove(t.Context(), score.Score{ID: "x", Spec: spec}, interpret.CauseAbsent, &shut{err: books}); !errors.Is(err, books) {
			t.Errorf("%s: got %v", spec.Kind(), err)
		}
		if len(rec.Mutations()) > 0 {
			t.Errorf("%s: the gate is shut, and yet %v", spec.Kind(), rec.Mutations())
		}
	}
}

func TestFaultsHaveOutcomes(t *testing.T) { // H13
	tests := []struct {
		code    topology.Code
		outcome interpret.Outcome
	}{
		{topology.CodePermission, interpret.Failed}, {topology.CodeNoSpace, interpret.Failed}, {topology.CodeTimeout, interpret.Failed},
		{topology.CodeForeign, interpret.Conflict}, {topology.CodeMasked, interpret.Conflict},
		{topology.CodeUnavailable, interpret.Unsupported}, {topology.CodeNotSupported, interpret.Unsupported},
	}
	spec := score.File{Path: "/etc/f", Mode: 0o644}
	for _, tt := range tests {
		for _, op := range []memory.Op{memory.OpFile, memory.OpWriteFile} {
			r := newRig(t)
			r.Fail(op, "file:/etc/f", topology.Faultf(tt.code, "the words"))
			st := r.play(spec)
			r.want(st, tt.outcome, tt.code)
			if !strings.HasSuffix(st.Message, "the words") || st.Path != "/path" {
				t.Errorf("%s: path %q, message %q", tt.code, st.Path, st.Message)
			}
			r.Heal()
			r.want(r.play(spec), interpret.Changed, "")
		}
	}
}

// TestAppliedButLost: what cannot be verified is not called done.
func TestAppliedButLost(t *testing.T) {
	r := newRig(t)
	r.Before(func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpWriteFile {
			r.Fail(memory.OpFile, "", topology.Faultf(topology.CodeIO, "the card is gone"))
		}
		return nil
	})
	st := r.play(score.File{Path: "/etc/f", Mode: 0o644})
	r.want(st, interpret.Failed, topology.CodeIO)
	if !strings.Contains(st.Message, "cannot verify") {
		t.Errorf("message is %q", st.Message)
	}
}
