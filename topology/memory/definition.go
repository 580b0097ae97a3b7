package memory

import (
	"cmp"
	"path"
	"slices"
	"strconv"
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
	userDir      = "/etc/systemd/user/"
	userVendor   = "/usr/lib/systemd/user/"
)

var (
	unitDirs = []string{adminDir, runtimeDir, vendorDir}
	userDirs = []string{userDir, userVendor}
)

// place says where a unit, or that of a user, is defined, and what it is called there.
func place(ref string) (dirs []string, name string) {
	if _, name, ok := strings.Cut(ref, "/"); ok {
		return userDirs, name
	}
	return unitDirs, ref
}

// definedAt is where Define writes a unit.
func definedAt(ref string) string {
	dirs, name := place(ref)
	return dirs[0] + name
}

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
	reload    bool   // it can be reloaded
	triggers  string // the unit that it starts
	limits    topology.UnitLimits
}

// load is the definition of a unit as the service manager has it.
func (d *Device) load(ref string) definition {
	if u := d.units[ref]; u != nil && u.active != "inactive" {
		if def, ok := d.manager.loaded[ref]; ok {
			return def
		}
	}
	return d.read(ref)
}

// read reads the definition of a unit from the files as they are now, or were at the last reload.
func (d *Device) read(ref string) definition {
	dirs, name := place(ref)
	for _, dir := range dirs {
		n := d.files[dir+name]
		switch {
		case n == nil:
			continue
		case n.typ == topology.Symlink && n.target == "/dev/null", n.typ == topology.Regular && len(n.content) == 0:
			return definition{load: topology.Masked, source: dir + name} // an empty file masks, too
		case n.typ != topology.Regular:
			continue
		}
		return d.parse(ref, dir+name, string(n.content))
	}
	if base, ok := strings.CutSuffix(ref, ".service"); ok {
		text, known := d.manager.containers[base]
		if n := d.files[definitionFile(base)]; known && n != nil && n.typ == topology.Regular {
			def := definition{load: topology.Loaded, source: generatorDir + name, typ: "notify", container: base, restart: "no", limited: true}
			def.read(text)
			return def
		}
	}
	if tpl := template(ref); tpl != "" {
		if def := d.read(tpl); def.load != topology.NotFound {
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

func (d *Device) parse(ref, source, text string) definition {
	def := definition{load: topology.Loaded, source: source, restart: "no", limited: true}
	base, suffix := ref[:strings.LastIndexByte(ref, '.')], path.Ext(ref)
	switch suffix {
	case ".service":
		def.typ = "simple"
	case ".timer", ".socket", ".path":
		_, base, _ = strings.Cut("/"+base, "/")
		def.triggers = path.Base(base) + ".service"
	}
	ok := def.read(text)
	install := def.install
	for _, p := range d.overrides(ref) {
		ok = def.read(string(d.files[p].content)) && ok
	}
	def.install = install // [Install] has no effect in a drop-in
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
		case "ExecReload":
			def.reload = value != ""
		case "Unit", "Service":
			if def.triggers != "" {
				def.triggers = value
			}
		case "MemoryMax":
			def.limits.Memory, _ = strconv.ParseUint(value, 10, 64)
		case "TasksMax":
			def.limits.Tasks, _ = strconv.ParseUint(value, 10, 64)
		case "IOWeight":
			def.limits.IOWeight, _ = strconv.ParseUint(value, 10, 64)
		case "CPUQuota":
			percent, _ := strconv.ParseUint(strings.TrimSuffix(value, "%"), 10, 32)
			def.limits.CPU = uint32(percent)
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

// overrides lists the drop-ins of a unit, in the order in which they are read.
func (d *Device) overrides(ref string) (out []string) {
	dirs, name := place(ref)
	for p, n := range d.files {
		for _, dir := range dirs {
			if strings.HasPrefix(p, dir+name+".d/") && strings.HasSuffix(p, ".conf") && n.typ == topology.Regular {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(path.Base(a), path.Base(b)), cmp.Compare(a, b)) })
	return out
}

// dropIns shows them.
func (d *Device) dropIns(ref string) (out []topology.DropIn) {
	for _, p := range d.overrides(ref) {
		st, err := d.fileState(p)
		if err != nil {
			continue
		}
		text := string(d.files[p].content)
		in := topology.DropIn{Path: p, Mark: st.Mark, SHA256: st.SHA256, Mode: st.Mode, Settings: topology.UnitSettings(text)}
		if strings.HasPrefix(p, definedAt(ref)+".d/") && strings.HasPrefix(text, topology.DropInHeader) && st.Mark != "" {
			in.Name = strings.TrimSuffix(path.Base(p), ".conf")
		}
		out = append(out, in)
	}
	return out
}
