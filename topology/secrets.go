package topology

import "context"

// Secrets are the values that the owner of a device keeps on it, by name. They are read
// when they are needed and never changed.
type Secrets interface {
	// Secret returns the value of a secret. One that is not there, or that others than its
	// owner may read, is a fault, CodeSecret, whose text names the secret and never its value.
	Secret(ctx context.Context, name string) ([]byte, error)

	// Fingerprint returns a digest of value that tells nothing about it to who does not hold
	// the key of this device. It is the same for the same value as long as the device lives.
	Fingerprint(value []byte) string
}

// HasSecrets is implemented by topologies that keep secrets.
type HasSecrets interface{ Secrets() Secrets }

// NoSecrets are the secrets of a device that keeps none.
type NoSecrets struct{}

// Secret is always a fault.
func (NoSecrets) Secret(_ context.Context, name string) ([]byte, error) {
	return nil, Faultf(CodeSecret, "this device keeps no secrets, and %q is one", name)
}

// Fingerprint is empty: there is no value.
func (NoSecrets) Fingerprint([]byte) string { return "" }
