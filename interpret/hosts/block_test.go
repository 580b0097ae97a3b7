package hosts

import (
	"bytes"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/score"
)

// FuzzBlock: of whatever is in a hosts file, nothing but the block is ever changed, and what was
// written is read back.
func FuzzBlock(f *testing.F) {
	for _, s := range []string{
		"", "\n", "127.0.0.1 localhost\n", "127.0.0.1 localhost", "# continuo begin m/s\n192.0.2.1 a\n# continuo end\n",
		"# continuo begin \r\n# continuo end\r\nx", "a\n# continuo end\n", "# continuo begin x\n", "# continuo end", "\x00\xff\n\r\r\n",
		"192.0.2.1 a # continuo end\n  # continuo begin m/s\n", "::1%lo a\n256.1.1.1 b\n1.1.1.1\n",
	} {
		f.Add([]byte(s))
	}
	s := score.Hosts{Entries: []score.HostEntry{{Address: "192.0.2.10", Names: []string{"broker"}}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := split(b)
		if err != nil {
			return
		}
		if whole := file.without(); !file.found && !bytes.Equal(whole, b) {
			t.Fatalf("without a block %q is %q", b, whole)
		}
		with := file.with("m/s", lines(s))
		again, err := split(with)
		if err != nil || !again.found || string(again.block) != lines(s) || again.mark != "m/s" {
			t.Fatalf("%q was written as %q, and is read as %+v, %v", b, with, again, err)
		}
		if got, want := again.without(), file.without(); !bytes.Equal(got, want) && !bytes.Equal(got, append(bytes.Clone(want), '\n')) {
			t.Fatalf("lines of others were %q and are %q", want, got)
		}
		if third := again.with("m/s", lines(s)); !bytes.Equal(third, with) {
			t.Fatalf("%q is written again as %q", with, third)
		}
		for _, e := range entries(b) {
			if len(e.Names) == 0 || strings.ContainsAny(strings.Join(e.Names, ""), " \n#") {
				t.Fatalf("%q has the entry %+v", b, e)
			}
		}
		duplicates(s, file)
	})
}
