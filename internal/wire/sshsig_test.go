package wire

import (
	"bytes"
	"encoding/pem"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var writeSSH = flag.String("write-ssh", "", "directory to write what the fixtures of testdata/ssh are signatures of")

// What ssh-keygen -Y sign made is a signature as any other: X84. The fixtures were made by OpenSSH 9.2 with
//
//	ssh-keygen -Y sign -n continuo -f KEY statement      (and -n other, -O hashalg=sha256 for those that are refused)
func TestSSHSignature(t *testing.T) {
	e := sshEnvelope(t)
	if *writeSSH != "" {
		if err := os.WriteFile(filepath.Join(*writeSSH, "statement"), e.ToSign(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	key, err := e.AddSSHSignature(sshFixture(t, "statement.sig"))
	if err != nil {
		t.Fatal(err)
	}
	line := string(sshFixture(t, "key.pub"))
	if want, _ := CheckKey(strings.TrimSpace(line)); key != want || !strings.HasPrefix(line, want+" ") {
		t.Errorf("signed by %q, want %q", key, want)
	}
	b, err := e.Frame()
	if err != nil {
		t.Fatal(err)
	}
	keys, err := Trust(KindApproval, key)
	if err != nil {
		t.Fatal(err)
	}
	want := Expect{Kind: KindApproval, Audience: dev1.String()}
	v, err := Verify(b, keys, want)
	if err != nil || len(v.By) != 1 || v.By[0] != key {
		t.Fatalf("%v, %v", v.By, err)
	}
	// The same key as an nkey is of another form: its signatures are not over what ssh-keygen signs.
	for i := range b {
		torn := bytes.Clone(b)
		torn[i] ^= 1
		if _, err := Verify(torn, keys, want); err == nil {
			t.Errorf("byte %d can be flipped", i)
		}
	}
	if _, err := e.AddSSHSignature(sshFixture(t, "statement.sig")); err == nil {
		t.Error("one key signed twice")
	}
	one, err := Fingerprint(key)
	if err != nil || !strings.HasPrefix(one, "SHA256:") {
		t.Errorf("%q, %v", one, err)
	}
}

func TestSSHSignatureRefused(t *testing.T) {
	good := sshFixture(t, "statement.sig")
	block, _ := pem.Decode(good)
	remade := func(change func(b []byte) []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: change(bytes.Clone(block.Bytes))})
	}
	for name, tt := range map[string]struct {
		sig  []byte
		code Code
		want string
	}{
		"nothing":           {nil, CodeMalformed, "not one armored"},
		"another namespace": {sshFixture(t, "namespace.sig"), CodeMalformed, `namespace "file": sign with -n continuo`},
		"another hash":      {sshFixture(t, "sha256.sig"), CodeMalformed, `sign with -O hashalg=sha512`},
		"another content":   {sshFixture(t, "other.sig"), CodeUntrusted, "of another content"},
		"two":               {append(bytes.Clone(good), good...), CodeMalformed, "not one armored"},
		"large":             {bytes.Repeat([]byte("a"), 5<<10), CodeTooLarge, "at most"},
		"another type":      {bytes.ReplaceAll(good, []byte("SSH SIGNATURE"), []byte("SSH CERTIFICATE")), CodeMalformed, "not one armored"},
		"cut":               {remade(func(b []byte) []byte { return b[:len(b)-70] }), CodeMalformed, "too early"},
		"longer":            {remade(func(b []byte) []byte { return append(b, 0) }), CodeMalformed, "follows"},
		"version 2":         {remade(func(b []byte) []byte { b[9] = 2; return b }), CodeMalformed, "another version"},
	} {
		t.Run(name, func(t *testing.T) {
			e := sshEnvelope(t)
			_, err := e.AddSSHSignature(tt.sig)
			wantCode(t, err, tt.code)
			if err == nil || !strings.Contains(err.Error(), tt.want) || len(e.Signatures) != 0 {
				t.Errorf("%v, %d signatures", err, len(e.Signatures))
			}
		})
	}
}

func TestCheckKey(t *testing.T) {
	line := strings.TrimSpace(string(sshFixture(t, "key.pub")))
	nkey := publicKey(t, signer(t, 'a'))
	for name, tt := range map[string]struct {
		in string
		ok bool
	}{
		"nkey": {nkey, true}, "ssh": {line, true}, "nothing": {"", false}, "rsa": {"ssh-rsa AAAAB3NzaC1yc2E= x", false},
		"two lines": {line + "\n" + line, false}, "cut": {line[:40], false}, "no base64": {"ssh-ed25519 !!! x", false}, "a seed": {"SAAABBB", false},
	} {
		if got, err := CheckKey(tt.in); (err == nil) != tt.ok || tt.ok && !strings.HasPrefix(tt.in, got) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func FuzzSSHSignature(f *testing.F) {
	f.Add(sshFixture(f, "statement.sig"))
	f.Add(sshFixture(f, "sha256.sig"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := sshEnvelope(t)
		if _, err := e.AddSSHSignature(b); (err == nil) != (len(e.Signatures) == 1) {
			t.Errorf("%v, %d signatures", err, len(e.Signatures))
		}
	})
}

// sshEnvelope is always the same: the fixtures sign it.
func sshEnvelope(t testing.TB) Envelope {
	t.Helper()
	e, err := SealEnvelope(Statement{Kind: KindApproval, Audience: dev1.String(), Generation: 7, Issued: 1_750_000_000, Media: "test"}, []byte("a document"))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func sshFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "ssh", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
