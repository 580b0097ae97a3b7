package continuo_test

import (
	"bytes"
	"os/exec"
	"testing"
)

// The escape hatch is in builds with its tag only, and its tests are run here with the tag, by their names (H78). That a release
// does not have it is tested without: score.TestNoShellJob, and the list of kinds of the agent.
func TestWithShellJobs(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "test", "-tags", "shelljob", "-count=1", "-v", "-run", "^TestShellJob", "./score", "./interpret/standard", "./agent").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"TestShellJobIsExperimental", "TestShellJobOnce", "TestShellJobNeedsDeviceAndSignature"} {
		if !bytes.Contains(out, []byte("--- PASS: "+name+" ")) {
			t.Errorf("%s was not run:\n%s", name, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "vet", "-tags", "shelljob", "./score", "./interpret/...", "./cmd/continuo-agent").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
