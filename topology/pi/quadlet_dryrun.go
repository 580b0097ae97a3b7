package pi

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// generator is podman's, which systemd runs at boot and at every reload. It came with
// podman 4.4.
const generator = "/usr/lib/systemd/system-generators/podman-system-generator"

// The generator starts its lines with its name and process.
var generatorPrefix = regexp.MustCompile(`(?m)^.*(quadlet|podman)[a-z-]*\[[0-9]+\]: *`)

// dryRun asks podman's generator whether it makes a unit of a definition, before the
// definition is anywhere that systemd looks. Systemd would drop it without a word. This
// is the one process that the package starts: an own program with fixed arguments, no
// shell.
func dryRun(ctx context.Context, name string, text []byte) error {
	dir, err := os.MkdirTemp("", "continuo-quadlet-")
	if err != nil {
		return topology.FaultOf(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, name+".container"), text, 0o600); err != nil {
		return topology.FaultOf(err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, generator, "-dryrun")
	cmd.Env = []string{"QUADLET_UNIT_DIRS=" + dir, "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return topology.Faultf(topology.FaultOf(ctx.Err()).Code, "cannot check the definition of container %s: podman's generator gave no answer", name)
	}
	if err == nil && bytes.Contains(stdout.Bytes(), []byte("---"+name+".service---")) {
		return nil
	}
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return topology.Faultf(topology.CodeUnavailable, "cannot check the definition of container %s: %v", name, err)
	}
	words := generatorPrefix.ReplaceAllString(stderr.String(), "")
	words = strings.Join(strings.Fields(strings.ReplaceAll(words, dir+"/", "")), " ")
	return topology.Faultf(topology.CodeDefinition, "podman's generator does not accept the definition of container %s: %s", name, words)
}
