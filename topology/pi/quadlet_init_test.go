package pi

import (
	"testing"
	"time"

	"github.com/continuo-fleet/continuo/topology"
)

// How the steps before a start ended, as systemd tells it; whatever else it tells is nobody's fault (X34).
func TestStepFault(t *testing.T) {
	steps := []topology.InitContainer{{Name: "web-init-one", Timeout: time.Minute}, {Name: "web-init-two", Timeout: 2 * time.Second}}
	ran := func(began, ended uint64, code, status int32) []any {
		return []any{"/usr/bin/podman", []string{"podman", "run"}, false, began, uint64(0), ended, uint64(0), uint32(7), code, status}
	}
	well, never := ran(1e6, 2e6, 1, 0), ran(0, 0, 0, 0)
	tests := []struct {
		name string
		ran  any
		code topology.Code
		want string
	}{
		{"well", [][]any{well, well}, "", ""},
		{"not yet", [][]any{never, never}, "", ""},
		{"the first fails", [][]any{ran(1e6, 2e6, 1, 3), never}, topology.CodeExited, "web-init-one ended with exit code 3"},
		{"the second fails", [][]any{well, ran(1e6, 2e6, 1, 125)}, topology.CodeExited, "web-init-two ended with exit code 125"},
		{"killed", [][]any{well, ran(1e6, 2e6, 2, 9)}, topology.CodeExited, "web-init-two ended with exit code 137"},
		{"too long", [][]any{well, ran(1e6, 3e6, 1, 255)}, topology.CodeTimeout, "web-init-two did not end within 2s"},
		{"a clock that was set", [][]any{well, ran(9e9, 1e6, 1, 4)}, topology.CodeExited, "exit code 4"},
		{"more than there are", [][]any{well, well, ran(1, 2, 1, 1)}, "", ""},
		{"short", [][]any{{"x"}}, "", ""},
		{"other types", [][]any{{1, 2, 3, "4", 5, "6", 7, 8, "9", "10"}}, "", ""},
		{"text", "x", "", ""},
		{"nothing", nil, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := stepFault("web.service", steps, tt.ran)
			if tt.code != "" {
				wantCode(t, err, tt.code, tt.want, "journalctl -u web.service")
			} else if err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The name that podman has for a secret tells people what it is, fits what podman takes, and is another for another value.
func TestSecretID(t *testing.T) {
	long := "a-very-long-name-of-a-container-that-somebody-has-given-it-0123"
	seen := map[string]bool{}
	for _, s := range []struct{ container, name, print string }{
		{"web", "db", "1"}, {"web", "db", "2"}, {"web", "db2", "1"}, {"we", "bdb", "1"}, {long, long + long, "1"}, {long + "x", long + long, "1"},
	} {
		id := secretID(s.container, topology.ContainerSecret{Name: s.name, Fingerprint: s.print})
		if seen[id] || len(id) > 64 {
			t.Errorf("%q is %q, which is taken or too long", s, id)
		}
		seen[id] = true
	}
}
