package topology

import (
	"path"
	"strings"
)

// maxLinks is how many links a kernel follows.
const maxLinks = 40

// Follow returns where p leads, component by component: text alone does not tell where .. leads. Readlink is the
// target of a link, and empty for all else.
func Follow(p string, readlink func(p string) (target string, err error)) (string, error) {
	at, links := "/", 0
	for rest := strings.Split(p, "/"); len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at) // there is no link in it
			continue
		}
		target, err := readlink(path.Join(at, name))
		switch {
		case err != nil:
			return "", err
		case target == "":
			at = path.Join(at, name)
			continue
		case links == maxLinks:
			return "", Faultf(CodeSymlink, "cannot follow %s: too many links", p)
		case target[0] == '/':
			at = "/"
		}
		links++
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
