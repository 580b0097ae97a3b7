// Package unitfiles knows which units of a service manager a file is about, and which units
// the manager has to read again. It reads no file and speaks to nobody.
package unitfiles

import (
	"slices"
	"strings"
)

// Every stands for every unit: what a file is about is not known, or all of them.
const Every = ""

var types = []string{"service", "socket", "target", "timer", "path", "mount", "automount", "swap", "slice", "scope", "device"}

// Unit names the unit that a file is about, by its path below a directory of definitions: that
// of the unit itself, or what adds to it. That of a template is about all its instances. Drop-ins for
// a type or for a prefix are about Every, and so are links, which are about two units.
func Unit(below string) string {
	name, part, inside := strings.Cut(below, "/")
	unit, adds := strings.CutSuffix(name, ".d")
	i := strings.LastIndexByte(unit, '.')
	if inside && (!adds || strings.Contains(part, "/")) || i <= 0 || unit[i-1] == '-' || !slices.Contains(types, unit[i+1:]) {
		return Every
	}
	return unit
}

// Container names the unit that a generator makes of the definition of a container.
func Container(below string) string {
	name, ok := strings.CutSuffix(below, ".container")
	if !ok || name == "" || strings.Contains(name, "/") {
		return Every
	}
	return name + ".service"
}

// template is kiosk@.service for kiosk@one.service; empty: it is no instance.
func template(unit string) string {
	at, dot := strings.IndexByte(unit, '@'), strings.LastIndexByte(unit, '.')
	if at < 0 || dot <= at+1 {
		return ""
	}
	return unit[:at+1] + unit[dot:]
}
