//go:build !shelljob

package score_test

import (
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// TestNoShellJob: a release has no escape hatch, and says of a manifest with one that it does not know the kind (H46, H78, H80).
func TestNoShellJob(t *testing.T) {
	if info, ok := score.Lookup("shellJob"); ok {
		t.Errorf("got %+v", info)
	}
}
