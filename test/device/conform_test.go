//go:build device && linux

package device

import (
	"testing"

	"github.com/continuo-fleet/continuo/test/device/box"
)

// The conformance suite of topologies, and what else the package tests on a real machine, in boxes: in three parts, so that
// they run side by side. They are the longest, and in the first file by its name, so that they begin first; tests within a
// test would begin last.
const (
	conforming = "^TestConform"
	containers = "Image|Container|Health|Arguments"
	// What a box cannot have: it may not mount vfat. The events of services and containers are in TestConformAllEvents.
	cannot = "^TestConformEvents$|^TestConformFiles/.*/file_system_without_owners"
)

func TestPiConforms(t *testing.T) {
	t.Parallel()
	inPi(t, "-test.run="+conforming, "-test.skip="+cannot)
}

func TestPiContainers(t *testing.T) {
	t.Parallel()
	inPi(t, "-test.run="+containers, "-test.skip="+conforming)
}

func TestPiRest(t *testing.T) {
	t.Parallel()
	inPi(t, "-test.skip="+conforming+"|"+containers)
}

func inPi(t *testing.T, args ...string) {
	t.Helper()
	b := box.Start(t, box.Options{NICs: 2}) // one that may lose its network
	run(t, b, "pibox-image")
	b.RunTestBinary("./topology/pi", args...)
}
