// Package box gives tests a real device: a Debian with systemd as PID 1, D-Bus, podman and NetworkManager that
// boots in about a second, on a private network, and that can be cut off, frozen or crashed.
//
// It is a thin, typed layer over the pibox script one folder up, for tests only. It is not a container
// runtime, and not a sandbox for untrusted code.
//
// A package of tests hands its TestMain to Main, and each test calls Start:
//
//	func TestMain(m *testing.M) { box.Main(m) }
//
//	func TestBoots(t *testing.T) {
//		b := box.Start(t, box.Options{})
//		out, err := b.Exec(t.Context(), "systemctl", "is-system-running")
//		…
//	}
//
// Each test process has a network of its own, so several may run at once on one machine. Methods that return
// no error end the test when they fail, so they belong into the test's own goroutine.
package box
