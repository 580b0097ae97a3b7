package continuo_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// span is "H01", "H02", …
func span(letter string, from, to int) (ids []string) {
	for i := from; i <= to; i++ {
		ids = append(ids, fmt.Sprintf("%s%02d", letter, i))
	}
	return ids
}

// inScope is every row and case that this version has to make true.
var inScope = slices.Concat(
	span("H", 1, 43), span("H", 45, 76), span("H", 78, 81),
	span("G", 8, 15), span("G", 25, 45), span("G", 49, 51), span("G", 58, 61),
	strings.Fields("G16 G62 G75 X46 X69"),
	span("S", 1, 31), span("S", 33, 39), span("S", 43, 47), span("S", 49, 49),
	span("X", 29, 36), span("X", 39, 39), span("X", 45, 45), span("X", 50, 50), span("X", 52, 61), span("X", 71, 71), span("X", 74, 80), span("X", 91, 92),
	span("X", 96, 104), span("X", 106, 106), strings.Fields("K5 K16"),
	strings.Fields("S41 X02 X47 X69 X89 G64 S48 X90"),
	strings.Fields("1 4 6 7 9 10 12 14 15 16 18 20 21 22"),
	strings.Fields("24 25 27 28 30 33 35 36 37 38 40 41 43 45 46 47"),
	strings.Fields("50 51 53 54 55 57 59 61 62 64 66 67"),
	strings.Fields("69 72 73 74 75 77 79 80 81 82 83 85 86 87 89 90 92 94 96"),
	strings.Fields("98 99 101 103 104 105 107"),
	strings.Fields("142 146 147 149 150 153"),
	strings.Fields("122 123 124 126 128 130 132 134 135 138 139 141"),
	strings.Fields("155 156 157 161 162"),
)

// The document of what proves what names tests that exist, speaks of every row once, and leaves no claim without a
// test and no doubt without a reason.
func TestRows(t *testing.T) {
	declared := map[string]map[string]bool{} // by folder
	tests := func(folder string) map[string]bool {
		if declared[folder] == nil {
			declared[folder] = map[string]bool{}
			files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(readText(t, file), -1) {
					declared[folder][m[1]] = true
				}
			}
		}
		return declared[folder]
	}
	seen, n, makefile := map[string]bool{}, 0, readText(t, "Makefile")
	for line := range strings.Lines(readText(t, "test/ROWS.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "-") || cells[3] == " holds " {
			continue
		}
		row, holds, note := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[3]), strings.TrimSpace(cells[4])
		if seen[row] {
			t.Errorf("%s is there twice", row)
		}
		seen[row] = true
		named := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1)
		for _, m := range named {
			folder, test, _ := strings.Cut(m[1], ":")
			there := tests(folder)[test]
			if folder == "make" {
				there = strings.Contains(makefile, "\n"+test+":")
			}
			if n++; !there {
				t.Errorf("%s: there is no test %s", row, m[1])
			}
		}
		switch {
		case !slices.Contains([]string{"yes", "partly", "later"}, holds):
			t.Errorf("%s holds %q: want yes, partly or later", row, holds)
		case holds == "yes" && len(named) == 0:
			t.Errorf("%s holds, and no test is named", row)
		case holds != "yes" && note == "":
			t.Errorf("%s holds %s, and nobody says why", row, holds)
		}
	}
	for _, row := range inScope {
		if !seen[row] {
			t.Errorf("%s is not there", row)
		}
	}
	if n < 100 {
		t.Errorf("read %d names of tests only", n)
	}
}
