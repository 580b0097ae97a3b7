package pi

import (
	"io/fs"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

var cardName = regexp.MustCompile(`^mmcblk[0-9]+$`) // and not its boot areas or partitions

// maxCards bounds how many cards a machine has.
const maxCards = 4

// cards are SD cards and eMMC. The kernel read their registers when it found them: to ask
// costs no access to the card.
func (f *facts) cards() (out []topology.Card) {
	entries, _ := fs.ReadDir(f.tree, "sys/block")
	for _, e := range entries {
		if !cardName.MatchString(e.Name()) || len(out) == maxCards {
			continue
		}
		of := func(name string) string { return f.word(path.Join("sys/block", e.Name(), "device", name)) }
		out = append(out, topology.Card{
			Device: e.Name(), Type: of("type"), Name: of("name"), Manufacturer: of("manfid"), Date: of("date"),
			LifeUsedPercent: lifeUsed(of("life_time")), Reserve: reserve[of("pre_eol_info")],
		})
	}
	return out
}

// lifeUsed reads the estimates of an eMMC for its two kinds of cells, such as "0x02 0x01":
// tenths that are used, at most, and 0x0b beyond the end. 0 is unknown.
func lifeUsed(text string) int {
	worst := 0
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.ParseUint(word, 0, 8)
		if err == nil && n <= 0x0b {
			worst = max(worst, int(n)*10)
		}
	}
	return worst
}

var reserve = map[string]string{"0x01": "normal", "0x02": "warning", "0x03": "urgent"}

// zones are the names that the kernel has for the temperature of the processor, the best first.
var zones = []string{"cpu-thermal", "cpu_thermal", "soc-thermal", "x86_pkg_temp", "coretemp", "k10temp", "acpitz"}

// maxSensors is how many directories of sensors are looked at.
const maxSensors = 64

// temperature is that of the processor, in tenths of a degree; nil if no sensor is known.
func (f *facts) temperature() *float64 {
	best, value := len(zones), 0.0
	for _, s := range []struct{ dirs, name, file string }{
		{"sys/class/thermal/thermal_zone*", "type", "temp"},
		{"sys/class/hwmon/hwmon*", "name", "temp1_input"},
	} {
		for _, dir := range f.glob(s.dirs) {
			rank := slices.Index(zones, f.word(dir+"/"+s.name))
			if rank < 0 || rank >= best {
				continue
			}
			n, err := strconv.Atoi(f.word(dir + "/" + s.file))
			if err == nil && n > -100_000 && n < 250_000 {
				best, value = rank, math.Round(float64(n)/100)/10
			}
		}
	}
	if best == len(zones) {
		return nil
	}
	return &value
}

func (f *facts) glob(pattern string) []string {
	found, _ := fs.Glob(f.tree, pattern)
	return found[:min(len(found), maxSensors)]
}

// power asks the firmware of a Raspberry Pi: the kernel of Raspberry Pi OS shows all of what
// it says, the kernel of others the under-voltage of the last two seconds alone.
func (f *facts) power(boot string) *topology.Power {
	var p topology.Power
	known := false
	for _, dir := range f.glob("sys/devices/platform/soc*/soc*:firmware") {
		text := strings.TrimPrefix(f.word(dir+"/get_throttled"), "0x")
		if bits, err := strconv.ParseUint(text, 16, 32); err == nil {
			p, known = throttled(uint32(bits)), true
			break
		}
	}
	for _, dir := range f.glob("sys/class/hwmon/hwmon*") {
		if f.word(dir+"/name") != "rpi_volt" {
			continue
		}
		switch f.word(dir + "/in0_lcrit_alarm") {
		case "1":
			p.UnderVoltage, known = true, true
		case "0":
			known = true
		}
	}
	if !known {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.boot != boot {
		f.boot, f.seen = boot, topology.Power{}
	}
	f.seen = topology.Power{
		UnderVoltageOccurred:     f.seen.UnderVoltageOccurred || p.UnderVoltageOccurred || p.UnderVoltage,
		ThrottledOccurred:        f.seen.ThrottledOccurred || p.ThrottledOccurred || p.Throttled,
		FrequencyCappedOccurred:  f.seen.FrequencyCappedOccurred || p.FrequencyCappedOccurred || p.FrequencyCapped,
		TemperatureLimitOccurred: f.seen.TemperatureLimitOccurred || p.TemperatureLimitOccurred || p.TemperatureLimit,
	}
	all := f.seen
	all.UnderVoltage, all.Throttled, all.FrequencyCapped, all.TemperatureLimit = p.UnderVoltage, p.Throttled, p.FrequencyCapped, p.TemperatureLimit
	return &all
}

// throttled takes the word of the firmware apart: below what is so now, and 16 bits above
// the same since the boot.
func throttled(bits uint32) topology.Power {
	has := func(bit int) bool { return bits>>bit&1 != 0 }
	return topology.Power{
		UnderVoltage: has(0), FrequencyCapped: has(1), Throttled: has(2), TemperatureLimit: has(3),
		UnderVoltageOccurred: has(16), FrequencyCappedOccurred: has(17), ThrottledOccurred: has(18), TemperatureLimitOccurred: has(19),
	}
}
