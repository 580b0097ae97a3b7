package memory

import (
	"slices"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// The places of definitions, those of administrators first, as the service manager
// reads them.
const (
	adminDir     = "/etc/systemd/system/"
	runtimeDir   = "/run/systemd/system/"
	generatorDir = "/run/systemd/generator/"
	vendorDir    = "/usr/lib/systemd/system/"
	containerDir = "/etc/containers/systemd/"
)

var unitDirs = []string{adminDir, runtimeDir, vendorDir}

// A definition is as much of a unit as the capability can show.
type definition struct {
	load      string
	source    string
	typ       string
	remain    bool
	install   bool
	container string // the unit was made from the definition of a container
	start     string // the first word of ExecStart
	slow      bool   // ExecStartPre never ends
	restart   string // no, on-failure, always
	limited   bool   // restarts by itself end at the start limit
}

// load reads the definition of a unit from the files as they are now.
func (d *Device) load(name string) definition {
	for _, dir := range unitDirs {
		n := d.files[dir+name]
		switch {
		case n == nil:
			continue
		case n.typ == topology.Symlink && n.target == "/dev/null", n.typ == topology.Regular && len(n.content) == 0:
			return definition{load: topology.Masked, source: dir + name} // an empty file masks, too
		case n.typ != topology.Regular:
			continue
		}
		return parse(name, dir+name, string(n.content))
	}
	if base, ok := strings.CutSuffix(name, ".service"); ok {
		if n := d.files[definitionFile(base)]; n != nil && n.typ == topology.Regular {
			def := definition{load: topology.Loaded, source: generatorDir + name, typ: "notify", container: base, restart: "no", limited: true}
			def.read(string(n.content))
			return def
		}
	}
	if tpl := template(name); tpl != "" {
		if def := d.load(tpl); def.load != topology.NotFound {
			return def
		}
	}
	return definition{load: topology.NotFound}
}

// template returns kiosk@.service for kiosk@one.service.
func template(name string) string {
	at, dot := strings.IndexByte(name, '@'), strings.LastIndexByte(name, '.')
	if at < 0 || dot <= at+1 {
		return ""
	}
	return name[:at+1] + name[dot:]
}

func parse(name, source, text string) definition {
	def := definition{load: topology.Loaded, source: source, restart: "no", limited: true}
	if strings.HasSuffix(name, ".service") {
		def.typ = "simple"
	}
	ok := def.read(text)
	if !ok || def.typ != "" && def.start == "" {
		def.load = "bad-setting"
	}
	return def
}

// read takes over the settings of a definition; ok is false if a line is none.
func (def *definition) read(text string) (ok bool) {
	ok = true
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			def.install = def.install || line == "[Install]"
			continue
		}
		key, value, is := strings.Cut(line, "=")
		if !is {
			ok = false
			continue
		}
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "Type":
			def.typ = value
		case "RemainAfterExit":
			def.remain = slices.Contains([]string{"1", "yes", "true", "on"}, value)
		case "ExecStart":
			word, _, _ := strings.Cut(strings.TrimLeft(value, "-@:+!"), " ")
			def.start = word
		case "ExecStartPre":
			def.slow = strings.Contains(value, "sleep")
		case "Restart":
			def.restart = value
		case "RestartSec":
			// The default limit is 5 starts in 10 seconds: who waits 2 seconds or more never meets it.
			if wait, err := time.ParseDuration(strings.TrimSuffix(value, "s") + "s"); err == nil && wait >= 2*time.Second {
				def.limited = false
			}
		case "StartLimitIntervalSec", "StartLimitBurst":
			def.limited = def.limited && value != "0"
		}
	}
	return ok
}

// overrides lists the drop-ins of a unit.
func (d *Device) overrides(name string) (out []string) {
	for p := range d.files {
		for _, dir := range unitDirs {
			if strings.HasPrefix(p, dir+name+".d/") && strings.HasSuffix(p, ".conf") {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return out
}
