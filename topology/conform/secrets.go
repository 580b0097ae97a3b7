package conform

import (
	"bytes"
	"strings"
	"testing"

	"github.com/continuo-fleet/continuo/topology"
)

// A SecretBench is a device that keeps secrets, none to begin with.
type SecretBench struct {
	Secrets topology.Secrets
	Hands   SecretHands
}

// SecretHands are the owner of the device.
type SecretHands interface {
	// SetSecret gives a secret a value.
	SetSecret(name, value string) error
	// DropSecret takes a secret away.
	DropSecret(name string) error
	// ExposeSecret lets others read a secret.
	ExposeSecret(name string) error
}

// Secrets is the suite of a device that keeps secrets.
func Secrets(t *testing.T, bench func(*testing.T) SecretBench) { suite(t, bench, secretTests) }

const canary = "canary-3f9a61c2"

var secretTests = []test[SecretBench]{
	{"read when it is asked for", func(t *testing.T, b SecretBench) { // G59
		for _, value := range []string{canary, canary + "-rotated", "", "two words = 'and' \"quotes\" #\\"} {
			hands(t, b.Hands.SetSecret("wifi-psk", value))
			got, err := b.Secrets.Secret(t.Context(), "wifi-psk")
			ok(t, err)
			equal(t, "value", string(got), value)
			clear(got) // a caller may: it is its own
		}
	}},
	{"no such secret", func(t *testing.T, b SecretBench) {
		hands(t, b.Hands.SetSecret("other", canary))
		for _, name := range []string{"wifi-psk", "othe", "../other", "", "a/b", "a\x00b", strings.Repeat("a", 1000)} {
			_, err := b.Secrets.Secret(t.Context(), name)
			fails(t, err, topology.CodeSecret)
			withoutCanary(t, err)
		}
		hands(t, b.Hands.DropSecret("other"))
		_, err := b.Secrets.Secret(t.Context(), "other")
		fails(t, err, topology.CodeSecret)
	}},
	{"others may read it", func(t *testing.T, b SecretBench) { // G59
		hands(t, b.Hands.SetSecret("wifi-psk", canary))
		hands(t, b.Hands.ExposeSecret("wifi-psk"))
		_, err := b.Secrets.Secret(t.Context(), "wifi-psk")
		fails(t, err, topology.CodeSecret)
		withoutCanary(t, err)
	}},
	{"fingerprint", func(t *testing.T, b SecretBench) { // G59
		seen := map[string]string{}
		for _, value := range []string{"", "a", "b", canary, canary + "\n"} {
			f := b.Secrets.Fingerprint([]byte(value))
			if f == "" || strings.Contains(f, canary) {
				t.Fatalf("the fingerprint of %q is %q", value, f)
			}
			if other, is := seen[f]; is {
				t.Errorf("%q and %q have one fingerprint", value, other)
			}
			seen[f] = value
			equal(t, "the same again", b.Secrets.Fingerprint(bytes.Clone([]byte(value))), f)
		}
	}},
	{"canceled", func(t *testing.T, b SecretBench) {
		hands(t, b.Hands.SetSecret("wifi-psk", canary))
		_, err := b.Secrets.Secret(canceled(t), "wifi-psk")
		fails(t, err, topology.CodeCanceled)
	}},
}

func withoutCanary(t *testing.T, err error) {
	t.Helper()
	if strings.Contains(err.Error(), canary) {
		t.Errorf("the value is in the error: %v", err)
	}
}
