package pi

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// A definition is what a definition file says about itself.
type definition struct {
	// config is what the container is made from. Of a file of somebody else it is empty.
	config topology.ContainerConfig
	intact bool // nobody edited it
	// ids are the secrets of the config by the names that podman has for them.
	ids map[string]topology.ContainerSecret
}

// parseDefinition reads back what quadlet wrote, by this version or by an older one.
func parseDefinition(text []byte) (d definition) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	sum, ours := strings.CutPrefix(string(first), textMark)
	if !ours {
		return d
	}
	d.intact = sum == textDigest(rest)
	d.ids = map[string]topology.ContainerSecret{}
	d.config.Stopped = true // until something wants it
	section := ""
	for line := range strings.Lines(string(rest)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "[") {
			section = line
		}
		key, value, _ := strings.Cut(line, "=")
		d.setting(section+key, value)
	}
	return d
}

// setting takes over one setting.
func (d *definition) setting(key, value string) {
	c := &d.config
	if to := d.text(key); to != nil {
		*to = plain(value)
		return
	}
	if to := d.texts(key); to != nil {
		*to = append(*to, plain(value))
		return
	}
	switch key {
	case "[Container]Label":
		d.label(plain(value))
	case "[Container]Secret":
		c.Secrets = append(c.Secrets, d.secret(plain(value)))
	case "[Container]Tmpfs":
		target, size, _ := strings.Cut(plain(value), ":size=")
		c.Tmpfs = append(c.Tmpfs, topology.ContainerTmpfs{Target: target, Size: parseNumber[uint64](size)})
	case "[Container]ReadOnly":
		c.ReadOnly = value == "true"
	case "[Container]PodmanArgs":
		d.argument(value)
	case "[Container]PidsLimit":
		c.PIDs = parseNumber[int](value)
	case "[Container]StopTimeout":
		c.StopTimeout = parseSeconds(value)
	case "[Container]Entrypoint":
		c.Entrypoint = fromOne(plain(value))
	case "[Container]HealthCmd":
		if one, is := strings.CutPrefix(plain(value), "CMD "); is {
			d.check().Command = []string{one}
		} else {
			d.check().Command = fromOne(plain(value))
		}
	case "[Container]HealthInterval":
		d.check().Interval = parseSeconds(value)
	case "[Container]HealthTimeout":
		d.check().Timeout = parseSeconds(value)
	case "[Container]HealthStartPeriod":
		d.check().StartPeriod = parseSeconds(value)
	case "[Container]HealthRetries":
		d.check().Retries = parseNumber[int](value)
	case "[Container]Exec":
		c.Command = arguments(value)
	case "[Service]Restart":
		c.Restart = value
		if value == "no" {
			c.Restart = "never"
		}
	case "[Service]ExecStartPre":
		d.parseInit(value)
	case "[Service]ExecReload":
		signal, _ := strings.CutPrefix(value, podmanProgram+" kill --signal=")
		c.ReloadSignal, _, _ = strings.Cut(signal, " ")
	case "[Install]WantedBy":
		c.Stopped = false
	}
}

// text and texts are where a setting goes as it is, nil for others.
func (d *definition) text(key string) *string {
	c := &d.config
	switch key {
	case "[Container]ContainerName":
		return &c.Name
	case "[Container]Image":
		return &c.Image
	case "[Container]HostName":
		return &c.Hostname
	case "[Container]User":
		return &c.User
	case "[Container]WorkingDir":
		return &c.WorkingDir
	case "[Container]Network":
		return &c.Network
	case "[Container]StopSignal":
		return &c.StopSignal
	case "[Container]LogDriver":
		return &c.LogDriver
	}
	return nil
}

func (d *definition) texts(key string) *[]string {
	c := &d.config
	switch key {
	case "[Container]Environment":
		return &c.Env
	case "[Container]PublishPort":
		return &c.Ports
	case "[Container]Volume":
		return &c.Volumes
	case "[Container]AddDevice":
		return &c.Devices
	case "[Container]AddCapability":
		return &c.CapAdd
	case "[Container]DropCapability":
		return &c.CapDrop
	}
	return nil
}

func (d *definition) label(text string) {
	name, value, _ := strings.Cut(text, "=")
	secret, isSecret := strings.CutPrefix(name, secretLabel)
	switch {
	case name == ownerLabel:
		d.config.Mark = topology.Mark(value)
	case name == specLabel:
		d.config.SpecDigest = value
	case name == healthLabel:
		d.check()
	case isSecret:
		s := topology.ContainerSecret{Name: secret, Fingerprint: value}
		d.ids[secretID(d.config.Name, s)] = s
	default:
		d.config.Labels = append(d.config.Labels, text)
	}
}

// check is the health check, once something is said of it.
func (d *definition) check() *topology.ContainerHealthCheck {
	if d.config.HealthCheck == nil {
		d.config.HealthCheck = new(topology.ContainerHealthCheck)
	}
	return d.config.HealthCheck
}

// argument takes over an argument of podman run.
func (d *definition) argument(s string) {
	switch option, value, _ := strings.Cut(s, "="); option {
	case "--memory":
		d.config.Memory = parseNumber[uint64](value)
	case "--cpus":
		whole, part, _ := strings.Cut(value, ".")
		d.config.CPU = parseNumber[uint32](whole)*100 + parseNumber[uint32](part)
	case "--log-opt":
		d.config.LogSize = parseNumber[uint64](strings.TrimPrefix(value, "max-size="))
	}
}

// secret reads what secretOption wrote. The labels, which come before, tell whose id it is.
func (d *definition) secret(option string) topology.ContainerSecret {
	id, rest, _ := strings.Cut(option, ",")
	s := d.ids[id]
	file := strings.HasPrefix(rest, "type=mount,")
	for part := range strings.SplitSeq(rest, ",") {
		switch key, value, _ := strings.Cut(part, "="); {
		case key == "target" && file:
			s.Target = value
		case key == "target":
			s.Env = value
		case key == "mode":
			mode, _ := strconv.ParseUint(value, 8, 12)
			s.Mode = uint32(mode)
		case key == "uid":
			s.UID = parseNumber[uint32](value)
		case key == "gid":
			s.GID = parseNumber[uint32](value)
		}
	}
	return s
}

// parseNumber reads what was written as one; what was not is zero, and the digest of the text tells.
func parseNumber[N uint32 | uint64 | int](s string) N {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || uint64(N(n)) != n {
		return 0
	}
	return N(n)
}
