package show

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/continuo-fleet/continuo/interpret"
	"github.com/continuo-fleet/continuo/topology"
)

// Info writes what a device says it is.
func Info(w io.Writer, i interpret.DeviceInfo) error {
	out := bufio.NewWriter(w)
	row := func(name string, words ...string) {
		if text := Text(strings.Join(strings.Fields(strings.Join(words, " ")), " ")); text != "" {
			fmt.Fprintf(out, "%-12s %s\n", name, text)
		}
	}
	f := i.Facts
	row("device", i.Device)
	row("host name", f.Hostname)
	row("model", f.Model)
	row("serial", f.Serial)
	row("system", f.OS.Name)
	row("kernel", f.Kernel, f.Arch)
	row("boot id", f.BootID)
	if f.MemoryMiB > 0 {
		row("memory", fmt.Sprintf("%d MiB, %d processors", f.MemoryMiB, f.CPUs))
	}
	for _, d := range f.Disks {
		row("disk", fmt.Sprintf("%s: %d of %d MiB are free", d.Path, d.FreeMiB, d.SizeMiB), when(d.ReadOnly, "(read-only)"))
	}
	for _, c := range f.Cards {
		row("card", c.Device+":", c.Type, c.Name, c.Date, when(c.LifeUsedPercent > 0, fmt.Sprintf("life used %d %%", c.LifeUsedPercent)), when(c.Reserve != "", "reserve "+c.Reserve))
	}
	if f.Temperature != nil {
		row("temperature", fmt.Sprintf("%.1f °C", *f.Temperature))
	}
	if p := f.Power; p != nil {
		text := now(p.UnderVoltage, p.UnderVoltageOccurred, "under-voltage") + now(p.Throttled, p.ThrottledOccurred, "throttled") +
			now(p.FrequencyCapped, p.FrequencyCappedOccurred, "slowed down") + now(p.TemperatureLimit, p.TemperatureLimitOccurred, "at its temperature limit")
		if text == "" {
			text = "; good since the boot"
		}
		row("power", strings.TrimPrefix(text, "; "))
	}
	for _, n := range f.Interfaces {
		row("network", n.Name+":", strings.Join(n.Addresses, ", "), when(!n.Up, "(down)"), n.MAC)
	}
	clock := []string{when(f.ClockSynchronized != nil && *f.ClockSynchronized, "synchronized"), when(f.ClockSynchronized != nil && !*f.ClockSynchronized, "not synchronized")}
	if a := i.Clock.AheadSeconds; a != nil {
		clock = append(clock, fmt.Sprintf("%+.1f s from the fleet's, ± %.1f s", *a, i.Clock.WithinSeconds))
	}
	row("clock", clock...)
	if f.RebootRequired {
		row("reboot", "required", when(len(f.RebootFor) > 0, "by "+strings.Join(f.RebootFor, ", ")))
	}
	for _, tool := range i.Tools {
		words := []string{tool.Name, when(tool.Condition != topology.ToolPresent, "is "+string(tool.Condition))}
		for _, c := range tool.Copies {
			words = append(words, c.Version, c.Path, when(c.Why != "", "("+c.Why+")"))
		}
		row("tool", words...)
	}
	row("agent", i.Agent.Version)
	if !i.Time.IsZero() {
		row("told", i.Time.UTC().Format(time.RFC3339))
	}
	return out.Flush()
}

func when(is bool, text string) string {
	if !is {
		return ""
	}
	return text
}

// now says of something bad that it is so, or was.
func now(is, was bool, what string) string {
	switch {
	case is:
		return "; " + what + " now"
	case was:
		return "; " + what + " since the boot"
	}
	return ""
}
