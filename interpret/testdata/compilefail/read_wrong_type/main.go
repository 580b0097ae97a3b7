// Package read_wrong_type reads a status as something that no kind observes.
package read_wrong_type

import (
	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/score"
)

var _, _ = interpret.Read[score.File](interpret.ScoreStatus{}) // want "score\.File does not satisfy interpret\.Observed \(missing method Conditions\)"
