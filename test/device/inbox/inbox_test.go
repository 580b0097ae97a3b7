//go:build device && linux

package inbox

import (
	"os"
	"strings"
	"testing"
)

func TestRunsInsideTheBox(t *testing.T) {
	if os.Getenv("CONTINUO_IN_BOX") != "1" {
		t.Fatal("this test runs in the box only, through the device suite")
	}
	init, err := os.ReadFile("/proc/1/comm")
	if err != nil || strings.TrimSpace(string(init)) != "systemd" {
		t.Errorf("PID 1 is %q (%v), want systemd", init, err)
	}
	data, err := os.ReadFile("testdata/companion.txt")
	if err != nil || string(data) != "came along\n" {
		t.Errorf("testdata holds %q (%v)", data, err)
	}
}
