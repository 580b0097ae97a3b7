package score

// Unregister takes a kind back that a test has registered.
func Unregister(k Kind) { delete(registry, k) }

// SecretName is secretName.
var SecretName = secretName
