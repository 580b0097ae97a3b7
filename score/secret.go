package score

import "regexp"

// A SecretRef names a secret of the device. The value comes from the device itself (see its
// configuration) when a score is made true, and is in no document.
type SecretRef struct {
	// Secret is the name of the secret.
	Secret string `json:"secret" jsonschema:"maxLength=128,pattern=^[A-Za-z0-9_][A-Za-z0-9_.-]*$,example=wifi-psk"`
}

// A SecretUser is implemented by specs that may name secrets.
type SecretUser interface {
	// SecretNames lists the secrets that the spec needs, each once, sorted.
	SecretNames() []string
}

var secretRE = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

func (s SecretRef) check(r *Report) {
	if !secretRE.MatchString(s.Secret) {
		r.At("secret").Errorf("secret %q must be the name of a secret of the device: letters, digits, '_', '.' and '-', at most 128; its value has no place here", s.Secret)
	}
}
