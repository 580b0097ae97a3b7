package score

import "strings"

// Names in what is decoded are whoever wrote it's, as long and as deep as he likes; an error shows where it is, and no more.
const (
	longestName  = 40
	deepestShown = 16
)

func clip(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "") + "…"
}

func clipPath(p string) string {
	var b strings.Builder
	n := 0
	for token := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		if n++; n > deepestShown {
			b.WriteString("/…")
			break
		}
		b.WriteString("/" + clip(token))
	}
	return b.String()
}
