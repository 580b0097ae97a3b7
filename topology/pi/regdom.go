package pi

import (
	"context"
	"os"
	"regexp"
	"strings"

	"github.com/continuo-fleet/continuo/topology"
)

// countryFile sets the country of the radios for the kernel's module that knows it, which
// reads it when it is loaded.
const countryFile = "/etc/modprobe.d/continuo-country.conf"

var countryRE = regexp.MustCompile(`cfg80211[. ](?:.*)ieee80211_regdom=([A-Z]{2})\b`)

// country is the country that the radios of the device are set to at the next boot.
func country(ctx context.Context, f *files) string {
	if data, err := f.Content(ctx, countryFile, 4096); err == nil {
		if m := countryRE.FindSubmatch(data); m != nil {
			return string(m[1])
		}
	}
	// What Raspberry Pi OS was told when it was installed.
	data, _ := os.ReadFile("/proc/cmdline")
	for _, word := range strings.Fields(string(data)) {
		if c, ok := strings.CutPrefix(word, "cfg80211.ieee80211_regdom="); ok && len(c) == 2 {
			return c
		}
	}
	return ""
}

func setCountry(ctx context.Context, f *files, c string) error {
	if c == "" || country(ctx, f) == c {
		return nil
	}
	err := f.WriteFile(ctx, topology.FileWrite{
		Path: countryFile, Mode: 0o644, Content: []byte("# The country that the device is in, as its scores of kind wifi say.\noptions cfg80211 ieee80211_regdom=" + c + "\n"),
	})
	if err == nil {
		_ = tellCountry(c) // a kernel whose radio is not there yet reads the file when it comes
	}
	return err
}
