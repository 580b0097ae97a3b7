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

// SecretPattern is that of the names of secrets, which are 128 characters at most.
const SecretPattern = `^[A-Za-z0-9_][A-Za-z0-9_.-]*$`

var secretRE = regexp.MustCompile(SecretPattern)

func validSecretName(name string) bool { return len(name) <= 128 && secretRE.MatchString(name) }

func (s SecretRef) check(r *Report) {
	if !validSecretName(s.Secret) { // it is not shown: it may be the value, instead of the name
		r.At("secret").Errorf("it is not the name of a secret of the device: letters, digits, '_', '.' and '-', at most 128; its value has no place here")
	}
}
