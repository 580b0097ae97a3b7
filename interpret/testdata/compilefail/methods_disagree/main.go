// Package methods_disagree has an interpreter whose methods are about different specs.
package methods_disagree

import (
	"context"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/interpret/file"
	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
	"github.com/continuo-fleet/continuo/topology/memory"
)

type interpreter struct{}

func (interpreter) Observe(context.Context, topology.FileReader, score.File) (o file.Observed, err error) {
	return o, nil
}
func (interpreter) Diff(score.Service, file.Observed) []interpret.Change { return nil }
func (interpreter) Apply(context.Context, topology.FileWriter, score.File, interpret.Task) error {
	return nil
}
func (interpreter) Remove(context.Context, topology.FileWriter, score.File) error { return nil }

var f = memory.New().Files()

var _ = interpret.Of[score.File, file.Observed, topology.FileReader, topology.FileWriter](interpreter{}, f, f) // want "wrong type for method Diff"
