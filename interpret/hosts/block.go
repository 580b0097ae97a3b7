package hosts

import (
	"bytes"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/continuo-fleet/continuo/score"
	"github.com/continuo-fleet/continuo/topology"
)

// The comments around the block. The first one has the mark behind it.
const (
	begin = "# continuo begin "
	note  = " (written by continuo: edit the manifest, and not these lines)"
	end   = "# continuo end"
)

// A file is a hosts file, taken apart. before, block with its comments, and after are all of it.
type file struct {
	before, block, after []byte // block is without its comments
	found                bool
	mark                 topology.Mark
}

// split takes a hosts file apart. Comments that do not pair are a fault: what belongs to whom
// cannot be told then.
func split(b []byte) (file, error) {
	f := file{before: b}
	at := 0
	opened, closed := -1, -1
	var inside int
	for line := range bytes.Lines(b) {
		text := strings.TrimRight(string(line), "\r\n")
		switch {
		case strings.HasPrefix(text, begin):
			if opened >= 0 {
				return file{}, unpaired()
			}
			opened, inside = at, at+len(line)
			mark, _, _ := strings.Cut(text[len(begin):], " ")
			f.mark = topology.Mark(mark)
		case text == end:
			if opened < 0 || closed >= 0 {
				return file{}, unpaired()
			}
			closed = at
			f.before, f.block, f.after, f.found = b[:opened], b[inside:at], b[at+len(line):], true
		}
		at += len(line)
	}
	if opened >= 0 && closed < 0 {
		return file{}, unpaired()
	}
	return f, nil
}

func unpaired() error {
	return topology.Faultf(topology.CodeForeign, "the comments around the block in %s do not pair: there must be one line %q… and one line %q behind it; mend or remove them", score.HostsFile, begin, end)
}

// with is the file with a block of lines, in its place or at the end.
func (f file) with(mark topology.Mark, lines string) []byte {
	var out bytes.Buffer
	out.Write(f.before)
	if n := len(f.before); n > 0 && f.before[n-1] != '\n' {
		out.WriteByte('\n')
	}
	out.WriteString(begin + string(mark) + note + "\n" + lines + end + "\n")
	out.Write(f.after)
	return out.Bytes()
}

// without is the file without the block.
func (f file) without() []byte {
	return slices.Concat(f.before, f.after)
}

// lines are the entries of a score, as they are written.
func lines(s score.Hosts) string {
	var b strings.Builder
	for _, e := range s.Entries {
		b.WriteString(e.Address + "\t" + strings.Join(e.Names, " ") + "\n")
	}
	return b.String()
}

// maxName is longer than any name that can be looked up.
const maxName = 253

// entries reads lines of a hosts file, and skips what gives nobody a name.
func entries(b []byte) (out []score.HostEntry) {
	for line := range bytes.Lines(b) {
		text, _, _ := strings.Cut(strings.ToValidUTF8(string(line), "\uFFFD"), "#")
		fields := slices.DeleteFunc(strings.Fields(text), func(name string) bool { return len(name) > maxName })
		if len(fields) < 2 {
			continue
		}
		if ip, err := netip.ParseAddr(fields[0]); err == nil {
			out = append(out, score.HostEntry{Address: ip.String(), Names: fields[1:]})
		}
	}
	return out
}

// duplicates finds names of s that lines of others have, too. hidden is true if one of them is
// before the block, and gives the name another address of the same family: the first line counts.
func duplicates(s score.Hosts, f file) (out []string, hidden bool) {
	type family struct {
		name string
		four bool
	}
	ours := map[family]string{}
	named := map[string]bool{}
	for _, e := range s.Entries {
		ip, _ := netip.ParseAddr(e.Address)
		for _, n := range e.Names {
			n = strings.ToLower(n)
			named[n] = true
			if _, twice := ours[family{n, ip.Is4()}]; !twice {
				ours[family{n, ip.Is4()}] = e.Address
			}
		}
	}
	for i, part := range [][]byte{f.before, f.after} {
		for _, e := range entries(part) {
			ip, _ := netip.ParseAddr(e.Address)
			for _, n := range e.Names {
				if !named[strings.ToLower(n)] {
					continue
				}
				out = append(out, n+" "+e.Address)
				to, same := ours[family{strings.ToLower(n), ip.Is4()}]
				hidden = hidden || i == 0 && f.found && same && to != e.Address
			}
		}
	}
	return out, hidden
}

// addresses are those of each name, in order.
func addresses(es []score.HostEntry) map[string]string {
	out := map[string]string{}
	for _, e := range es {
		for _, n := range e.Names {
			out[n] = strings.TrimPrefix(out[n]+" "+e.Address, " ")
		}
	}
	return out
}

// names are all of some entries, sorted.
func names(of ...[]score.HostEntry) []string {
	all := map[string]string{}
	for _, es := range of {
		maps.Copy(all, addresses(es))
	}
	return slices.Sorted(maps.Keys(all))
}
