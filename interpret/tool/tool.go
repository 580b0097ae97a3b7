// Package tool interprets score.Tool, which is looked at and never made true.
package tool

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// Needs is what a topology must offer.
type Needs interface{ topology.HasTools }

// Kind binds the interpreter to t.
func Kind[T Needs](t T) interpret.Binding {
	return interpret.Looking[score.Tool, Observed, topology.ToolReader](interpreter{}, t.Tools())
}

// Observed is what was found under the name of a tool.
type Observed struct {
	// Condition is present, missing, broken, or shadowed: it does not work, and stands before one that does.
	Condition topology.ToolCondition `json:"condition"`
	// Copies of that name, in the order of the search path: the first is the one that is started.
	Copies []topology.ToolCopy `json:"copies,omitempty"`
}

// Exists reports whether there is one.
func (o Observed) Exists() bool { return len(o.Copies) > 0 }

// OwnedBy is always empty: whoever installs programs owns them.
func (o Observed) OwnedBy() topology.Mark { return "" }

// Conditions: a tool is healthy that works.
func (o Observed) Conditions() interpret.Conditions {
	return interpret.Conditions{Healthy: new(o.Condition == topology.ToolPresent)}
}

type interpreter struct{}

func (interpreter) FieldOf(topology.Code) string { return "name" }

func (interpreter) Observe(ctx context.Context, r topology.ToolReader, s score.Tool) (Observed, error) {
	st, err := r.Tool(ctx, s.Name)
	if err != nil {
		return Observed{}, err
	}
	return Observed{st.Condition(), st.Copies}, nil
}

func (interpreter) Diff(s score.Tool, o Observed) (out []interpret.Change) {
	differs := func(field, have, want string) {
		out = append(out, interpret.Change{Field: field, Have: have, Want: want, Effect: interpret.Nothing})
	}
	if len(o.Copies) == 0 {
		differs("condition", string(topology.ToolMissing), string(topology.ToolPresent))
		return out
	}
	c := o.Copies[0]
	if o.Condition != topology.ToolPresent {
		differs("condition", string(o.Condition)+": "+tell(o.Copies), string(topology.ToolPresent))
	}
	if s.Path != "" && c.Path != s.Path && c.Target != s.Path {
		differs("path", tell(o.Copies), s.Path)
	}
	if fits, err := s.Version.Has(c.Version); !fits && c.Works {
		have := tell(o.Copies)
		if err != nil {
			have += ", which cannot be compared"
		}
		differs("version", have, string(s.Version))
	}
	return out
}

// tell names the copies with their versions, or why they do not work.
func tell(copies []topology.ToolCopy) string {
	words := make([]string, len(copies))
	for i, c := range copies {
		how := cmp.Or(c.Version, "no version")
		if !c.Works {
			how = "does not work: " + c.Why
		}
		words[i] = strings.TrimSpace(fmt.Sprintf("%s (%s)", c.Path, how))
	}
	return strings.Join(words, ", before ")
}
