package memory

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/continuo-fleet/continuo/topology"
)

// secret is one value that the owner of the device keeps on it.
type secret struct {
	value   []byte
	exposed bool // others than its owner may read it
}

// Secrets of the device.
func (d *Device) Secrets() topology.Secrets { return secrets{d} }

type secrets struct{ d *Device }

func (s secrets) Secret(ctx context.Context, name string) ([]byte, error) {
	if err := s.d.control.call(ctx, OpSecret, secretResource(name)); err != nil {
		return nil, err
	}
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	v, ok := s.d.secrets[name]
	switch {
	case !ok:
		return nil, topology.Faultf(topology.CodeSecret, "the device has no secret %q", name)
	case v.exposed:
		return nil, topology.Faultf(topology.CodeSecret, "cannot use the secret %q: others may read it", name)
	}
	return bytes.Clone(v.value), nil
}

// Fingerprint is keyed with what the device was made with, as long as nobody changes that.
func (s secrets) Fingerprint(value []byte) string {
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	m := hmac.New(sha256.New, []byte(s.d.secretKey))
	m.Write(value)
	return hex.EncodeToString(m.Sum(nil))
}

// SetSecret gives a secret of the device a value; one that is there is rotated.
func (d *Device) SetSecret(name, value string) {
	d.hands(func() {
		d.secrets[name] = secret{value: []byte(value)}
		d.changed(secretResource(name))
	})
}

// DropSecret takes a secret off the device.
func (d *Device) DropSecret(name string) {
	d.hands(func() {
		delete(d.secrets, name)
		d.changed(secretResource(name))
	})
}

// ExposeSecret lets others than its owner read a secret.
func (d *Device) ExposeSecret(name string) {
	d.hands(func() {
		v := d.secrets[name]
		v.exposed = true
		d.secrets[name] = v
		d.changed(secretResource(name))
	})
}

func secretResource(name string) topology.Resource { return topology.Resource("secret:" + name) }
