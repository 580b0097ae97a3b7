package wire

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"strings"
)

// A person can sign with a key of OpenSSH: ssh-keygen -Y sign -n continuo -f KEY FILE. The file holds what [Envelope.ToSign]
// gives; what comes back is read by [Envelope.AddSSHSignature]. In an envelope such a signature is as long as any other: its
// key id says that it is of this form, of which nothing else may vary.

// SSHNamespace binds a signature of OpenSSH to this purpose.
const SSHNamespace = "continuo"

const (
	sshKeyType = "ssh-ed25519"
	sshMagic   = "SSHSIG"
	sshHash    = "sha512"
	// maxSSHFile is far more than an Ed25519 key or signature and its armour.
	maxSSHFile = 4 << 10
)

// parseSSHKey reads "ssh-ed25519 AAAA… comment".
func parseSSHKey(text string) (trusted, error) {
	bad := fmt.Errorf("cannot use %q as a document signing key: it is no line of an ssh-ed25519 .pub file", begin(text))
	fields := strings.Fields(text)
	if len(text) > maxSSHFile || len(fields) < 2 || fields[0] != sshKeyType || strings.ContainsAny(text, "\r\n") {
		return trusted{}, bad
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(fields[1])
	if err != nil {
		return trusted{}, bad
	}
	raw, ok := sshPublic(blob)
	if !ok {
		return trusted{}, bad
	}
	return trusted{text: fields[0] + " " + fields[1], key: raw, id: sshKeyID(raw), ssh: true}, nil
}

// sshKeyID differs from the id of the same key as an nkey: a signature says by it of which form it is.
func sshKeyID(raw ed25519.PublicKey) KeyID {
	sum := sha256.Sum256(append([]byte(sshMagic), raw...))
	return KeyID(sum[:8])
}

// sshPublic takes the key out of its blob.
func sshPublic(blob []byte) (ed25519.PublicKey, bool) {
	kind, rest, ok1 := sshString(blob)
	raw, rest, ok2 := sshString(rest)
	if !ok1 || !ok2 || len(rest) != 0 || string(kind) != sshKeyType || len(raw) != ed25519.PublicKeySize {
		return nil, false
	}
	return raw, true
}

// sshSigned is what ssh-keygen signs for a message.
func sshSigned(message []byte) []byte {
	sum := sha512.Sum512(message)
	b := []byte(sshMagic)
	for _, s := range [][]byte{[]byte(SSHNamespace), nil, []byte(sshHash), sum[:]} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

// ToSign is what a signature is over: a file with it is what ssh-keygen -Y sign -n continuo signs.
func (e Envelope) ToSign() []byte { return preAuth(e.Statement) }

// AddSSHSignature adds a signature that ssh-keygen -Y sign made. It gives the public key of who signed, as trusted keys are
// written; whether anybody trusts it is not its business. Every error is a [*Refusal].
func (e *Envelope) AddSSHSignature(armored []byte) (key string, err error) {
	sig, raw, r := parseSSHSignature(armored)
	if r != nil {
		return "", r
	}
	if !ed25519.Verify(raw, sshSigned(e.ToSign()), sig) {
		return "", refuse(CodeUntrusted, "the SSH signature is of another content, or broken: sign the file as it was written")
	}
	next := *e
	next.Signatures = append(next.Signatures[:len(next.Signatures):len(next.Signatures)], Signature{sshKeyID(raw), [64]byte(sig)})
	if r := next.check(); r != nil {
		return "", r
	}
	*e = next
	return sshKeyType + " " + base64.StdEncoding.EncodeToString(sshBlob(raw)), nil
}

func sshBlob(raw ed25519.PublicKey) []byte {
	var b []byte
	for _, s := range [][]byte{[]byte(sshKeyType), raw} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(s)))
		b = append(b, s...)
	}
	return b
}

// parseSSHSignature reads PROTOCOL.sshsig. What could be said in several ways has to be as ssh-keygen says it.
func parseSSHSignature(armored []byte) (sig []byte, raw ed25519.PublicKey, _ *Refusal) {
	bad := func(format string, args ...any) ([]byte, ed25519.PublicKey, *Refusal) {
		return nil, nil, refuse(CodeMalformed, "cannot use the SSH signature: "+format, args...)
	}
	if len(armored) > maxSSHFile {
		return nil, nil, refuse(CodeTooLarge, "an SSH signature of %d bytes, at most %d are read", len(armored), maxSSHFile)
	}
	block, rest := pem.Decode(armored)
	if block == nil || block.Type != "SSH SIGNATURE" || len(block.Headers) != 0 || len(bytes.TrimSpace(rest)) != 0 {
		return bad("it is not one armored SSH SIGNATURE")
	}
	b, ok := bytes.CutPrefix(block.Bytes, []byte(sshMagic))
	if !ok || len(b) < 4 || binary.BigEndian.Uint32(b) != 1 {
		return bad("it is of another version than 1")
	}
	b = b[4:]
	var parts [5][]byte // key, namespace, reserved, hash, signature
	for i := range parts {
		if parts[i], b, ok = sshString(b); !ok {
			return bad("it ends too early")
		}
	}
	raw, ok = sshPublic(parts[0])
	algorithm, b2, ok1 := sshString(parts[4])
	sig, b3, ok2 := sshString(b2)
	switch {
	case len(b) != 0:
		return bad("something follows it")
	case !ok:
		return bad("its key is not ssh-ed25519")
	case string(parts[1]) != SSHNamespace:
		return bad("it was made for the namespace %.40q: sign with -n %s", parts[1], SSHNamespace)
	case string(parts[3]) != sshHash:
		return bad("it is over a %.40q hash: sign with -O hashalg=%s", parts[3], sshHash)
	case len(parts[2]) != 0, !ok1, !ok2, len(b3) != 0, string(algorithm) != sshKeyType, len(sig) != ed25519.SignatureSize:
		return bad("it is not as ssh-keygen makes it")
	}
	return sig, raw, nil
}

// sshString takes one string of the SSH protocol off b.
func sshString(b []byte) (s, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(len(b)-4) {
		return nil, nil, false
	}
	return b[4 : 4+n : 4+n], b[4+n:], true
}
