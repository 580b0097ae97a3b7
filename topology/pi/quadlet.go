package pi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

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
	ownerLabel  = "continuo.owner"
	specLabel   = "continuo.spec"
	healthLabel = "continuo.health"  // "image": the image must have a health check
	secretLabel = "continuo.secret." // and the name of a secret: the fingerprint of its value
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

// Of the journal, unless a container asks for another: what one container can write into it
// without hiding what the others say, and without wearing out the card that it is on.
const (
	logInterval = 30   // seconds
	logBurst    = 1000 // and up to some times as many while the disk is almost empty
)

const (
	startPatience = 120 * time.Second // besides what init containers take
	stopPatience  = 60 * time.Second  // whatever the device's default: podman kills after its own time, and not systemd
	stopMargin    = 30 * time.Second  // that podman may need to kill
)

// A definitionText is a definition while it is written.
type definitionText struct {
	bytes.Buffer
	bad error
}

func (b *definitionText) section(name string) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	b.WriteString("[" + name + "]\n")
}

// line writes a setting. What would end its line, or go on in the next, is refused: lines of a definition are commands of
// root.
func (b *definitionText) line(key, value string) {
	if strings.ContainsAny(value, "\n\r\x00") || strings.HasSuffix(value, `\`) {
		b.bad = topology.Faultf(topology.CodeInvalid, "the value of %s in the definition of a container would not stay in its line", key)
		return
	}
	b.WriteString(key + "=" + value + "\n")
}

// some writes a setting that is not left to others.
func (b *definitionText) some(key, value string) {
	if value != "" {
		b.line(key, specifier(value))
	}
}

func (b *definitionText) each(key string, values []string, spelled func(string) string) {
	for _, v := range values {
		b.line(key, spelled(v))
	}
}

// words writes a list of arguments into one setting that podman itself takes apart.
func (b *definitionText) words(key string, args []string) {
	s, ok := asOne(args)
	if !ok {
		b.bad = topology.Faultf(topology.CodeInvalid, "an argument of %s is no text", key)
	}
	b.line(key, specifier(s))
}

// quadlet is the definition of a container for podman's systemd generator, in the keys of
// podman 5.4; what has no key there is an argument of podman run.
//
// The image is here already (see EnsureImage), so nothing is fetched at boot, and the
// container does not wait for the network.
func quadlet(c topology.ContainerConfig) ([]byte, error) {
	restart, ok := restartPolicy[c.Restart]
	if !ok {
		return nil, topology.Faultf(topology.CodeInvalid, "%q is no restart policy of a container: never, on-failure, always", c.Restart)
	}
	b := new(definitionText)
	b.section("Unit")
	b.line("Description", "Container "+c.Name)
	if restart != "no" {
		b.line("StartLimitIntervalSec", "0")
	}
	b.section("Container")
	b.line("ContainerName", c.Name)
	b.line("Image", specifier(c.Image))
	b.line("Pull", "never")
	b.labels(c)
	b.each("Environment", c.Env, word)
	b.each("PublishPort", c.Ports, specifier)
	b.each("Volume", c.Volumes, specifier)
	b.mounts(c)
	b.rights(c)
	b.program(c)
	arguments, empty, semicolon := b.command(c.Command)
	if len(c.Command) > 0 {
		b.line("Exec", arguments)
	}
	b.section("Service")
	if empty {
		b.line("Environment", emptyVar+"=")
	}
	if semicolon {
		b.line("Environment", semicolonVar+"=;")
	}
	b.line("Restart", restart)
	if restart != "no" {
		b.line("RestartSec", "1")
	}
	start := startPatience
	for _, i := range c.Init {
		b.line("ExecStartPre", b.initial(c, i))
		start += i.Timeout
	}
	if c.ReloadSignal != "" {
		b.line("ExecReload", podmanProgram+" kill --signal="+c.ReloadSignal+" "+c.Name)
	}
	b.line("TimeoutStartSec", seconds(start))
	b.line("TimeoutStopSec", seconds(max(stopPatience, c.StopTimeout+stopMargin)))
	if c.LogDriver == "" || c.LogDriver == "journald" {
		b.line("LogRateLimitIntervalSec", strconv.Itoa(logInterval))
		b.line("LogRateLimitBurst", strconv.Itoa(logBurst))
	}
	b.section("Quadlet")
	b.line("DefaultDependencies", "false")
	if !c.Stopped {
		b.section("Install")
		b.line("WantedBy", "multi-user.target default.target")
	}
	if b.bad != nil {
		return nil, b.bad
	}
	text := b.Bytes()
	return append([]byte(textMark+textDigest(text)+"\n"), text...), nil
}

// labels are those of the books, and those that were asked for.
func (b *definitionText) labels(c topology.ContainerConfig) {
	label := func(name, value string) { b.line("Label", word(name+"="+value)) }
	label(ownerLabel, string(c.Mark))
	label(specLabel, c.SpecDigest)
	if c.HealthCheck != nil && len(c.HealthCheck.Command) == 0 {
		label(healthLabel, "image")
	}
	told := map[string]bool{}
	for _, s := range c.AllSecrets() {
		if !told[s.Name] {
			told[s.Name] = true
			label(secretLabel+s.Name, s.Fingerprint)
		}
	}
	b.each("Label", c.Labels, word)
}

// mounts are secrets, directories in memory and devices.
func (b *definitionText) mounts(c topology.ContainerConfig) {
	for _, s := range c.Secrets {
		b.line("Secret", word(secretOption(c.Name, s)))
	}
	for _, t := range c.Tmpfs {
		size := ""
		if t.Size > 0 {
			size = ":size=" + strconv.FormatUint(t.Size, 10)
		}
		b.line("Tmpfs", specifier(t.Target+size))
	}
	b.each("AddDevice", c.Devices, specifier)
}

// secretOption is how podman is told to give a secret to a container.
func secretOption(container string, s topology.ContainerSecret) string {
	id := secretID(container, s)
	if s.Env != "" {
		return id + ",type=env,target=" + s.Env
	}
	return fmt.Sprintf("%s,type=mount,target=%s,mode=%04o,uid=%d,gid=%d", id, s.Target, s.Mode, s.UID, s.GID)
}

// rights are what a container may do and use.
func (b *definitionText) rights(c topology.ContainerConfig) {
	b.each("DropCapability", c.CapDrop, specifier)
	b.each("AddCapability", c.CapAdd, specifier)
	if c.ReadOnly {
		b.line("ReadOnly", "true")
	}
	b.some("Network", c.Network)
	if c.Memory > 0 {
		b.line("PodmanArgs", "--memory="+strconv.FormatUint(c.Memory, 10))
	}
	if c.CPU > 0 {
		b.line("PodmanArgs", fmt.Sprintf("--cpus=%d.%02d", c.CPU/100, c.CPU%100))
	}
	if c.PIDs > 0 {
		b.line("PidsLimit", strconv.Itoa(c.PIDs))
	}
	b.some("LogDriver", c.LogDriver)
	if c.LogSize > 0 {
		b.line("PodmanArgs", "--log-opt=max-size="+strconv.FormatUint(c.LogSize, 10))
	}
}

// program is how what runs starts, ends, and is looked at.
func (b *definitionText) program(c topology.ContainerConfig) {
	b.some("HostName", c.Hostname)
	b.some("User", c.User)
	b.some("WorkingDir", c.WorkingDir)
	b.some("StopSignal", c.StopSignal)
	if c.StopTimeout > 0 {
		b.line("StopTimeout", seconds(c.StopTimeout))
	}
	if len(c.Entrypoint) > 0 {
		b.words("Entrypoint", c.Entrypoint)
	}
	h := c.HealthCheck
	if h == nil || len(h.Command) == 0 {
		return
	}
	if len(h.Command) == 1 { // a list of one would be given to a shell
		b.line("HealthCmd", specifier("CMD "+h.Command[0]))
	} else {
		b.words("HealthCmd", h.Command)
	}
	for _, s := range []struct {
		key string
		d   time.Duration
	}{{"HealthInterval", h.Interval}, {"HealthTimeout", h.Timeout}, {"HealthStartPeriod", h.StartPeriod}} {
		if s.d > 0 {
			b.line(s.key, seconds(s.d)+"s")
		}
	}
	if h.Retries > 0 {
		b.line("HealthRetries", strconv.Itoa(h.Retries))
	}
}

// command is a list of arguments for the generator.
func (b *definitionText) command(args []string) (line string, empty, semicolon bool) {
	words := make([]string, len(args))
	for i, w := range args {
		switch w {
		case "":
			words[i], empty = "${"+emptyVar+"}", true
		case ";":
			words[i], semicolon = "${"+semicolonVar+"}", true
		default:
			words[i] = word(w)
		}
	}
	return strings.Join(words, " "), empty, semicolon
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

func textDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
