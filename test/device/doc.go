// Package device is the device suite: tests that need a real systemd, a real podman and a device that can
// lose its power, its link or its disk. They run in a "Pi in a box" (see the pibox script beside this file),
// as root, behind the build tag "device": go test -tags device ./test/device/, or make device.
//
// It is not the place for tests that a plain "go test ./..." can run.
package device
