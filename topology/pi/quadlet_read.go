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
}

// parseDefinition reads back what quadlet wrote, by this version or by an older one.
func parseDefinition(text []byte) (d definition) {
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	sum, ours := strings.CutPrefix(string(first), textMark)
	if !ours {
		return d
	}
	d.intact = sum == textDigest(rest)
	c, section := &d.config, ""
	for line := range strings.Lines(string(rest)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "[") {
			section = line
		}
		key, value, _ := strings.Cut(line, "=")
		switch section + key {
		case "[Container]ContainerName":
			c.Name = value
		case "[Container]Image":
			c.Image = plain(value)
		case "[Container]Label":
			label, value, _ := strings.Cut(plain(value), "=")
			switch label {
			case ownerLabel:
				c.Mark = topology.Mark(value)
			case specLabel:
				c.SpecDigest = value
			}
		case "[Container]Environment":
			c.Env = append(c.Env, plain(value))
		case "[Container]PublishPort":
			c.Ports = append(c.Ports, plain(value))
		case "[Container]Volume":
			c.Volumes = append(c.Volumes, plain(value))
		case "[Container]Exec":
			c.Command = arguments(value)
		case "[Service]Restart":
			c.Restart = value
			if value == "no" {
				c.Restart = "never"
			}
		}
	}
	return d
}

// plain undoes specifier and word.
func plain(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return strings.NewReplacer("%%", "%", "$$", "$").Replace(s)
	}
	var b strings.Builder
	for s = s[1 : len(s)-1]; s != ""; s = s[1:] {
		switch {
		case len(s) > 3 && s[:2] == `\x`:
			n, err := strconv.ParseUint(s[2:4], 16, 8)
			if err != nil {
				return "" // nothing that word has written
			}
			b.WriteByte(byte(n))
			s = s[3:]
			continue
		case len(s) > 1 && (s[0] == '\\' || s[:2] == "%%" || s[:2] == "$$"):
			s = s[1:]
		}
		b.WriteByte(s[0])
	}
	return b.String()
}

// arguments takes a command apart.
func arguments(s string) []string {
	var out []string
	for s != "" {
		end := strings.IndexByte(s, ' ')
		if s[0] == '"' {
			for end = 1; end < len(s) && s[end] != '"'; end++ {
				if s[end] == '\\' {
					end++
				}
			}
			end++
		}
		if end < 0 || end > len(s) {
			end = len(s)
		}
		switch w := s[:end]; w {
		case "${" + emptyVar + "}":
			out = append(out, "")
		case "${" + semicolonVar + "}":
			out = append(out, ";")
		default:
			out = append(out, plain(w))
		}
		s = strings.TrimPrefix(s[end:], " ")
	}
	return out
}
