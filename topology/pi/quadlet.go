package pi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// quadletDir is where definitions of containers live.
const quadletDir = "/etc/containers/systemd/"

// definitionFile is the definition of a container, and unitOf the unit that systemd gets from it.
func definitionFile(container string) string { return quadletDir + container + ".container" }
func unitOf(container string) string         { return container + ".service" }

// Labels on a container. They are read back from its definition as well, because a
// container that ended is gone.
const (
	ownerLabel = "continuo.owner"
	specLabel  = "continuo.spec"
)

// textMark starts the first line of a definition, which holds the digest of the lines
// below: a definition that somebody edited is not what the label of its spec says.
const textMark = "# Written by continuo; do not edit. text="

// Two arguments get lost on their way: the generator of podman 5.4 stops at an empty one,
// and writes a semicolon so that systemd takes it for the end of the command. They travel
// as variables, which systemd puts in as one argument each. The container sees neither.
const (
	emptyVar     = "CONTINUO_EMPTY"
	semicolonVar = "CONTINUO_SEMICOLON"
)

var restartPolicy = map[string]string{"never": "no", "on-failure": "on-failure", "always": "always", "": "always"}

// quadlet is the definition of a container for podman's systemd generator.
//
// The image is here already (see EnsureImage), so nothing is fetched at boot, and the
// container does not wait for the network.
func quadlet(c topology.ContainerConfig) ([]byte, error) {
	restart, ok := restartPolicy[c.Restart]
	if !ok {
		return nil, topology.Faultf(topology.CodeInvalid, "%q is no restart policy of a container: never, on-failure, always", c.Restart)
	}
	var b bytes.Buffer
	line := func(key, value string) { b.WriteString(key + "=" + value + "\n") }
	b.WriteString("[Unit]\n")
	line("Description", "Container "+c.Name)
	if restart != "no" {
		line("StartLimitIntervalSec", "0")
	}
	b.WriteString("\n[Container]\n")
	line("ContainerName", c.Name)
	line("Image", specifier(c.Image))
	line("Pull", "never")
	line("Label", word(ownerLabel+"="+string(c.Mark)))
	line("Label", word(specLabel+"="+c.SpecDigest))
	for _, e := range c.Env {
		line("Environment", word(e))
	}
	for _, p := range c.Ports {
		line("PublishPort", specifier(p))
	}
	for _, v := range c.Volumes {
		line("Volume", specifier(v))
	}
	empty, semicolon := false, false
	if len(c.Command) > 0 {
		words := make([]string, len(c.Command))
		for i, w := range c.Command {
			switch w {
			case "":
				words[i], empty = "${"+emptyVar+"}", true
			case ";":
				words[i], semicolon = "${"+semicolonVar+"}", true
			default:
				words[i] = word(w)
			}
		}
		line("Exec", strings.Join(words, " "))
	}
	b.WriteString("\n[Service]\n")
	if empty {
		line("Environment", emptyVar+"=")
	}
	if semicolon {
		line("Environment", semicolonVar+"=;")
	}
	line("Restart", restart)
	if restart != "no" {
		line("RestartSec", "1")
	}
	line("TimeoutStartSec", "120")
	line("TimeoutStopSec", "60") // whatever the device's default: podman kills after its 10 s, and not systemd
	b.WriteString("\n[Quadlet]\n")
	line("DefaultDependencies", "false")
	b.WriteString("\n[Install]\n")
	line("WantedBy", "multi-user.target default.target")

	text := b.Bytes()
	if bytes.ContainsRune(text, 0) {
		return nil, topology.Faultf(topology.CodeInvalid, "the definition of container %s would have a NUL byte", c.Name)
	}
	return append([]byte(textMark+textDigest(text)+"\n"), text...), nil
}

func textDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// specifier keeps a value as it is: systemd would expand % in any setting, and $ in the
// command line that the generator makes of it.
func specifier(s string) string {
	return strings.NewReplacer("%", "%%", "$", "$$").Replace(s)
}

// word makes one word of a setting that is split at spaces, whatever is in it.
func word(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '%' || c == '$':
			b.WriteByte(c)
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
