package score

import "fmt"

// Nearest returns the one of names that is closest to s, if any is close enough
// to be a typing mistake.
func Nearest(s string, names []string) (string, bool) {
	best, at := "", 1+max(1, len(s)/3)
	for _, n := range names {
		if d := distance(s, n); d < at {
			best, at = n, d
		}
	}
	return best, best != ""
}

func didYouMean(s string, names []string) string {
	if n, ok := Nearest(s, names); ok {
		return fmt.Sprintf(", did you mean %q?", n)
	}
	return ""
}

// distance is the Damerau-Levenshtein distance (optimal string alignment): a
// swap of neighbours, the commonest typing mistake, counts once.
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}
