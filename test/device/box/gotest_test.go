//go:build linux

package box

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadResults(t *testing.T) {
	tests := []struct {
		name, in        string
		passed          int
		failed, skipped []string
	}{
		{"nothing ran", "testing: warning: no tests to run\nPASS\n", 0, nil, nil},
		{"passed with a subtest", "=== RUN   TestA\n    --- PASS: TestA/x (0.00s)\n--- PASS: TestA (0.01s)\nPASS\n", 2, nil, nil},
		{"failed and skipped", "--- FAIL: TestA (0.00s)\n    a_test.go:3: no\n    --- SKIP: TestB/sub (0.00s)\n", 0, []string{"TestA"}, []string{"TestB/sub"}},
		{"no final newline", "--- PASS: TestA (0.00s)", 1, nil, nil},
		{"a line that only talks of it", "a_test.go:3: --- FAIL: is not one\n", 0, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := readResults(strings.NewReader(tt.in))
			if got.passed != tt.passed || !slices.Equal(got.failed, tt.failed) || !slices.Equal(got.skipped, tt.skipped) {
				t.Errorf("got %+v, want %+v", got, tt)
			}
		})
	}
}

// Tests that take turns: what one of them wrote is told of it and of no other.
const failing = `=== RUN   TestA
    a_test.go:1: sent three
=== PAUSE TestA
=== RUN   TestB
=== RUN   TestB/sub
    b_test.go:9: got no
        further line
    b_test.go:10: 3
    b_test.go:11: 4
    b_test.go:12: 5
    b_test.go:13: between
    b_test.go:14: before the last
    b_test.go:15: nearly the last
    b_test.go:16: the last
--- FAIL: TestB (0.00s)
    --- FAIL: TestB/sub (0.00s)
=== CONT  TestA
    a_test.go:2: all well
--- PASS: TestA (0.00s)
FAIL
`

func TestComplaints(t *testing.T) {
	exit := errors.New("exit status 1")
	tests := []struct {
		name, in string
		err      error
		want     []string
	}{
		{"passed", "--- PASS: TestA (0.00s)\nPASS\n", nil, nil},
		{"none ran", "PASS\n", nil, []string{"tests of ./x: none ran in the box"}},
		{"skipped", "--- SKIP: TestA (0.00s)\n--- PASS: TestB (0.00s)\n", nil, []string{"tests of ./x did not run in the box: TestA"}},
		{"failed", failing, exit, []string{
			"tests of ./x failed in the box: TestB, TestB/sub",
			"in the box: TestB/sub: b_test.go:9: got no",
			"in the box: TestB/sub: further line",
			"in the box: TestB/sub: b_test.go:10: 3",
			"in the box: TestB/sub: b_test.go:11: 4",
			"in the box: TestB/sub: b_test.go:12: 5",
			"in the box: TestB/sub: b_test.go:14: before the last",
			"in the box: TestB/sub: b_test.go:15: nearly the last",
			"in the box: TestB/sub: b_test.go:16: the last",
		}},
		{"a panic in a test", "=== RUN   TestA\n--- FAIL: TestA (0.00s)\npanic: boom [recovered]\n\ngoroutine 7 [running]:\n", exit, []string{
			"tests of ./x failed in the box: TestA",
			"in the box: it broke off: panic: boom [recovered]",
			"in the box: it broke off: goroutine 7 [running]:",
		}},
		{"too long", "=== RUN   TestA\npanic: test timed out after 1m\n\trunning tests:\n\t\tTestA (1m)\n", exit, []string{
			"tests of ./x broke off in the box: exit status 1",
			"in the box: it broke off: panic: test timed out after 1m",
			"in the box: it broke off: running tests:",
			"in the box: it broke off: TestA (1m)",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := readResults(strings.NewReader(tt.in)).complaints("./x", tt.err); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
		})
	}
}

// TestFailed: the end of the device suite tells which tests failed, also inside a box, and why.
func TestFailed(t *testing.T) {
	log := `=== RUN   TestPi
=== RUN   TestPi/the_rest
    === RUN   TestB/sub
        b_test.go:9: got no
    --- FAIL: TestB (0.00s)
        --- FAIL: TestB/sub (0.00s)
=== NAME  TestOther
    other_test.go:3: number: 7
    other_test.go:4: got
        5
=== NAME  TestPi/the_rest
    gotest.go:53: tests of ./topology/pi failed in the box: TestB, TestB/sub
    gotest.go:53: in the box: TestB/sub: b_test.go:9: got no
    box.go:121: pi-7: journalctl:
        Nov 30 04:00:00 pi-7 systemd[1]: Started.
--- FAIL: TestPi (0.01s)
    --- FAIL: TestPi/the_rest (0.01s)
--- FAIL: TestOther (0.01s)
--- PASS: TestC (0.01s)
FAIL
FAIL	example.org/device	0.01s
`
	want := `device suite: failed: TestPi
device suite: failed: TestPi/the_rest
device suite: failed:   gotest.go:53: tests of ./topology/pi failed in the box: TestB, TestB/sub
device suite: failed:   gotest.go:53: in the box: TestB/sub: b_test.go:9: got no
device suite: failed:   box.go:121: pi-7: journalctl:
device suite: failed: TestOther
device suite: failed:   other_test.go:4: got
device suite: failed:       5
`
	timeout := "=== RUN   TestA\npanic: test timed out after 20m0s\n\trunning tests:\n\t\tTestA (1m)\n\ngoroutine 1 [running]:\n"
	for name, tt := range map[string]struct{ log, want string }{
		"a failure":  {log, want},
		"no failure": {"=== RUN   TestA\n--- PASS: TestA (0.01s)\nPASS\n", ""},
		"a time out": {timeout, "device suite: failed: panic: test timed out after 20m0s\ndevice suite: failed: \trunning tests:\ndevice suite: failed: \t\tTestA (1m)\ndevice suite: failed: goroutine 1 [running]:\n"},
		"no build":   {"# example.org/device\n./x_test.go:3:1: undefined: y\nFAIL\texample.org/device [build failed]\n", "device suite: failed: ./x_test.go:3:1: undefined: y\ndevice suite: failed: FAIL\texample.org/device [build failed]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(tt.log), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), "../failed", path).CombinedOutput()
			if err != nil || string(out) != tt.want {
				t.Errorf("%v, got\n%s\nwant\n%s", err, out, tt.want)
			}
		})
	}
}
