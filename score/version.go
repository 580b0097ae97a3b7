package score

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A VersionRange says which versions will do: comparisons of which all must hold, with
// commas between, such as ">= 4.4, < 6". What stands behind the numbers of a version, such
// as -rc1 or +deb13u1, is not compared, and 5 is 5.0.0. Empty takes any.
type VersionRange string

// VersionRangePattern is the form of a VersionRange.
const VersionRangePattern = `^((>=|<=|>|<|=|!=) *[0-9]+(\.[0-9]+)*)( *, *(>=|<=|>|<|=|!=) *[0-9]+(\.[0-9]+)*)*$`

var (
	rangeRE      = regexp.MustCompile(VersionRangePattern)
	comparisonRE = regexp.MustCompile(`(>=|<=|>|<|=|!=) *([0-9.]+)`)
	numbersRE    = regexp.MustCompile(`^v?([0-9]+(?:\.[0-9]+)*)`)
)

func (v VersionRange) check(r *Report) {
	if v != "" && (len(v) > 128 || !rangeRE.MatchString(string(v))) {
		r.Errorf(`version %q is no range of versions: want comparisons (>=, >, <=, <, =, !=) with commas between, such as ">= 4.4, < 6"`, string(v))
		return
	}
}

// Has reports whether a version is one of v. It fails if the version is none, or v is no range.
func (v VersionRange) Has(version string) (bool, error) {
	if v == "" {
		return true, nil
	}
	if !rangeRE.MatchString(string(v)) {
		return false, fmt.Errorf("cannot compare with %q: it is no range of versions", string(v))
	}
	numbers := numbersRE.FindStringSubmatch(version)
	if numbers == nil {
		return false, fmt.Errorf("cannot compare %.64q: it does not begin with a number", version)
	}
	for _, c := range comparisonRE.FindAllStringSubmatch(string(v), -1) {
		order := compareVersions(numbers[1], c[2])
		holds := map[string]bool{">=": order >= 0, ">": order > 0, "<=": order <= 0, "<": order < 0, "=": order == 0, "!=": order != 0}
		if !holds[c[1]] {
			return false, nil
		}
	}
	return true, nil
}

func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if order := cmp.Compare(part(as, i), part(bs, i)); order != 0 {
			return order
		}
	}
	return 0
}

// part is 0 behind the last one; a number that is too large for any version is the largest.
func part(parts []string, i int) uint64 {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.ParseUint(parts[i], 10, 64)
	if err != nil {
		return 1<<64 - 1
	}
	return n
}
