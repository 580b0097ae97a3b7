//go:build linux

package box

import (
	"reflect"
	"strings"
	"testing"
)

func TestReadResults(t *testing.T) {
	tests := []struct {
		name, in string
		want     outcome
	}{
		{"nothing ran", "testing: warning: no tests to run\nPASS\n", outcome{}},
		{"passed with a subtest", "=== RUN   TestA\n    --- PASS: TestA/x (0.00s)\n--- PASS: TestA (0.01s)\nPASS\n", outcome{passed: 2}},
		{"failed and skipped", "--- FAIL: TestA (0.00s)\n    a_test.go:3: no\n    --- SKIP: TestB/sub (0.00s)\n", outcome{failed: []string{"TestA"}, skipped: []string{"TestB/sub"}}},
		{"no final newline", "--- PASS: TestA (0.00s)", outcome{passed: 1}},
		{"a line that only talks of it", "a_test.go:3: --- FAIL: is not one\n", outcome{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readResults(strings.NewReader(tt.in)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
