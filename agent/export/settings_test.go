package export

import (
	"strings"
	"testing"
)

// What stands in the files of units is anybody's. H58
func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"[Service]\nExecStart=/a \"b\" ; '/c d'\n", "[Unit]\nRequires=a@%i.service \\\n# x\n b.service\n", "[Service]\nExecStart=@-\"/a\\x20b\" \"\nEnvironmentFile=-%E/%p\n",
		"=\n[", "[X]\n=\n\\", "ExecStart=%", "[Service]\nExecStart=\"\n", "[Service]\nExecStart=a\\",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range inForce(settings("/x", text)) {
			if s.in != "/x" || s.value == "" || strings.ContainsAny(s.name+s.value, "\r\n") {
				t.Errorf("got %+v", s)
			}
			if all, clear := programs(s.value); clear {
				for _, p := range all {
					if strings.ContainsAny(p, "\"'\\") || p == "" {
						t.Errorf("%q starts %q", s.value, p)
					}
				}
			}
			for _, unit := range []string{"a.service", "a-b@c-d.service", "@.service", ""} {
				if out, clear := expand(s.value, unit, true); !clear && out != "" {
					t.Errorf("%q of %s is %q, and not clear", s.value, unit, out)
				}
			}
		}
		for _, p := range []string{text, "/etc/systemd/system/" + text, "/etc/containers/systemd/" + text} {
			mainOf(p)
		}
	})
}
